"""Fits from the fit before one more draw."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihoods import data, fit

from jaxbandits.kernels.estimate import chord, irls


def one_draw_later(family):
    """The fit before a draw of arm 2; arms, counts and reward sums after it."""
    arms, counts, sums = data(family)
    with jax.enable_x64(True):
        before = fit(arms, counts, sums, family, tol=1e-6)
    drawn = np.arange(len(counts)) == 2
    return before, (arms, counts + drawn, sums + drawn)


@pytest.mark.parametrize(
    "family",
    ["logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("poisson", "probit"))],
)
def test_the_inverse_of_the_fit_before_saves_newton_steps(family):
    before, tables = one_draw_later(family)
    arms = tables[0]
    with jax.enable_x64(True):
        arrays = [jnp.array(x, float) for x in tables]
        near, slope = irls.after_draw(before, family, jnp.array(arms[2]), jnp.array(1.0))
        options = {"family": family, "ridge": 0.0, "init": before.theta, "tol": 1e-6}
        found = jax.jit(lambda: irls.fit(*arrays, inverse=near, **options))()
        told = jax.jit(lambda: irls.fit(*arrays, inverse=near, slope=slope, **options))()
        lie = chord.Slope(-100.0 * slope.gradient)
        misled = jax.jit(lambda: irls.fit(*arrays, inverse=near, slope=lie, **options))()
        unknown = lie._replace(known=jnp.array(False))
        untold = jax.jit(lambda: irls.fit(*arrays, inverse=near, slope=unknown, **options))()
        plain = jax.jit(lambda: irls.fit(*arrays, **options))()
        useless = 1e6 * jnp.eye(arms.shape[1])
        wrong = jax.jit(lambda: irls.fit(*arrays, inverse=useless, **options))()
    assert (int(found.iterations), int(plain.iterations)) == (0, 1)
    assert (int(told.iterations), int(untold.iterations)) == (0, 0)
    np.testing.assert_allclose(untold.theta, found.theta, rtol=1e-10)
    exact = fit(*tables, family).theta
    for one in (found, plain, wrong, told, misled):
        assert bool(one.converged)
        np.testing.assert_allclose(one.theta, exact, rtol=1e-4)
        np.testing.assert_allclose(one.factor @ one.factor.T, one.hessian, rtol=1e-9)


@pytest.mark.parametrize("family", ["logistic", "poisson", "probit", "gaussian"])
@pytest.mark.parametrize("start", ["after a draw", "useless", "not a number"])
@pytest.mark.parametrize("told", [False, True])
def test_estimate_with_an_old_inverse_and_where_that_is_none(family, start, told):
    before, tables = one_draw_later(family)
    arms = tables[0]
    with jax.enable_x64(True):
        arrays = [jnp.array(x, float) for x in tables]
        near, slope = irls.after_draw(before, family, jnp.array(arms[2]), jnp.array(1.0))
        inverse = {
            "after a draw": near,
            "useless": 1e6 * jnp.eye(arms.shape[1]),
            "not a number": jnp.full((arms.shape[1],) * 2, jnp.nan),
        }[start]
        options = {"family": family, "ridge": 0.0, "init": before.theta, "tol": 1e-6}
        slope = slope if told else None
        found = jax.jit(lambda: irls.estimate(*arrays, inverse=inverse, slope=slope, **options))()
        exact = fit(*tables, family)
    assert bool(found.converged)
    assert int(found.status) == irls.CONVERGED
    assert float(found.decrement) <= 1e-6
    np.testing.assert_allclose(found.theta, exact.theta, rtol=1e-4)
    if start == "after a draw":
        assert int(found.iterations) == 0
        np.testing.assert_array_equal(found.inverse, inverse)
    else:  # the inverse is that of a Hessian one short step before theta
        np.testing.assert_allclose(found.inverse @ exact.hessian, np.eye(len(inverse)), atol=0.05)


def test_estimate_says_when_it_stops_short():
    arms, counts, sums = data("logistic")
    with jax.enable_x64(True):
        tables = [jnp.array(x, float) for x in (arms, counts, sums)]
        options = {"family": "logistic", "ridge": 0.0, "init": jnp.zeros(arms.shape[1])}
        inverse = jnp.eye(arms.shape[1])
        capped = irls.estimate(*tables, inverse=inverse, max_iterations=0, tol=1e-12, **options)
        tables[2] = tables[2].at[0].set(jnp.nan)
        broken = irls.estimate(*tables, inverse=inverse, **options)
    assert (int(capped.status), bool(capped.converged)) == (irls.CAPPED, False)
    assert not bool(broken.converged)
    assert int(broken.status) in (irls.NONFINITE, irls.STALLED)


class Bowl(NamedTuple):
    """A quadratic function with its minimum at `end`."""

    hessian: jax.Array
    end: jax.Array

    def gradient(self, theta):
        return self.hessian @ (theta - self.end)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_steps_with_an_old_inverse_go_down(steps):
    """Each is `theta - B g`, as many as allowed; the first one is made before they are counted."""
    with jax.enable_x64(True):
        problem = Bowl(jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, -2.0]))
        inverse, begin = 0.9 * jnp.linalg.inv(problem.hessian), jnp.array([3.0, 3.0])
        found = chord.follow(problem, begin, inverse, lambda now: jnp.array(False), steps)
        known = chord.Slope(problem.gradient(begin))
        told = chord.follow(problem, begin, inverse, lambda now: jnp.array(False), steps, known)
    off = np.asarray(begin - problem.end)
    np.testing.assert_allclose(found.theta - problem.end, off * 0.1**steps, rtol=1e-9)
    np.testing.assert_allclose(told.theta - problem.end, off * 0.1 ** (steps + 1), rtol=1e-9)
    left = off * 0.1**steps
    np.testing.assert_allclose(found.decrement, 0.45 * left @ problem.hessian @ left, rtol=1e-9)
    assert bool(found.closing & told.closing)
