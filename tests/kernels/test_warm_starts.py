"""Fits that start from the fit before the latest draw."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihoods import D, data, fit
from params import params

from jaxbandits.kernels.estimate import chord, irls

# Numbers are arguments, so that a family has only two programs: with a slope and without.
estimate = jax.jit(irls.estimate, static_argnames="family")
refit = jax.jit(irls.fit, static_argnames="family")
after_draw = jax.jit(irls.after_draw, static_argnames="family")


@functools.cache
def one_draw_later(family):
    """The fit before a draw of arm 2; the inverse, the slope and the data after it."""
    arms, counts, sums = data(family)
    with jax.enable_x64(True):
        before = fit(arms, counts, sums, family, tol=1e-6)
        near, slope = after_draw(before, family, arms[2], np.float64(1.0))
    drawn = np.arange(len(counts)) == 2
    return before, near, slope, (arms, (counts + drawn).astype(float), sums + drawn)


@pytest.mark.parametrize(
    "family",
    ["logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("poisson", "probit"))],
)
def test_the_inverse_of_the_previous_fit_saves_newton_steps(family):
    before, near, slope, tables = one_draw_later(family)
    with jax.enable_x64(True):
        options = {"family": family, "ridge": 0.0, "init": before.theta, "tol": 1e-6}
        found = refit(*tables, inverse=near, **options)
        with_slope = refit(*tables, inverse=near, slope=slope, **options)
        false_slope = chord.Slope(-100.0 * np.asarray(slope.gradient))
        misled = refit(*tables, inverse=near, slope=false_slope, **options)
        unknown = false_slope._replace(known=False)
        without_slope = refit(*tables, inverse=near, slope=unknown, **options)
        plain = refit(*tables, **options)
        wrong = refit(*tables, inverse=1e6 * np.eye(D), **options)
    assert (int(found.iterations), int(plain.iterations)) == (0, 1)
    assert (int(with_slope.iterations), int(without_slope.iterations)) == (0, 0)
    np.testing.assert_allclose(without_slope.theta, found.theta, rtol=1e-10)
    exact = fit(*tables, family).theta
    for one in (found, plain, wrong, with_slope, misled):
        assert bool(one.converged)
        np.testing.assert_allclose(one.theta, exact, rtol=1e-4)
        factor = np.asarray(one.factor)
        np.testing.assert_allclose(factor @ factor.T, one.hessian, rtol=1e-9)


@pytest.mark.parametrize(
    "family", params(["logistic", "poisson", "probit", "gaussian"], slow=["gaussian", "probit"])
)
@pytest.mark.parametrize("start", ["after a draw", "useless", "not a number"])
@pytest.mark.parametrize("with_slope", [False, True])
def test_estimate_converges_from_any_old_inverse(family, start, with_slope):
    before, near, slope, tables = one_draw_later(family)
    inverse = {
        "after a draw": near,
        "useless": 1e6 * np.eye(D),
        "not a number": np.full((D, D), np.nan),
    }[start]
    with jax.enable_x64(True):
        options = {"family": family, "ridge": 0.0, "init": before.theta, "tol": 1e-6}
        options |= {"slope": slope} if with_slope else {}
        found = estimate(*tables, inverse=inverse, max_iterations=30, **options)
        exact = fit(*tables, family)
    assert bool(found.converged)
    assert int(found.status) == irls.CONVERGED
    assert float(found.decrement) <= 1e-6
    np.testing.assert_allclose(found.theta, exact.theta, rtol=1e-4)
    if start == "after a draw":
        assert int(found.iterations) == 0
        np.testing.assert_array_equal(found.inverse, inverse)
    else:  # the inverse is that of a Hessian one short step before theta
        product = np.asarray(found.inverse) @ np.asarray(exact.hessian)
        np.testing.assert_allclose(product, np.eye(D), atol=0.05)


def test_estimate_reports_that_it_has_not_converged():
    tables = [x.astype(float) for x in data("logistic")]
    options = {"family": "logistic", "ridge": 0.0, "init": np.zeros(D), "inverse": np.eye(D)}
    with jax.enable_x64(True):
        capped = estimate(*tables, max_iterations=0, tol=1e-12, **options)
        # A copy, as a program that has been called may still read the array.
        tables[2] = np.where(np.arange(len(tables[2])) == 0, np.nan, tables[2])
        broken = estimate(*tables, max_iterations=30, tol=1e-6, **options)
    assert (int(capped.status), bool(capped.converged)) == (irls.CAPPED, False)
    assert not bool(broken.converged)
    assert int(broken.status) in (irls.NONFINITE, irls.STALLED)


class Bowl(NamedTuple):
    """A quadratic function with its minimum at `end`."""

    hessian: jax.Array
    end: jax.Array

    def gradient(self, theta):
        return self.hessian @ (theta - self.end)


@jax.jit
def followed(problem, begin, inverse, steps, slope=None):
    return chord.follow(problem, begin, inverse, lambda now: jnp.array(False), steps, slope)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_steps_with_an_old_inverse_approach_the_minimum(steps):
    """Each step is `theta - B g`; the one that a known slope allows is not counted."""
    with jax.enable_x64(True):
        problem = Bowl(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0]))
        inverse, begin = 0.9 * np.linalg.inv(problem.hessian), np.array([3.0, 3.0])
        found = followed(problem, begin, inverse, steps)
        known = chord.Slope(problem.gradient(begin))
        with_slope = followed(problem, begin, inverse, steps, known)
    off = np.asarray(begin - problem.end)
    np.testing.assert_allclose(found.theta - problem.end, off * 0.1**steps, rtol=1e-9)
    np.testing.assert_allclose(with_slope.theta - problem.end, off * 0.1 ** (steps + 1), rtol=1e-9)
    left = off * 0.1**steps
    np.testing.assert_allclose(found.decrement, 0.45 * left @ problem.hessian @ left, rtol=1e-9)
    assert bool(found.closing)
    assert bool(with_slope.closing)
