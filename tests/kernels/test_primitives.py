"""The package's own JAX primitives under `jit`, `vmap` and differentiation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive

from jaxbandits.compilers.jaxprs import name_of, rule_for
from jaxbandits.kernels import selection
from jaxbandits.kernels.linalg import spd
from jaxbandits.kernels.shared_call import ONCE_FOR_EQUAL, once_for_equal

RNG = np.random.default_rng(5)
VALUES = RNG.normal(size=(2, 3, 6))
HALF = RNG.normal(size=(2, 3, 4, 6))
MATRICES = HALF @ np.swapaxes(HALF, -1, -2)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def kernels(values, matrix):
    best, arm = selection.best(values), selection.argmax(values, jnp.arange(values.size))
    shared = once_for_equal(lambda v: (v * values).sum())
    partial = tuple(spd.partial_inverse(matrix, 1e-12))
    return best.value, best.arm, arm, spd.inverse(matrix)[:3], shared(values), partial


def expected(values, matrices):
    positive = np.ones(values.shape[:-1], bool)
    inverse, squares = np.linalg.inv(matrices), (values**2).sum(-1)
    whole = inverse, np.linalg.slogdet(matrices)[1], positive
    partial = inverse, np.ones(matrices.shape[:-1], bool)
    return values.max(-1), values.argmax(-1), values.argmax(-1), whole, squares, partial


def close(found, right):
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-9), found, right)


def test_results_are_the_same_under_jit_vmap_and_scan():
    assert selection.best(jnp.asarray(VALUES[0, 0])) == (VALUES[0, 0].argmax(), VALUES[0, 0].max())
    once, twice = jax.vmap(kernels), jax.vmap(jax.vmap(kernels))
    close(jax.jit(once)(VALUES[0], MATRICES[0]), expected(VALUES[0], MATRICES[0]))
    close(jax.jit(twice)(VALUES, MATRICES), expected(VALUES, MATRICES))
    rows = jax.jit(lambda v, m: jax.lax.scan(lambda c, x: (c, once(*x)), 0, (v, m))[1])
    close(rows(VALUES, MATRICES), expected(VALUES, MATRICES))


def test_vmap_keeps_the_primitive():
    closed = jax.make_jaxpr(jax.vmap(jax.vmap(kernels)))(VALUES, MATRICES)
    found = {eqn.primitive for eqn in closed.eqns}
    of_linalg = {spd.SWEEP_COLUMNS, spd.SWEEP_LARGEST}
    assert {selection.PICK_BEST, selection.PICK_ARGMAX, ONCE_FOR_EQUAL} | of_linalg <= found


def test_what_is_traced_in_double_precision_is_compiled_in_it():
    traced = jax.jit(kernels).trace(VALUES[0, 0], MATRICES[0, 0])
    with jax.enable_x64(False):
        lowered = traced.lower()
    assert [x.dtype for x in jax.tree.leaves(lowered.out_info)][:3] == [float, int, int]


def test_the_gradient_of_a_maximum_is_that_of_its_entry():
    gradient = jax.jit(jax.vmap(jax.grad(lambda v: selection.best(v).value)))(VALUES[0])
    np.testing.assert_array_equal(gradient, np.eye(6)[VALUES[0].argmax(-1)])

    def looked_up(v):
        return v[selection.argmax(v, jnp.arange(6))] ** 2 + v[selection.best(v).arm]

    gradient, first = jax.jit(jax.grad(looked_up))(VALUES[0, 0]), VALUES[0, 0].argmax()
    np.testing.assert_allclose(gradient, np.eye(6)[first] * (2 * VALUES[0, 0, first] + 1))


def test_derivatives_of_an_inverse_have_their_closed_form():
    matrix, change = MATRICES[0, 0], MATRICES[1, 1]
    _, found = jax.jit(lambda *x: jax.jvp(lambda m: spd.inverse(m)[:2], *x))((matrix,), (change,))
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found[0], -inverse @ change @ inverse, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[1], np.trace(inverse @ change))
    squares = jax.grad(lambda v: once_for_equal(lambda x: (x * v).sum())(v))
    gradient = jax.jit(squares)(VALUES[0, 0])
    np.testing.assert_allclose(gradient, 2 * VALUES[0, 0])


def test_unused_results_are_not_computed():
    @once_for_equal
    def two(v):
        return jnp.sin(v), jnp.cos(v)

    text = jax.jit(lambda v: two(v)[0]).lower(VALUES[0, 0]).as_text()
    assert "sine" in text
    closed = jax.make_jaxpr(lambda v: two(v)[0])(VALUES[0, 0])
    jaxpr, _ = jax.interpreters.partial_eval.dce_jaxpr(closed.jaxpr, [True])
    assert "sin" in str(jaxpr)
    assert "cos" not in str(jaxpr)


def named(name):
    """A primitive that is not the package's or JAX's."""
    made = Primitive(name)
    made.def_abstract_eval(lambda x: x)
    return made


def test_rules_are_found_by_primitive_and_not_by_name():
    ours = jax.make_jaxpr(jnp.sin)(1.0).eqns[0]
    other = jax.make_jaxpr(named("sin").bind)(1.0).eqns[0]
    assert (name_of(ours), name_of(other)) == ("sin", None)
    assert (rule_for(ours, {"sin": 1}), rule_for(other, {"sin": 1})) == (1, None)
    best = jax.make_jaxpr(selection.best)(VALUES[0, 0]).eqns[0]
    assert rule_for(best, {"pick_best": 1}) is None
    assert rule_for(best, {selection.PICK_BEST: 1}) == 1
