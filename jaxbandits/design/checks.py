"""What designs for import check before anything compiles."""

import jax.numpy as jnp
import numpy as np

from ..options import check_arms, count, is_concrete, positive, require


def check(arms, targets, active, rows, tol):
    """The mask of active rows; raises on bad shapes, NaN and a bad tolerance."""
    check_arms(arms, targets)
    if is_concrete(tol):
        require(positive.accepts(tol), f"tol must be {positive.allowed}, got {tol!r}")
    if active is None:
        return jnp.ones(rows, bool)
    shape = np.shape(active)
    require(shape == (rows,), f"active must have shape ({rows},), got {shape}")
    if is_concrete(active):
        require(np.any(active), "active must have at least one True entry, got none")
    return jnp.asarray(active, bool)


def check_steps(max_iterations):
    """Raise unless this is a number of steps."""
    if is_concrete(max_iterations):
        allowed = count()
        fine = allowed.accepts(max_iterations)
        require(fine, f"max_iterations must be {allowed.allowed}, got {max_iterations!r}")
