import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, equal, same
from jax import lax

from jaxbandits.kernels import selection

RNG = np.random.default_rng(2)
VECTOR = RNG.normal(size=(5, LANES))
TABLE = RNG.normal(size=(3, 5, LANES))
LONG = RNG.integers(-9, 9, (50, LANES)).astype(float)  # with ties
CUBE = RNG.normal(size=(3, 4, 7, LANES))


def shapes(v, m, x):
    i = jnp.arange(20).reshape(4, 5)
    return (
        (v[:, None] - v[None], jnp.broadcast_to(v, (2, 5)), jnp.broadcast_to(v[0], (2, 3)), m + v),
        (
            m.reshape(5, 3),
            m.reshape(-1),
            m[None, :, None],
            m.T,
            x.reshape(5, 10).T,
            x.reshape(2, 5, 5),
        ),
        (jnp.transpose(m[None], (2, 0, 1)), jnp.swapaxes(m, 0, 1) * 2, (m * 2).T.reshape(-1)),
        (x[1:40:3], x[::-1], x[-2:], x[40:3:-4], m[1:, ::2], m[::-1, 1:4], lax.rev(m, (0, 1))),
        (jnp.concatenate([x, x[:2], v]), jnp.concatenate([m, m[:, 1:3]], 1), jnp.append(v, 1.0)),
        (
            jnp.tile(v, 3),
            jnp.tile(m, (2, 2)),
            jnp.tile(i, (2, 1)),
            jnp.repeat(v, 2),
            jnp.roll(v, 2),
        ),
        (i, i.T + v[:4], lax.broadcasted_iota(jnp.int32, (3, 2), 1), jnp.arange(3.0), jnp.ones(2)),
        (jnp.squeeze(m[:1]), jnp.expand_dims(v, (0, 2)), jnp.eye(3), jnp.tril(m[:, :3]), m.mT),
        (jnp.hstack([v, x]), jnp.outer(v, v), jnp.diag(m[:, :3]), jnp.linspace(0, 1, 3) * v[0]),
        (jnp.full((2, 2), v[1]), jnp.zeros((3, 0)).sum() + v, i[1:3, ::2], i[::-1, 2], jnp.flip(i)),
    )


def test_changes_of_shape_equal_vmap():
    same(shapes, VECTOR, TABLE, LONG)


def padded(v, m, x):
    widths = (1, 2, 0), (-1, 2, 0), (2, -3, 1), (0, 0, 2), (-2, -2, 0), (-1, -1, 2), (0, -3, 3)
    tables = (-1, 2, 1), (3, -2, 0)
    return (
        [lax.pad(v, 7.0, [w]) for w in widths],
        [lax.pad(x, v[0], [w]) for w in widths],
        (lax.pad(m, v[1], tables), lax.pad(m, 0.0, tables[::-1]), jnp.pad(v, 2)),
        lax.pad(jnp.arange(6) * 2, 1, [(-1, 2, 1)]) * v[2],
        lax.pad(v > 0, True, [(1, -1, 1)]),
    )


def test_padding_equals_vmap():
    same(padded, VECTOR, TABLE, LONG)


def test_stacked_arrays_equal_vmap():
    same(lambda v, m: (jnp.stack([v, 2 * v]), jnp.stack([v, m[0]], 1), jnp.stack([v[0], v[1]])),
         VECTOR, TABLE)  # fmt: skip


def test_empty_arrays_equal_vmap():
    def nothing(v, e):
        return (
            (e, e + 1, v[2:2], jnp.concatenate([e, v]), jnp.zeros((0, 3)), e.reshape(0, 4)),
            jnp.pad(e, (1, 2), constant_values=4.0),
        )

    same(nothing, VECTOR, np.zeros((0, LANES)))


def test_reductions_of_empty_arrays_equal_vmap():
    def nothing(v, e):
        return e.sum(), e.prod(), (e > 0).any(), jnp.max(e, initial=2.0), e @ e, v[:0].sum() + v[0]

    same(nothing, VECTOR, np.zeros((0, LANES)))


def reductions(v, m, x, c):
    few, many = v > 0, x > 3
    whole = x.astype(int)
    return (
        [(y.sum(), y.max(), y.min()) for y in (v, x[:12], x[:13], x[:23], x[:25], x)],
        [y.prod() for y in (v, x[:13], 1 + x / 99)],
        [(y.sum(axis), y.max(axis)) for y in (m, c) for axis in (0, 1, (0, 1))],
        (c.sum((0, 2)), c.min((1, 2)), c.prod(2), c.sum(), (c * 2).mean(), (x * x + 1).sum()),
        [(y.any(), y.all(), y.sum()) for y in (few, many, x < 99)],
        (whole.sum(), whole.max(), whole.min(), whole[:5].prod(), whole.astype(jnp.int32).max()),
        (lax.reduce_and(whole, (0,)), lax.reduce_or(whole, (0,)), lax.reduce_xor(whole[:9], (0,))),
        (jnp.arange(30.0).sum() + v[0], jnp.arange(7).max(), (jnp.arange(40) % 7).min()),
        jnp.var(x),
        (whole.astype(jnp.uint32).max(), whole.astype(jnp.uint32).min(), jnp.linalg.norm(v)),
        (x[:, None] * v).sum((0, 1)),
        (x[:, None] * v).sum(0),
    )  # fmt: skip


def test_reductions_equal_vmap():
    same(reductions, VECTOR, TABLE, LONG, CUBE, atol=1e-12)


def running(v, m, x):
    i = jnp.arange(30) % 7
    totals = jnp.cumsum, jnp.cumprod, lax.cummax, lax.cummin
    return (
        [f(y) for f in totals for y in (v, 1 + x / 99, i[:9] + 1)],
        [f(y, axis=1, reverse=True) for f in (lax.cumsum, lax.cummax, lax.cummin) for y in (m,)],
        [f(y, reverse=True) for f in (lax.cumsum, lax.cumprod) for y in (v, i[:9])],
        (jnp.cumsum(m, 0), lax.cummax(m, 0), jnp.cumsum(x > 0), jnp.cumsum(i), jnp.diff(x)),
    )


def test_cumulative_reductions_equal_vmap():
    same(running, VECTOR, TABLE, LONG, atol=1e-12)


def positions(v, m, x):
    i = jnp.arange(30.0)
    tables = v, x, x[:12], x.astype(int), x.astype(jnp.int32), x.astype(jnp.float32), i * 7 % 5
    return (
        [(y.argmax(), y.argmin()) for y in tables],
        [(m.argmax(axis), m.argmin(axis)) for axis in (0, 1)],
        (
            lax.argmax(x, 0, jnp.int32),
            jnp.abs(x).astype(jnp.uint32).argmin(),
            i.argmax() + 0 * v[0],
        ),
        (lax.argmax((i - 20) % 7, 0, jnp.int32), jnp.argmax(m)),
    )


@pytest.mark.parametrize("spoilt", [False, True])
def test_indices_of_extremes_equal_vmap(spoilt):
    rng, x = np.random.default_rng(3), LONG.copy()
    v = np.round(VECTOR)
    if spoilt:
        for bad in (np.nan, np.inf, -np.inf):
            x[rng.random(x.shape) < 0.03], v[rng.random(v.shape) < 0.2] = bad, bad
        x[:, 0], x[:, 1], x[:, 2] = np.nan, np.inf, -np.inf

    def found(v, m, x):
        more = (x.max(), x.min(), v.max(), v.min(), lax.cummax(x), lax.cummin(v), m.max())
        return (positions(v, m, jnp.where(jnp.isnan(x), 0.0, jnp.clip(x, -20, 20))), more,
                x.argmax(), x.argmin(), v.argmax(), v.argmin())  # fmt: skip

    same(found, v, TABLE, x)


def picks(v, x, order):
    small, same_type = 4 - jnp.arange(5), jnp.arange(5)
    return (
        (*map(selection.best, (v, x, x[:8], x[:9])), selection.best(x + v[0]).arm),
        (selection.argmax(x, order), selection.argmax(v, order[:5])),
        selection.argmax(jnp.where(v > 9, v, 0.0), small),
        (selection.argmax(jnp.abs(v), same_type), selection.best(jnp.arange(20.0) % 6)),
        selection.best(x[::-1]).value,
        selection.best(x.astype(jnp.float32)),
        selection.argmax(jnp.arange(50.0) % 6, order),
        (selection.best(v - jnp.inf), selection.argmax(v - jnp.inf, order[:5])),
        x[selection.best(x).arm],
        [(selection.best(x[:n]), selection.argmax(-x[:n], order[:n])) for n in range(1, 8)],
        (selection.best(x * 0.0), selection.argmax(x * 0.0, order)),  # zeros of both signs
    )  # fmt: skip


def test_best_and_argmax_equal_vmap():
    x, v = LONG.copy(), np.round(VECTOR)
    x[:, 4], v[:, 5] = -np.inf, -np.inf
    same(picks, v, x, np.stack([RNG.permutation(50) for _ in range(LANES)], 1))


def test_best_and_argmax_give_the_first_nan():
    x = LONG.copy()
    x[::3, 2], x[0, 5], x[49, 6], x[20:22, 4], x[:, 3] = np.nan, np.nan, np.nan, np.nan, np.nan
    x[:, 7] = -np.inf
    x[9, 7] = np.nan
    order = np.stack([RNG.permutation(50) for _ in range(LANES)], 1)
    picked = same(lambda x, o: (selection.best(x), selection.argmax(x, o)), x, order)
    spoilt = np.isnan(x).any(0)
    np.testing.assert_array_equal(picked[0].arm, x.argmax(0))
    np.testing.assert_array_equal(picked[1][spoilt], x.argmax(0)[spoilt])


def test_argmax_with_orders_in_int32_equals_vmap():
    order = np.stack([RNG.permutation(50) for _ in range(LANES)], 1).astype(np.int32)
    same(selection.argmax, LONG, order)


def custom(v, m, x):
    def longest(one, two):
        wins = jnp.abs(one[0]) >= jnp.abs(two[0])
        return tuple(jnp.where(wins, a, b) for a, b in zip(one, two, strict=True))

    positions = jnp.arange(50)
    zero = jnp.zeros(()), jnp.zeros((), int)
    rows = m, jnp.broadcast_to(jnp.arange(5), m.shape)
    return (
        lax.reduce((x, positions), zero, longest, (0,)),
        lax.reduce(rows, zero, longest, (1,)),
        lax.reduce(m, 0.5, lambda a, b: 0.5 * a + b, (0, 1)),
        lax.reduce((positions * 1.0, positions), zero, longest, (0,)),
    )


def test_custom_reducers_equal_vmap():
    same(custom, VECTOR, TABLE, LONG)


@pytest.mark.parametrize("lanes", [32, 48])
def test_more_lanes_give_the_same_numbers(lanes):
    many = [np.concatenate([x] * 3, -1)[..., :lanes] for x in (VECTOR, TABLE, LONG)]

    def function(v, m, x):
        return m @ v, x.sum(), x.argmax(), v[:, None] * v, v > 0

    found = by_native(function, *map(jnp.asarray, many))
    first = by_native(function, *map(jnp.asarray, (VECTOR, TABLE, LONG)))
    repeated = jax.tree.map(lambda x: np.concatenate([x] * 3, -1)[..., :lanes], first)
    equal(found, repeated, rtol=0)
