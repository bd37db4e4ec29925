"""Covariance functions of Gaussian processes over a table of arms."""

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...types import Scalar

Covariance: TypeAlias = Callable[[Array, Scalar], Array]  # (arms [K, d], length scale) -> [K, K]


def linear(arms: Float[Array, "K d"], length_scale: Scalar) -> Float[Array, "K K"]:
    """`x . y`; it has no length scale."""
    return arms @ arms.T


def _stationary(function) -> Covariance:
    """A table of `function(||x - y||^2, length_scale)`; 1 for equal arms."""

    def table(arms: Float[Array, "K d"], length_scale: Scalar) -> Float[Array, "K K"]:
        # From differences: in products, arms close to each other would cancel.
        squares = ((arms[:, None, :] - arms[None, :, :]) ** 2).sum(-1)
        return function(squares, length_scale)

    return table


def _exponential(squares, length):
    return jnp.exp(-jnp.sqrt(squares) / length)


def _squared_exponential(squares, length):
    """`exp(-r^2 / l)`: l is twice the square of the usual length scale."""
    return jnp.exp(-squares / length)


def _matern32(squares, length):
    scaled = jnp.sqrt(3.0 * squares) / length
    return (1.0 + scaled) * jnp.exp(-scaled)


def _matern52(squares, length):
    scaled = jnp.sqrt(5.0 * squares) / length
    return (1.0 + scaled + scaled**2 / 3.0) * jnp.exp(-scaled)


COVARIANCES: dict[str, Covariance] = {
    "linear": linear,
    "exponential": _stationary(_exponential),
    "squared_exponential": _stationary(_squared_exponential),
    "matern32": _stationary(_matern32),
    "matern52": _stationary(_matern52),
}
