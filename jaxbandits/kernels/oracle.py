"""What who knows theta would draw: the design of an instance's characteristic time."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .design import Design
from .xy_designs import Solver


def oracle(
    arms: Float[Array, "K d"],
    targets: Float[Array, "M d"],
    values: Float[Array, " M"],
    solve: Solver,
) -> Design:
    """`min over w of max over z of ||z* - z||^2 / gap_z^2` in A(w)^-1.

    Infinite where two targets are best.
    """
    best = values.argmax()
    gaps = values[best] - values
    others = jnp.arange(values.size) != best
    tied = (others & (gaps <= 0)).any()
    scaled = (targets[best] - targets) / jnp.where(others & ~tied, gaps, 1.0)[:, None]
    found = solve.along(arms, scaled, others & ~tied)
    value, bound = (jnp.where(tied, jnp.inf, x) for x in (found.value, found.bound))
    return found._replace(value=value, bound=bound, converged=found.converged & ~tied)
