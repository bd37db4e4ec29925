"""Costly operations that do not depend on a function's arguments are computed once, outside."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.compilers.jaxprs import has_operation
from jaxbandits.compilers.shared_parts import COSTLY, LARGE, shared_parts

TABLE = np.arange(12.0).reshape(3, 4) / 7
SHAPE = jax.ShapeDtypeStruct((), float)
close = partial(np.testing.assert_allclose, rtol=1e-6)


def halved(x):
    """A loop."""
    return lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x)


def mixed(table, x):
    """Costly things of the table alone, of x alone and of both, in nested calls too."""
    gram = table.T @ table
    inner = jax.jit(lambda gram, x: (halved(gram.sum()), gram * x, jnp.sort(gram[0])))
    size, scaled, ordered = inner(gram + 1.0, x)
    key = jax.random.fold_in(jax.random.key(3), jnp.asarray(10 * x, int))
    return {
        "both": scaled @ table.T,
        "own": halved(x * 100.0),
        "cheap": x + size,
        "table": ordered,
        "key": jax.random.uniform(key),
        "same": x,
        "constant": jnp.ones(3),
    }


def operations_in(function, *args):
    """How many operations of a traced function are costly."""
    return sum(has_operation(eqn, COSTLY) for eqn in jax.make_jaxpr(function)(*args).eqns)


def test_the_numbers_are_the_same():
    rest = shared_parts(lambda x: mixed(TABLE, x), SHAPE)
    for x in (0.3, 2.0, 7.5):
        jax.tree.map(close, rest(jnp.asarray(x)), mixed(TABLE, x))


def test_what_depends_on_the_arguments_alone_is_left():
    rest = shared_parts(lambda x: mixed(TABLE, x), SHAPE)
    # The loop of x, and the product of both; not the loop, product and sorting of the table.
    assert operations_in(rest, 1.0) == 2
    assert operations_in(lambda x: mixed(TABLE, x), 1.0) > 2


def test_in_a_trace_they_are_computed_outside():
    def program(table, xs):
        rest = shared_parts(lambda x: mixed(table, x)["cheap"], SHAPE)
        return lax.map(rest, xs)

    xs = jnp.array([0.3, 2.0])
    eqns = jax.make_jaxpr(program)(TABLE, xs).eqns
    (scan,) = [eqn for eqn in eqns if eqn.primitive.name == "scan"]
    inside = [has_operation(eqn, COSTLY) for eqn in scan.params["jaxpr"].eqns]
    outside = [has_operation(eqn, COSTLY) for eqn in eqns if eqn is not scan]
    assert sum(inside) == 2  # as in the test above
    assert sum(outside) == 3
    expected = [mixed(TABLE, x)["cheap"] for x in xs]
    np.testing.assert_array_equal(jax.jit(program)(TABLE, xs), expected)


def test_large_tables_are_computed_outside_and_small_ones_are_not():
    def total(table, x):
        return (table * 2.0 + 1.0).sum() * x

    for number, left in ((LARGE + 1, 1), (LARGE, 4)):
        table = jnp.ones(number)
        rest = shared_parts(lambda x, table=table: total(table, x), SHAPE)
        assert len(jax.make_jaxpr(rest)(1.0).eqns) == left
        np.testing.assert_allclose(rest(2.0), total(table, 2.0))


def test_branches_and_own_derivatives_stay_whole():
    def one(x):
        chosen = lax.cond(x > 1.0, lambda: jnp.sort(TABLE[0])[0] + x, lambda: x)
        return chosen + jax.nn.relu(x) + jax.scipy.special.logsumexp(TABLE[1])

    rest = shared_parts(one, SHAPE)
    for x in (0.5, 2.0):
        np.testing.assert_array_equal(rest(jnp.asarray(x)), one(jnp.asarray(x)))
