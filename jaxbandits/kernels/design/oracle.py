"""The optimal design for a known theta: that of an instance's characteristic time."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .. import selection
from ..linalg import scaling
from .d_optimal import Design
from .xy.by_name import Solver

TIE = 1e-9  # of the largest gap


def oracle(
    arms: Float[Array, "K d"],
    targets: Float[Array, "M d"],
    values: Float[Array, " M"],
    solve: Solver,
) -> Design:
    """`min over w of max over z of ||z* - z||^2 / gap_z^2` in A(w)^-1.

    Infinite where two targets are best.
    """
    best = selection.best(values)
    gaps = best.value - values
    others = jnp.arange(values.size) != best.arm
    tied = (others & (gaps <= 0)).any()
    found = _design(arms, targets, best.arm, gaps, others & ~tied, solve)
    value, bound = (jnp.where(tied, jnp.inf, x) for x in (found.value, found.bound))
    return found._replace(value=value, bound=bound, converged=found.converged & ~tied)


def estimated(
    arms: Float[Array, "K d"],
    targets: Float[Array, "M d"],
    values: Float[Array, " M"],
    solve: Solver,
) -> Design:
    """The same for estimated values; it stays finite where several targets tie for the best.

    Gaps below `TIE` times the largest are raised to that; targets equal to the best do not count.
    """
    best = selection.best(values)
    gaps = best.value - values
    others = (targets != selection.at(targets, best.arm)).any(1) & (gaps.max() > 0)
    floor = jnp.maximum(TIE * gaps.max(), jnp.finfo(gaps.dtype).tiny)
    return _design(arms, targets, best.arm, jnp.maximum(gaps, floor), others, solve)


def _design(arms, targets, best, gaps, others, solve):
    # Gaps have the unit of rewards, in which the squares that a solver takes may be out of range.
    unit = lax.stop_gradient(scaling.power_of_two(gaps.max()))
    differences = selection.at(targets, best) - targets
    found = solve.along(arms, differences / jnp.where(others, gaps / unit, 1.0)[:, None], others)
    return found._replace(value=found.value / unit / unit, bound=found.bound / unit / unit)
