import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun

from jaxbandits.compilers.cpp.unused import without_unused
from jaxbandits.compilers.jaxprs import jaxprs_in, name_of
from jaxbandits.kernels.linalg import spd


def shortened(function, *args):
    """The jaxpr of a function without what is not needed; its results are still the same."""
    closed = jax.make_jaxpr(function)(*args)
    short = closed.replace(jaxpr=without_unused(closed.jaxpr))
    leaves = jax.tree.leaves(args)
    for one, two in zip(jaxpr_as_fun(short)(*leaves), jaxpr_as_fun(closed)(*leaves), strict=True):
        np.testing.assert_array_equal(one, two)
    return short.jaxpr


def names(jaxpr):
    """The operations of a jaxpr, those of loops and calls included."""
    inner = [x for eqn in jaxpr.eqns for part in jaxprs_in(eqn) for x in names(part)]
    return [*map(name_of, jaxpr.eqns), *inner]


def loop_of(jaxpr):
    (loop,) = [eqn for eqn in jaxpr.eqns if name_of(eqn) == "while"]
    return loop


def test_a_log_determinant_that_nobody_reads_is_not_computed():
    def solved(matrix, x):
        def step(carry):
            i, x = carry
            return i + 1, spd.inverse(matrix).matrix @ x

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x))[1]

    matrix, x = 2.0 * jnp.eye(3), jnp.ones(3)
    assert "log" in names(jax.make_jaxpr(solved)(matrix, x).jaxpr)
    found = names(shortened(solved, matrix, x))
    assert "log" not in found
    assert "div" in found  # the sweep itself


def test_a_loop_carries_only_what_results_and_its_condition_depend_on():
    def last(x):
        def step(carry):
            a, b, c, i, alone, _ = carry
            return a + b, b * c, c + 1.0, i + 1, jnp.sin(alone), jnp.cos(a)

        carry = x, x, x, 0, x, x
        return lax.while_loop(lambda carry: carry[3] < 4, step, carry)[0]

    jaxpr = shortened(last, 1.5)
    assert len(loop_of(jaxpr).outvars) == 4  # a, b, c, i
    assert not {"sin", "cos"} & set(names(jaxpr))


def test_what_only_an_unread_number_needs_is_not_computed_before_the_loop():
    def counted(x):
        def step(carry):
            i, y = carry
            return i + 1, y * x

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, jnp.tanh(x)))[0]

    assert not {"tanh", "mul"} & set(names(shortened(counted, 0.5)))


def test_what_only_an_unread_number_of_an_inner_loop_reads_is_not_computed():
    def outer(x):
        def step(carry):
            i, y, unread = carry

            def inner(carry):
                j, z, dead = carry
                return j + 1, 2.0 * z, dead + unread

            y = lax.while_loop(lambda carry: carry[0] < 2, inner, (0, y, 0.0))[1]
            return i + 1, y, jnp.cos(unread)

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x, jnp.tanh(x)))[1]

    assert not {"cos", "tanh"} & set(names(shortened(outer, 1.0)))


def test_constants_that_only_an_unread_number_reads_are_not_computed():
    def outer(x):
        unread = jnp.tanh(x)

        def step(carry):
            i, y, dead = carry
            return i + 1, 2.0 * y, dead + unread

        return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x, 0.0))[1]

    assert "tanh" not in names(shortened(outer, 1.0))


def test_a_condition_that_reads_a_number_keeps_it():
    def tested(x):
        def step(carry):
            i, y = carry
            return i + 1, 2.0 * y

        return lax.while_loop(lambda carry: carry[1] < 100.0, step, (0, x))[0]

    assert len(loop_of(shortened(tested, 3.0)).outvars) == 2


def test_loops_within_branches_scans_and_loops_are_shortened():
    def inner(x):
        def step(carry):
            i, y, z = carry
            return i + 1, y + 1.0, jnp.sin(z)

        return lax.while_loop(lambda carry: carry[0] < 2, step, (0, x, x))[1]

    def outer(x):
        y = lax.cond(x > 0, inner, lambda x: x, x)
        z = lax.scan(lambda carry, _: (inner(carry), None), x, None, length=2)[0]
        return y + z + lax.while_loop(lambda a: a < 9.0, inner, x) + jax.jit(inner)(x)

    assert "sin" not in names(shortened(outer, 1.0))


def test_a_function_that_is_called_twice_remains_one():
    def inner(x):
        grown = lambda a: (2.0 * a[0], jnp.sin(a[1]))  # noqa: E731
        return lax.while_loop(lambda a: a[0] < 9.0, grown, (x, x))[0]

    once = jax.jit(inner)
    jaxpr = shortened(lambda x: once(x) + once(x + 1.0), 1.0)
    first, second = (eqn.params["jaxpr"] for eqn in jaxpr.eqns if name_of(eqn) == "jit")
    assert first is second
