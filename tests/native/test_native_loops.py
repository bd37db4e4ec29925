import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, same
from jax import lax
from loops import collatz
from params import params

from jaxbandits.compilers.cpp import program

RNG = np.random.default_rng(6)
VALUES = RNG.normal(size=(6, LANES))
TABLE = RNG.normal(size=(3, 3, LANES))
TIMES = RNG.integers(0, 9, LANES)


def counted(v, m, n):
    def swap(i, carry):
        a, b = carry
        return b, a + v[i % 6]

    return (
        lax.fori_loop(0, 5, lambda i, x: x * 0.5 + i, v),
        lax.fori_loop(0, n, lambda i, x: x * 0.5 + i, v),
        lax.fori_loop(n, 7, lambda i, x: x + i, 0),
        lax.fori_loop(2, 2, lambda i, x: x * 2, v),
        lax.fori_loop(0, n, swap, (v[0], 0.0)),
        lax.fori_loop(0, 3, swap, (0.0, v[1])),
        lax.fori_loop(0, n, lambda i, x: x.at[i % 6].add(1.0), v),
        lax.fori_loop(0, 3, lambda i, x: x.at[:, i].set(x[i] + x[:, i]), m),
        collatz(n),
        lax.fori_loop(0, 4, lambda i, x: x * 2 + 1, 1) + n,
    )


def test_loops_of_fixed_and_of_each_lanes_own_length_equal_vmap():
    found = same(counted, VALUES, TABLE, TIMES)
    np.testing.assert_array_equal(found[3], VALUES)


def nested(v, n):
    def inner(carry):
        x, k = carry
        length = (k + n) % 4
        grown = lax.while_loop(
            lambda c: c[1] < length, lambda c: (c[0] * 1.1 + v, c[1] + 1), (x, 0)
        )
        some = lax.cond(k % 2 == 0, lambda: lax.fori_loop(0, k, lambda _, y: y - 0.5, grown[0]),
                        lambda: grown[0].at[k % 6].set(0.0))  # fmt: skip
        return some, k + 1

    loop = lax.while_loop(lambda c: c[1] < n, inner, (v, 0))
    rare = lax.cond(n > 4, lambda: collatz(n), lambda: (n, -1))
    scanned = lax.cond(v[0] > 0, lambda: lax.scan(lambda c, x: (c + x, c), 0.0, v)[1], lambda: v)
    return loop, rare, scanned, lax.fori_loop(0, 3, lambda i, c: c + collatz(n + i)[1], 0)


@pytest.mark.parametrize("lanes", [16, 48])
def test_nested_loops_and_branches_equal_vmap(lanes):
    rng = np.random.default_rng(7)
    same(nested, rng.normal(size=(6, lanes)), rng.integers(0, 9, lanes))


def test_a_loop_runs_only_in_lanes_that_take_its_branch():
    def function(n):
        return lax.cond(
            n > 0, lambda: lax.while_loop(lambda x: x != 0, lambda x: x - 1, n), lambda: n
        )

    # Under `jax.vmap` both branches run, and this would not end.
    n = np.arange(LANES) - 8
    np.testing.assert_array_equal(by_native(function, n), np.minimum(n, 0))


def scans(v, m, n):
    def running(carry, x):
        total, steps = carry
        return (total + x * v[0], steps + 1), (total, steps, x)

    def fibonacci(carry, _):
        a, b = carry
        return (b, a + b), a

    def rotated(carry, x):
        a, b, c = carry
        return (b + x, c, a), (a, c)

    def pairs(carry, x):
        i, (row, w) = carry, x
        return i + 1, row @ v[:3] * w + i

    shared = jnp.arange(6.0)
    return (
        lax.scan(running, (jnp.zeros(()), 0), shared),
        lax.scan(running, (v[1], n), v, reverse=True),
        lax.scan(fibonacci, (v[0], v[1]), None, length=7),
        lax.scan(fibonacci, (jnp.float64(1.0), v[1]), None, length=6),
        lax.scan(rotated, (v[0], v[1], jnp.zeros(())), v[2:]),
        lax.scan(pairs, 0, (m, v[:3]), reverse=True),
        lax.scan(lambda c, x: (c, x * 2), v, m),
        lax.scan(lambda c, x: (x, c), m[0], m),
        lax.scan(lambda c, _: (c + 1, c), 0, None, length=3)[1] * v[0],
        lax.map(lambda row: row.sum() + n, m),
        lax.scan(lambda c, x: (c + x, None), n, jnp.arange(4)),
        lax.scan(lambda c, x: (c + x[0], x > 0), 0.0, m),
        lax.scan(lambda c, x: (c, c), v, None, length=0)[0],
        lax.scan(running, (v[1], 0), v, unroll=2),
    )


def test_scans_equal_vmap():
    same(scans, VALUES, TABLE, TIMES)


# Each step changes a part of its carry and reads the part before or after the change.
HAZARDS = {
    "old read first": lambda a, b, i: ((t := a.sum()), (a.at[i].set(t), b + t))[1],
    "old read last": lambda a, b, i: ((n := a.at[i].set(b[0])), (n, b + a))[1],
    "new read": lambda a, b, i: ((n := a.at[i].add(1.0)), (n, b * 0.5 + n))[1],
    "swapped": lambda a, b, i: (b, a),
    "swapped and changed": lambda a, b, i: (b.at[i].set(a[0]), a),
    "swapped, both changed": lambda a, b, i: (b.at[i].set(2.0), a.at[0].add(b[i])),
    "swapped, changed by itself": lambda a, b, i: (b.at[i].add(1.0), a.at[1].mul(0.5)),
    "reversed": lambda a, b, i: (a[::-1], b[::-1] + a),
    "shifted": lambda a, b, i: (jnp.roll(a, 1), jnp.append(b[1:], a[0])),
    "shifted in place": lambda a, b, i: (a.at[1:].set(a[:-1]), b),
    "changed twice": lambda a, b, i: (a.at[i].set(1.0).at[0].add(a[i]), b + a[i]),
    "both the same": lambda a, b, i: ((n := a.at[i].add(b[i])), (n, n))[1],
    "both the old": lambda a, b, i: (a, a),
    "one from the other": lambda a, b, i: (b * 2, a.at[i].set(b[i]) - b),
    "entry by entry": lambda a, b, i: (a * 0.9 + b, b * 0.9 - a),
    "a late view": lambda a, b, i: ((r := a[::-1]), (a.at[i].set(9.0), r * 2 + b))[1],
    "a choice": lambda a, b, i: (jnp.where(a > b, a, b), jnp.where(a > b, b, a)),
    "a branch": lambda a, b, i: lax.cond(
        a[0] > b[0], lambda: (b, a.at[i].set(0.0)), lambda: (a, b)
    ),
    "a branch of each": lambda a, b, i: (
        lax.cond(b[i] > 0, lambda x: x.at[i].set(5.0), jnp.sin, a),
        a,
    ),
    "a call": lambda a, b, i: (jax.jit(lambda x: x.at[i].set(b[0]))(a), b + jax.jit(jnp.sum)(a)),
    "an update": lambda a, b, i: (lax.dynamic_update_slice(a, b[:2], (i,)), b.at[0].set(a[i])),
    "reshaped": lambda a, b, i: (a.reshape(2, 3).at[:, i % 3].set(0.5).reshape(-1), b + a),
    "turned": lambda a, b, i: (a.reshape(2, 3).T.reshape(-1), b),
    "read, then changed": lambda a, b, i: ((t := a[i] + b[i]), (a.at[i].set(t), b * t))[1],
    "a view, then changed": lambda a, b, i: ((r := a[::-1]), (a.at[i].set(r[0] + 1.0), b + a[i]))[
        1
    ],
    "another shape, then changed": lambda a, b, i: (
        (r := a.reshape(2, 3)),
        (a.at[i].set(7.0), r.T.reshape(-1) + a[i] * b),
    )[1],
    "by itself": lambda a, b, i: (a.at[i].set(a[0]).at[1].set(a[i]), b + a[i]),
    "a call with the same twice": lambda a, b, i: (
        jax.jit(lambda x, y: x.at[i].set(b[0]) + y)(a, a),
        b + a[i],
    ),
    "by an inner loop, after a view": lambda a, b, i: (
        (r := a[::-1]),
        (lax.fori_loop(0, 2, lambda k, x: x.at[k].add(x[i]), a), r + b),
    )[1],
    "after an inner loop": lambda a, b, i: (
        (n := lax.fori_loop(0, 2, lambda k, x: x.at[k].add(b[i]), a)),
        (n.at[i].set(n[0]), n[::-1]),
    )[1],
    "through an inner loop": lambda a, b, i: (
        lax.fori_loop(0, i, lambda k, x: x.at[k].add(b[k]), a),
        lax.fori_loop(0, 2, lambda k, x: x + a[k], b),
    ),
}


@pytest.mark.parametrize("part", params(range(4), always=["0", "3"]))
def test_a_carry_is_read_before_and_after_it_changes(part):
    steps = list(HAZARDS.values())[part::4]

    def function(v, n):
        w, results = v[::-1] * 2, []
        for step in steps:
            for index in (lambda k: k % 5, lambda k: (k + n) % 5):

                def body(k, carry, step=step, index=index):
                    return step(*carry, index(k))

                results.append(lax.fori_loop(0, 3, body, (v, w)))
                results.append(lax.fori_loop(0, n, body, (v, w)))
        return results

    same(function, VALUES, TIMES, rtol=1e-12, atol=1e-12)


def test_a_row_that_is_read_and_replaced_is_no_copy_of_its_table(monkeypatch):
    sources, write = [], program.write
    monkeypatch.setattr(program, "write", lambda *a: sources.append(write(*a)) or sources[-1])

    def function(v, n):
        def step(table, k):
            row = table[(k + n) % 40]
            return table.at[(k + n) % 40].set(row + v[0] * row.sum()), row[0]

        return lax.scan(step, jnp.outer(jnp.arange(40.0), jnp.arange(7.0)), jnp.arange(50))

    same(function, VALUES, TIMES, rtol=1e-12, atol=1e-12)
    assert sources[0].text.count("[280]") == 1


def test_updates_of_a_column_at_a_time_equal_vmap():
    def function(v, m):
        def step(carry, k):
            m, total = carry
            before = m[:, k]
            m = m.at[:, k].set(m @ v[:3])
            return (m, total + before.sum()), (before, m[:, k])

        return lax.scan(step, (m, 0.0), jnp.arange(3))

    same(function, VALUES, TABLE, rtol=1e-12, atol=1e-12)


def test_loops_give_the_same_numbers_in_any_lane():
    def function(v, n):
        return lax.fori_loop(0, n, lambda i, x: jnp.sin(x) + i, v)

    order = RNG.permutation(LANES)
    one = by_native(function, VALUES, TIMES)
    two = by_native(function, VALUES[:, order], TIMES[order])
    np.testing.assert_array_equal(np.asarray(one)[:, order], two)


def large(v):
    """Sixteen tables of 6000 entries, each too large for the stack."""

    def grown(i, tables):
        return tuple(table * 0.5 + tables[0][i] for table in tables)

    begin = tuple(jnp.outer(v, jnp.arange(1000.0)) + k for k in range(16))
    return sum(table.sum() for table in lax.fori_loop(0, 3, grown, begin))


def many(v):
    """Ninety tables of 2000 entries, each small enough for the stack, 11 MB together."""

    def grown(i, tables):
        return tuple(table * 0.5 + tables[0][i] for table in tables)

    begin = tuple(jnp.outer(v, jnp.arange(2000.0 / v.size)) + k for k in range(90))
    return sum(table.sum() for table in lax.fori_loop(0, 3, grown, begin))


@pytest.mark.parametrize("function", [large, pytest.param(many, marks=pytest.mark.slow)])
def test_arrays_too_large_for_the_stack_equal_vmap(function):
    same(function, VALUES)
