"""What designs for import check before anything compiles."""

import jax.numpy as jnp
import numpy as np

from ..feature_tables import check_arms, check_condition, is_concrete, require
from ..kernels.linalg import scaling
from ..parameters import check, positive


def problem(arms, targets, active, tol, *, scale_free=True):
    """`(arms, targets, active, tol)` of a design, of one precision; every design begins here.

    Args:
      scale_free: whether the units of a column change nothing; features are then handed on in
        columns of one size.
    Raises:
      ValueError: bad shapes, NaN, no active row, arms that are all zero or so nearly dependent
        that rounding hides it, a bad tolerance.
    """
    check_arms(arms, targets)
    check("tol", positive, tol)
    rows = np.shape(arms if targets is None else targets)[0]
    active = np.ones(rows, bool) if active is None else active
    shape = np.shape(active)
    require(shape == (rows,), f"active must have shape ({rows},), got {shape}")
    if is_concrete(active):
        active = np.asarray(active, bool)
        require(np.any(active), "active must have at least one True entry, got none")
    if is_concrete(arms) and is_concrete(active):
        some = arms if targets is not None else arms[active]
        require(np.any(some), "arms must have one that counts and is not zero, got zeros")
    if scale_free:
        check_condition(arms)
        tables = [jnp.asarray(table) for table in (arms, targets) if table is not None]
        arms, targets = (*scaling.equilibrated(*tables), None)[:2]
    return arms, targets, active, np.asarray(tol, arms.dtype) if is_concrete(tol) else tol
