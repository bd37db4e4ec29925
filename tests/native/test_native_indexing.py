"""Indexing by indices that all lanes share, or by one index for each lane."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, same
from jax import lax

RNG = np.random.default_rng(5)
SHORT = RNG.normal(size=(5, LANES))
TABLE = RNG.normal(size=(4, 5, LANES))
LONG = RNG.normal(size=(30, LANES))
WIDE = RNG.normal(size=(14, 13, LANES))
SHARED, FLAGS = RNG.normal(size=(14, 6)), RNG.random(30) < 0.5
INSIDE = RNG.integers(0, 4, LANES)
BEYOND = RNG.integers(-40, 40, LANES)  # before, within and after any table


def parts(v, m, x, w, i):
    s, flags = jnp.asarray(SHARED), jnp.asarray(FLAGS)
    part = lax.dynamic_slice
    counted = jnp.arange(30)
    return (
        [part(v, (at,), (2,)) for at in (0, 3, 9, -1, i, i + 1, -i)],
        [part(v, (at,), (1,)) for at in (2, i, i.astype(jnp.int32), i.astype(jnp.uint32))],
        [part(x, (at,), (n,)) for at in (28, i, 7 * i) for n in (1, 4)],
        [part(m, at, (2, 3)) for at in ((1, 2), (i, 0), (1, i), (i, i), (-i, 9))],
        [part(m, at, (1, 1)) for at in ((1, 2), (i, 0), (1, i), (i, i + 1))],
        [part(w, at, (1, 13)) for at in ((1, 0), (i, 0), (5 * i, 7))],
        [part(w, at, (3, 2)) for at in ((i, i), (12, i), (jnp.minimum(i, 2), 4))],
        [part(s, at, (1, 6)) for at in ((3, 0), (i, 0), (i, i))],
        [part(s, at, (3, 2)) for at in ((i, 1), (4, i), (i, i))],
        (part(flags, (i,), (3,)), part(flags, (5 * i,), (1,)), part(counted, (i,), (2,))),
        (part(v > 0, (i,), (2,)), part(x.astype(int), (i,), (2,))),
        (part(jnp.ones((1, 5)), (i, i), (1, 2))),
        (lax.dynamic_index_in_dim(m, i, 1, False), lax.dynamic_slice_in_dim(2 * x[::-1], i, 3)),
    )  # fmt: skip


@pytest.mark.parametrize("at", [INSIDE, BEYOND], ids=["inside", "beyond"])
def test_dynamic_slices_equal_vmap(at):
    same(parts, SHORT, TABLE, LONG, WIDE, at)


def updates(v, m, x, w, i):
    s = jnp.asarray(SHARED)
    put = lax.dynamic_update_slice
    return (
        [put(v, v[:2] * 9, (at,)) for at in (0, 3, 9, -1, i, i + 1)],
        [put(x, jnp.array([1.0, 2.0, 3.0]), (at,)) for at in (28, i, 7 * i)],
        [put(m, 2 * m[:2, :3], at) for at in ((1, 2), (i, 0), (1, i), (i, i))],
        [put(w, jnp.ones((1, 13)), at) for at in ((1, 0), (i, 0), (5 * i, 7))],
        [put(s, m[:2, :3], at) for at in ((1, 0), (i, 0), (5 * i, i))],
        (put(jnp.zeros((3, 4)), jnp.ones((2, 2)), (i, 1)), put(x > 0, v[:3] > 0, (i,))),
        (put(jnp.arange(6), jnp.arange(2) + 50, (i,)), put(v, v[:1], (2,)) + v),
    )


@pytest.mark.parametrize("at", [INSIDE, BEYOND], ids=["inside", "beyond"])
def test_dynamic_updates_equal_vmap(at):
    same(updates, SHORT, TABLE, LONG, WIDE, at)


def look_ups(v, m, x, w, i, j):
    s, flags, counted = jnp.asarray(SHARED), jnp.asarray(FLAGS), jnp.arange(20)
    few = jnp.array([3, 1, 1])
    return (
        (v[i], x[i], x[7 * i], v[-1], v[-i - 1], m[i], m[:, i], m[i, j], w[i, j], m[i, 1], m[2, j]),
        (s[i], s[:, i], s[i, j], flags[i], counted[i], s[2, i], s[i, few], counted[few] + i),
        (v[few], x[few], m[few], m[:, few], m[few, few]),
        (m[few[:, None], few], x[few + i], w[:, few]),
        (x[i + jnp.arange(3)], m[i, few], m[few, i]),
        ((v > 0)[i], (2 * x)[j], x.astype(int)[i], w[3:, 2]),
        (jnp.take(v, i), jnp.take(m, j, 1)),
        (jnp.take(x, few + j, mode="clip"), x.astype(jnp.float32)[i]),
        (jnp.take_along_axis(m, few[None, 1:] - 1 + i, 1), m[i][j], m.T[j, i]),
        jnp.take_along_axis(m, m.argmax(1)[:, None], 1),
        jnp.take_along_axis(m, jnp.broadcast_to(few, (4, 3)), 1),
        (jax.vmap(lambda row, at: row[at])(m, jnp.array([0, 4, 2, 1])), m[i.astype(jnp.int32)]),
        jax.vmap(lambda row, at: row[at])(m, jnp.arange(4) * i % 5),
        (v[jnp.uint32(2)], v[i.astype(jnp.uint32)], x[jnp.array([-1, -30, 5])], w[-i - 1, -j - 1]),
    )  # fmt: skip


def test_look_ups_equal_vmap():
    same(look_ups, SHORT, TABLE, LONG, WIDE, INSIDE, (INSIDE * 3 + 1) % 5)


def far_look_ups(v, m, x, w, i, j):
    s, flags, k = jnp.asarray(SHARED), jnp.asarray(FLAGS), jnp.array([2, -50, 50, -1])
    modes = {"clip": {}, "fill": {"fill_value": -7}}
    return (
        (v[i], x[i], m[i, j], w[j], m[:, i], s[i], s[i, j], flags[i], x[i + jnp.arange(3)]),
        [t.at[at].get(mode=mode, **more) for mode, more in modes.items()
         for t in (v, x, m, s, x.astype(int)) for at in (i, k, j)],
        [t.at[at].get(mode="fill") for t in (v, x.astype(int), jnp.abs(x).astype(jnp.uint32),
                                             flags, v > 0, s, jnp.arange(9)) for at in (i, k, 60)],
        [t.at[a, b].get(mode=mode) for mode in ("clip", "fill") for t in (m, w, s)
         for a, b in ((i, j), (i, 1), (2, j), (k, k))],
        [t.at[at].get(mode="fill", fill_value=3.0) for t in (m, s) for at in ((i, 70), (70, j))],
    )  # fmt: skip


def test_look_ups_beyond_the_table_equal_vmap():
    same(far_look_ups, SHORT, TABLE, LONG, WIDE, BEYOND, RNG.permutation(BEYOND))


def scatters(v, m, x, i, j):
    s, few, k = jnp.asarray(SHARED), jnp.array([3, 1]), jnp.array([0, 50, -1, 2])
    hows = "set", "add", "multiply", "min", "max"

    def on(table, at, new, **more):
        return [getattr(table.at[at], how)(new, **more) for how in hows]

    return (
        [on(v, at, 0.25) for at in (2, i, few, jnp.array([1, 1, 2]), slice(1, 3))],
        [on(x, at, v[0]) for at in (2, i, 7 * i, i + few, few)],
        [on(m, at, v[2]) for at in (1, i, (i, j), (2, j), (i, few), (slice(None), j), (few, few))],
        [on(m, at, new) for at, new in ((i, v), ((slice(None), j), x[:4]), (few, m[:2]))],
        [on(s, at, v[1]) for at in (1, i, (i, j), (2, few))],
        [on(t, at, 3) for t in (x.astype(int), jnp.arange(5)) for at in (2, i, few)],
        [on(v, k, 0.5, mode=mode) for mode in ("drop", "clip")],
        (v.at[i].set(1.0) + v, v.at[i].add(v[2]).at[j].set(2.0)),
        v.at[jnp.array([0, 0, 0])].add(v[:3]),
        ((v > 0).at[i].set(True), (v > 0).at[2].set(v[0] > 1), jnp.asarray(FLAGS).at[i].set(False)),
        (jnp.zeros(4).at[i].add(1.0), jnp.zeros(3).at[1].set(5.0)),
        (v.at[-1].set(0.0), v.at[-i - 1].set(9)),
        (v.at[i + jnp.arange(3)].add(x[:3]), m.at[:, i].set(0.0).at[i].set(1.0).at[i, i].add(1.0)),
    )  # fmt: skip


def test_scatters_equal_vmap():
    same(scatters, SHORT, TABLE, LONG, INSIDE, (INSIDE * 3 + 1) % 5)


def far_scatters(v, m, x, i, j):
    s, few = jnp.asarray(SHARED), jnp.arange(3)
    modes = "drop", "clip", None
    hows = "set", "add", "max"
    return [
        [getattr(t.at[at], how)(0.5, mode=mode) for how in hows for mode in modes]
        for t, at in ((v, i), (x, i), (m, i), (m, (i, j)), (m, (1, j)), (s, (i, j)), (x, i + few))
    ]


def test_scatters_beyond_the_table_equal_vmap():
    same(far_scatters, SHORT, TABLE, LONG, BEYOND, RNG.permutation(BEYOND))


def test_scattered_extremes_of_booleans_equal_vmap():
    same(lambda p, i: (p.at[i].max(True), p.at[i].min(False), p.at[1].max(p[0])), SHORT > 0, INSIDE)


def test_scattered_differences_and_quotients_equal_vmap():
    def less(v, m, i):
        return (
            v.at[i].subtract(1.5),
            v.at[2].divide(3.0),
            m.at[i].subtract(v),
            m.at[:, 1].add(-v[0]),
        )

    same(less, SHORT, TABLE, INSIDE)


def test_nan_in_one_entry_does_not_spread_to_others():
    v = SHORT.copy()
    v[1], v[:, 3] = np.nan, np.nan
    same(lambda v, i: (v.at[i].max(0.0), v.at[i].min(0.0), v.at[1].max(0.0), v.at[i].set(1.0)),
         v, INSIDE)  # fmt: skip


def test_updates_leave_their_arguments_unchanged():
    # An update in place needs a copy where the old table is still read.
    def orders(v, m, i):
        w = v * 1.0
        a = w.at[i].set(7.0)
        b = w.at[0].set(8.0)
        c = a.at[1].add(1.0)
        n = m.at[:, 1].set(0.0)
        back = a[::-1]
        d = a.at[2].set(-1.0)
        return v.at[0].set(1.0), v, w, a, b, c, d, back, n, m, a.sum(), n.at[0].set(m[1])

    found = same(orders, SHORT, TABLE, INSIDE)
    np.testing.assert_array_equal(found[1], SHORT)
    np.testing.assert_array_equal(found[9], TABLE)


@pytest.mark.parametrize("lanes", [48])
def test_indices_equal_numpy_with_lanes_in_several_registers(lanes):
    v, i = RNG.normal(size=(30, lanes)), RNG.integers(0, 30, lanes)
    found = by_native(lambda v, i: (v[i], v.at[i].set(0.0)), v, i)
    np.testing.assert_array_equal(found[0], v[i, np.arange(lanes)])
    v[i, np.arange(lanes)] = 0.0
    np.testing.assert_array_equal(found[1], v)
