"""Mean, log-partition and variance of each family of generalised linear models.

`b' = mean` and `mean' = variance`, all elementwise on the linear predictor z. Probit uses the
quasi-likelihood with `b = integral of Phi`, which stays convex for perturbed sums.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array

LARGEST = 30.0  # the Poisson predictor is clipped here: exp(30) is 1e13


class Link(NamedTuple):
    """An increasing mean function with its integral and its derivative."""

    mean: Callable[[Array], Array]
    partition: Callable[[Array], Array]
    both: Callable[[Array], tuple[Array, Array]]  # mean and variance, faster than one by one

    def variance(self, z: Array) -> Array:
        """The derivative of the mean."""
        return self.both(z)[1]


def _clipped_exp(z):
    return jnp.exp(jnp.minimum(z, LARGEST))


def _exp_partition(z):
    """exp(z), continued by its tangent beyond the clip so that it stays convex."""
    return _clipped_exp(z) * (1.0 + jnp.maximum(z - LARGEST, 0.0))


def _logistic(z):
    """Mean and variance by one exponential, each as exact where it vanishes as elsewhere."""
    ratio = jnp.exp(-jnp.abs(z))
    larger = 1.0 / (1.0 + ratio)
    less = ratio * larger
    return jnp.where(z > 0, larger, less), larger * less


def _poisson(z):
    mean = _clipped_exp(z)
    return mean, jnp.where(z < LARGEST, mean, 0.0)


LINKS: dict[str, Link] = {
    "gaussian": Link(lambda z: z, lambda z: z**2 / 2.0, lambda z: (z, jnp.ones_like(z))),
    "logistic": Link(
        jax.nn.sigmoid,
        jax.nn.softplus,  # its derivative is right at 0, that of max(z, 0) + ... is not
        _logistic,
    ),
    "poisson": Link(_clipped_exp, _exp_partition, _poisson),
    "probit": Link(
        norm.cdf,
        lambda z: z * norm.cdf(z) + norm.pdf(z),
        lambda z: (norm.cdf(z), norm.pdf(z)),
    ),
}
FAMILIES = tuple(LINKS)
