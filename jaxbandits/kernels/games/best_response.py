"""Nature's answer to a design: the closest parameter under which another arm is the best.

In the half-space where arm j is no worse than arm i, with `y = x_i - x_j`, the parameter closest
to the estimate theta in the norm of `V_w = sum of w_k x_k x_k^T` is
`lambda = theta - (y^T theta / ||y||^2) V_w^-1 y`, the norm in V_w^-1, at squared distance
`(y^T theta)^2 / ||y||^2`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..confidence import glr
from ..estimate import least_squares
from ..linalg import spd

RIDGE = 1e-9  # of the longest squared length: designs near a vertex are singular


class Design(NamedTuple):
    """What the weights of a design measure."""

    inverse: Float[Array, "d d"]  # V_w^-1
    norms: Float[Array, " K"]  # x_k^T V_w^-1 x_k


def design(arms: Float[Array, "K d"], weights: Float[Array, " K"]) -> Design:
    """V_w^-1 and the squared norms of all arms in it."""
    ridge = RIDGE * (arms**2).sum(1).max() * jnp.eye(arms.shape[1], dtype=arms.dtype)
    inverse = spd.inverse(least_squares.gram(arms, weights) + ridge).matrix
    return Design(inverse, spd.quadratic(arms, inverse))


def closest(
    arms: Float[Array, "K d"], measured: Design, leader: Int[Array, ""], gaps: Float[Array, " K"]
) -> Int[Array, ""]:
    """The arm that takes the least to overtake the leader, `gaps` ahead by the estimate."""
    products = arms @ (measured.inverse @ selection.at(arms, leader))
    sqdist = selection.at(measured.norms, leader) + measured.norms - 2.0 * products
    return glr.closest(gaps, sqdist, leader)[0]


def response(
    arms: Float[Array, "K d"],
    weights: Float[Array, " K"],
    leader: Int[Array, ""],
    gaps: Float[Array, " K"],
) -> Float[Array, " K"]:
    """`x_k^T (theta - lambda)` of the closest parameter under which the leader is overtaken."""
    measured = design(arms, weights)
    rival = closest(arms, measured, leader, gaps)
    return change(arms, measured, leader, rival, selection.at(gaps, rival))


def response_to_set(
    arms: Float[Array, "K d"],
    weights: Float[Array, " K"],
    top: Bool[Array, " K"],
    means: Float[Array, " K"],
) -> Float[Array, " K"]:
    """The same where any arm of a set is overtaken by any other."""
    measured = design(arms, weights)
    gram = arms @ measured.inverse @ arms.T
    inside, outside, _ = glr.closest_pair(means, measured.norms, gram, top)
    gap = selection.at(means, inside) - selection.at(means, outside)
    return change(arms, measured, inside, outside, gap)


def change(
    arms: Float[Array, "K d"],
    measured: Design,
    leader: Int[Array, ""],
    rival: Int[Array, ""],
    gap: Float[Array, ""],
) -> Float[Array, " K"]:
    """`x_k^T (theta - lambda)` for every arm k, if it is `rival` that overtakes."""
    direction = selection.at(arms, leader) - selection.at(arms, rival)
    moved = measured.inverse @ direction
    size = direction @ moved
    return (gap / jnp.where(size > 0, size, 1.0)) * (arms @ moved)
