"""A user's functions and primitives that have the name of one with a rule of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, equal
from jax.extend.core import Primitive
from jax.interpreters import batching

from jaxbandits.compilers import cpp
from jaxbandits.compilers.cpp import writer
from jaxbandits.compilers.jaxprs import jax_primitives
from jaxbandits.compilers.lanewise import interpreter, lanewise

RNG = np.random.default_rng(15)
VALUES = RNG.normal(size=(5, LANES))
MATRICES = RNG.normal(size=(3, 3, LANES))
NEW = {"stack", "tile"}  # not in the oldest supported JAX


def pick_best(values):
    return values.min(), values.argmin()


def pick_argmax(values, order):
    return values.argmin() + order.sum()


def sweep_columns(matrix, least):
    return matrix * 2.0, matrix.sum() - least, matrix[0, 0] > 5, matrix[:, :, None]


def sweep_largest(matrix, pivots, negligible):
    return matrix + pivots, pivots > negligible


def once_for_equal(values):
    return values * 3.0


def of_a_user(v, m):
    own = map(jax.jit, (pick_best, pick_argmax, sweep_columns, sweep_largest, once_for_equal))
    best, argmax, sweep, swept, once = own
    return best(v), argmax(v, jnp.arange(5)), sweep(m, 0.5), swept(m, m[0], 0.5), once(v)


def test_a_users_functions_are_not_taken_for_primitives_of_the_same_name():
    expected = jax.vmap(of_a_user, -1, -1)(VALUES, MATRICES)
    equal(by_native(of_a_user, VALUES, MATRICES), expected)
    by_lanes = jax.jit(lambda v, m, unit: lanewise(of_a_user, LANES, unit)(v, m))
    equal(by_lanes(VALUES, MATRICES, 1.0), expected)


def test_a_users_primitive_is_not_taken_for_that_of_jax():
    made = Primitive("sin")
    made.def_abstract_eval(lambda x: x)
    batching.primitive_batchers[made] = lambda xs, axes: (-xs[0], axes[0])
    with pytest.raises(cpp.Unsupported, match="'sin'"):
        by_native(made.bind, VALUES)
    closed = jax.make_jaxpr(lambda v: lanewise(made.bind, LANES, 1.0)(v))(VALUES)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["neg"]


def test_every_rule_belongs_to_a_primitive_of_jax():
    known = {x.name for x in jax_primitives()}
    for rules in (interpreter.RULES, writer.RULES):
        names = {x for x in rules if isinstance(x, str)}
        assert names - known <= NEW
        assert len(names & known) > 50
