"""XY designs of test problems, and checks of their certificates."""

import cvxpy
import jax
import numpy as np
from designs import is_design, norms

from jaxbandits.kernels.design.directions import Pairs
from jaxbandits.kernels.design.xy import interior_point

xy_optimal = jax.jit(interior_point.xy_optimal)


def xy_opt(arms, directions, active=None, *, tol=1e-3, max_iterations=200):
    """`xy_optimal` with every option given, so that each shape compiles only once."""
    arms = np.asarray(arms)
    directions = np.asarray(directions, arms.dtype)
    active = np.ones(len(directions), bool) if active is None else np.asarray(active, bool)
    return xy_optimal(arms, directions, active, tol=tol, max_iterations=max_iterations)


def xy_pairs(arms, targets, alive=None, *, tol=1e-3):
    """The XY design for all differences of targets that are alive."""
    alive = np.ones(len(targets), bool) if alive is None else np.asarray(alive)
    return pairs_optimal(np.asarray(arms), np.asarray(targets), alive, tol)


@jax.jit
def pairs_optimal(arms, targets, alive, tol):
    pairs = Pairs(targets)
    first, second = pairs.indices
    return interior_point.xy_optimal(arms, pairs, alive[first] & alive[second], tol=tol)


def certified(found, arms, directions, tol):
    """Check that `value` is that of the returned design and at most `1 + tol` times `bound`."""
    measured = norms(arms, found.weights, directions).max()
    assert is_design(found.weights)
    np.testing.assert_allclose(found.value, measured, rtol=1e-6)
    assert bool(found.converged)
    assert float(found.bound) <= float(found.value) <= (1 + tol) * float(found.bound)


def conic_optimum(arms, directions):
    """The smallest possible `max ||y||^2`, by a conic solver."""
    weights, level = cvxpy.Variable(len(arms), nonneg=True), cvxpy.Variable()
    matrix = arms.T @ cvxpy.diag(weights) @ arms
    bounds = [cvxpy.matrix_frac(y, matrix) <= level for y in directions]
    problem = cvxpy.Problem(cvxpy.Minimize(level), [cvxpy.sum(weights) == 1, *bounds])
    return problem.solve(cvxpy.CLARABEL)
