"""Tables that are known when a program is written are computed there, as JAX computes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import same
from jax import lax

from jaxbandits.compilers.cpp import known, program

N, FLAGS = np.arange(6).reshape(2, 3), np.array([[True, False, True], [False, False, True]])
X = np.array([[0.5, -0.0, np.inf], [np.nan, 1e300, -3.0]])
OPERATIONS = {
    "add": (lambda a, b: a + b, N, N[::-1]),
    "add floats": (lambda a, b: a + b, X, X[::-1]),
    "sub": (lambda a, b: a - b, N, np.full((2, 3), 4)),
    "mul": (lambda a, b: a * b, N, np.full((2, 3), 2**62)),  # wraps
    "neg": (lambda a: -a, N.astype(np.uint32)),
    "and": (lambda a, b: a & b, N, N[::-1]),
    "or": (lambda a, b: a | b, FLAGS, FLAGS[::-1]),
    "xor": (lambda a, b: a ^ b, N, N[::-1]),
    "not": (lambda a: ~a, FLAGS),
    "eq": (lambda a, b: a == b, X, X),
    "lt": (lambda a, b: a < b, X, X[::-1]),
    "max": (lax.max, N, N[::-1]),
    "clamp": (lambda a: lax.clamp(1, a, 4), N),
    "select_n": (lax.select_n, FLAGS, X, X[::-1]),
    "flags as numbers": (lambda a: a.astype(float), FLAGS),
    "shorter numbers": (lambda a: a.astype(np.int32), N + 2**32),
    "numbers as flags": (lambda a: a.astype(bool), N),
    "broadcast_in_dim": (lambda a: lax.broadcast_in_dim(a, (2, 4, 3), (0, 2)), N),
    "slice": (lambda a: lax.slice(a, (0, 1), (2, 3), (1, 2)), N),
    "transpose": (lambda a: a.T, N),
    "rev": (lambda a: lax.rev(a, (1,)), N),
    "reshape": (lambda a: a.reshape(3, 2), N),
    "squeeze": (lambda a: lax.squeeze(a, (0,)), N[None]),
    "concatenate": (lambda a, b: lax.concatenate([a, b], 1), N, np.full((2, 2), 7)),
    "concatenate equal ones": (lambda a, b: lax.concatenate([a, b], 0), np.zeros(2), np.ones(2)),
    "reduce_sum": (lambda a: a.sum(1), N),
    "reduce_max": (lambda a: lax.reduce_max(a, (0,)), N),
    "reduce_and": (lambda a: a.all(0), FLAGS),
    "iota": (lambda: lax.broadcasted_iota(int, (2, 3), 1),),
}


def evaluated(function, *tables):
    """The result of a function by `folded`, equation by equation."""
    closed = jax.make_jaxpr(function)(*tables)
    values = dict(zip(closed.jaxpr.invars, tables, strict=True))
    for eqn in closed.jaxpr.eqns:
        operands = [
            np.asarray(x.val, x.aval.dtype) if hasattr(x, "val") else values[x] for x in eqn.invars
        ]
        found = known.folded(eqn, operands)
        assert found is not None, eqn
        values[eqn.outvars[0]] = found
    return values[closed.jaxpr.outvars[0]]


@pytest.mark.parametrize("equal", [False, True], ids=["different", "all equal"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_known_table_is_that_of_jax(name, equal):
    function, *tables = OPERATIONS[name]
    if equal:
        tables = [np.broadcast_to(x.flat[-1], x.shape) for x in tables]
    with jax.enable_x64(True):
        expected, found = (
            np.asarray(function(*map(jnp.asarray, tables))),
            evaluated(function, *tables),
        )
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.ascontiguousarray(found).tobytes() == expected.tobytes()  # signs of zeros too


def test_zeros_of_both_signs_are_not_taken_for_equal():
    with jax.enable_x64(True):
        found = evaluated(lambda a: a + (-0.0), np.array([0.0, -0.0]))
    assert np.signbit(found).tolist() == [False, True]


@pytest.mark.parametrize(
    ("function", "tables"),
    [
        (lambda a: a.astype(int), [X]),  # NaN and infinity have no integer
        (lax.max, [X, X[::-1]]),
        (lambda a, b: a + b, [np.arange(200), np.arange(200)]),
        (jnp.sin, [X]),
    ],
    ids=["floats as integers", "larger floats", "long", "a function"],
)
def test_other_tables_are_left_to_the_compiler(function, tables):
    with jax.enable_x64(True):
        closed = jax.make_jaxpr(function)(*tables)
        assert known.folded(closed.jaxpr.eqns[0], tables) is None


def diagonal(x):
    """Positions along a diagonal, selections by them, and sums up to each."""
    rows = jnp.arange(3)
    below = rows[:, None] >= rows
    table = jnp.where(below, x, 0.0).at[rows, rows].add(rows * 0.5)
    return table, table[rows, rows[::-1]], x[jnp.array([2, 0, 5]), rows], jnp.diag(jnp.diag(x))


def test_programs_with_known_positions_equal_vmap():
    rng = np.random.default_rng(0)
    same(diagonal, rng.normal(size=(3, 3, 16)))


def source(function, *shapes):
    closed = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(x, np.float64) for x in shapes))
    return program.write(closed)


def test_known_positions_leave_neither_bounds_nor_selections():
    with jax.enable_x64(True):
        block = "\n".join(source(diagonal, (3, 3)).block)
    assert "v_" in block
    for function in ("min_i64", "max_i64", "select_"):
        assert function not in block


def test_a_loop_reads_known_entries_from_a_constant_array():
    def function(x):
        weights = jnp.arange(40) * 3 + 1
        return (x * weights).sum()

    with jax.enable_x64(True):
        assert "static const f64" in "\n".join(source(function, (40,)).block)
    same(function, np.random.default_rng(1).normal(size=(40, 16)))


def test_long_programs_have_one_group_of_lanes():
    def function(number):
        def repeated(x):
            for _ in range(number):
                x = x * x + 1.0
            return x

        return repeated

    with jax.enable_x64(True):
        assert source(function(20), (2,)).groups == 2
        assert source(function(400), (2,)).groups == 1


def test_operations_without_a_rule_are_left_to_the_surrounding_program():
    table = jnp.array([[2, 1], [1, 2]])

    def function(x):
        return x @ jnp.linalg.cholesky(table.astype(float)), x[0] * jax.lax.population_count(3)

    same(function, np.random.default_rng(2).normal(size=(2, 16)))


def test_no_large_table_is_made_for_a_sum():
    with jax.enable_x64(True):
        closed = jax.make_jaxpr(lambda a: a.sum())(np.zeros(1000, int))
    assert known.folded(closed.jaxpr.eqns[0], [np.broadcast_to(1, 10**12)]) is None
