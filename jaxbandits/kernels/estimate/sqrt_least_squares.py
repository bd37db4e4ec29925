"""Least squares by a square root of `V^-1`, for algorithms that sample from a posterior.

With `V^-1 = M M^T` the rows of `R = X M` are enough: `R R^T = X V^-1 X^T`, and `R z`
has that covariance for standard normal z. One more draw of arm a turns M into
`M (I - r r^T / (s + sqrt(s)))`, r the row of a and `s = 1 + r^T r` (Potter's square root filter,
1963): O(K d), no decomposition, and a covariance that cannot become negative.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...types import Scalar
from .. import selection


class Root(NamedTuple):
    """Ridge least squares on a fixed table of arms."""

    rows: Float[Array, "K d"]  # R
    means: Float[Array, " K"]  # estimated means


def ridge(arms: Float[Array, "K d"], v0: Scalar) -> Root:
    """Before any draw: V = v0 I."""
    return Root(arms / jnp.sqrt(v0), jnp.zeros(arms.shape[0], arms.dtype))


def observe(root: Root, arm: Int[Array, ""], reward: Scalar) -> Root:
    """One more draw of `arm` with this reward."""
    row = selection.at(root.rows, arm)
    column = root.rows @ row
    growth = 1.0 + selection.at(column, arm)
    step = (reward - selection.at(root.means, arm)) / growth
    part = column / (growth + jnp.sqrt(growth))
    return Root(root.rows - part[:, None] * row[None, :], root.means + step * column)


def sampled(root: Root, normal: Float[Array, " d"], scale: Scalar) -> Float[Array, " K"]:
    """Means of a parameter from `N(estimate, scale^2 V^-1)`, from standard normal numbers."""
    return root.means + scale * (root.rows @ normal)
