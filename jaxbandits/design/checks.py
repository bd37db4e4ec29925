"""What designs for import check before anything compiles."""

import jax.numpy as jnp
import numpy as np

from ..options import check, check_arms, is_concrete, positive, require


def check_problem(arms, targets, active, rows, tol):
    """The mask of active rows; raises on bad shapes, NaN and a bad tolerance."""
    check_arms(arms, targets)
    check("tol", positive, tol)
    if active is None:
        return jnp.ones(rows, bool)
    shape = np.shape(active)
    require(shape == (rows,), f"active must have shape ({rows},), got {shape}")
    if is_concrete(active):
        require(np.any(active), "active must have at least one True entry, got none")
    return jnp.asarray(active, bool)
