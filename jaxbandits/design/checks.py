"""Checks of the arguments of designs, before anything compiles."""

from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..feature_tables import check_arms, check_condition, is_concrete, require
from ..kernels.linalg import scaling
from ..parameters import check, positive
from ..precision import check_real
from ..system.machine import in_gibibytes, memory_bytes
from ..types import Rows, Scalar, Table

Problem: TypeAlias = tuple[Float[Table, "K d"], Float[Table, "M d"], Bool[Array, " n"], Scalar]


def problem(
    arms: Rows,
    targets: Rows | None,
    active: Rows | None,
    tol: Scalar,
    *,
    scale_free: bool = True,
) -> Problem:
    """`(arms, targets, active, tol)` of a design, checked and of one precision.

    Args:
      arms: `[K, d]`.
      targets: `[M, d]`; without them the arms are returned in their place.
      active: bool, of the targets, or of the arms without targets; all by default.
      tol: relative width of the certificate.
      scale_free: whether the units of a column change nothing; features are then returned in
        columns of one size.
    Raises:
      ValueError: bad shapes, NaN, `active` of other than bool or 0 and 1, no active row, arms that
        are all zero or so nearly dependent that rounding hides it, a bad tolerance.
    """
    check_arms(arms, targets)
    check("tol", positive, tol)
    rows = np.shape(arms if targets is None else targets)[0]
    active = np.ones(rows, bool) if active is None else active
    check_real("active", active)
    shape = np.shape(active)
    require(shape == (rows,), f"active must have shape ({rows},), got {shape}")
    if is_concrete(active):
        active = _flags("active", active)
        require(np.any(active), "active must have at least one True entry, got none")
        if is_concrete(arms):
            some = np.asarray(arms) if targets is not None else np.asarray(arms)[active]
            require(np.any(some), "arms must have an active one that is not zero, got zeros")
    features = [table for table in (arms, targets) if table is not None]
    if scale_free:
        check_condition(arms)
        features = _of_one_size(*features)
    features = [jnp.asarray(table) for table in features]
    known = np.asarray(tol, features[0].dtype) if is_concrete(tol) else tol
    return features[0], features[-1], jnp.asarray(active), known


def _of_one_size(arms, *others):
    """`scaling.equilibrated`, without copies of known tables that change nothing."""
    if not (is_concrete(arms) and all(map(is_concrete, others))):
        return scaling.equilibrated(*map(jnp.asarray, (arms, *others)))
    scales = scaling.host_scales(np.asarray(arms))
    if (scales == 1.0).all():
        return [arms, *others]
    scaled = np.asarray(arms) / scales
    return [scaled, *(scaled if table is arms else np.asarray(table) / scales for table in others)]


def fits_memory(needed: int, arms: Rows, number: int) -> None:
    """Raise unless a design that needs so many bytes for its directions fits this machine."""
    memory = memory_bytes()
    rows, dim = np.shape(arms)
    require(
        needed <= memory,
        f"a design of {rows} arms in {dim} dimensions for {number} directions needs about "
        f"{in_gibibytes(needed)}: more than this machine's memory of {in_gibibytes(memory)}",
    )


def _flags(name, values):
    """Concrete numbers as bool; a cast would take whatever is not 0, NaN say, for True."""
    table = np.asarray(values, float)
    others = table[(table != 0) & (table != 1)][:5].tolist()
    require(not others, f"{name} must be bool, or 0 and 1, got {others}")
    return table != 0
