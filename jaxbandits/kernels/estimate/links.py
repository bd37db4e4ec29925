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
    jet: Callable[[Array], tuple[Array, Array, Array]]  # partition, mean and variance, likewise

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
    return _logistic_from(z, jnp.exp(-jnp.abs(z)))


def _logistic_from(z, ratio):
    larger = 1.0 / (1.0 + ratio)
    less = ratio * larger
    return jnp.where(z > 0, larger, less), larger * less


def _logistic_jet(z):
    ratio = jnp.exp(-jnp.abs(z))
    return jnp.maximum(z, 0.0) + jnp.log1p(ratio), *_logistic_from(z, ratio)


def _poisson(z):
    mean = _clipped_exp(z)
    return mean, jnp.where(z < LARGEST, mean, 0.0)


def _poisson_jet(z):
    mean, variance = _poisson(z)
    return mean * (1.0 + jnp.maximum(z - LARGEST, 0.0)), mean, variance


def _probit(z):
    return norm.cdf(z), norm.pdf(z)


def _probit_jet(z):
    mean, variance = _probit(z)
    return z * mean + variance, mean, variance


LINKS: dict[str, Link] = {
    "gaussian": Link(
        lambda z: z,
        lambda z: z**2 / 2.0,
        lambda z: (z, jnp.ones_like(z)),
        lambda z: (z**2 / 2.0, z, jnp.ones_like(z)),
    ),
    "logistic": Link(
        jax.nn.sigmoid,
        jax.nn.softplus,  # its derivative is right at 0, that of max(z, 0) + ... is not
        _logistic,
        _logistic_jet,
    ),
    "poisson": Link(_clipped_exp, _exp_partition, _poisson, _poisson_jet),
    "probit": Link(norm.cdf, lambda z: z * norm.cdf(z) + norm.pdf(z), _probit, _probit_jet),
}
FAMILIES = tuple(LINKS)
# For data: rewards of an instance have clipped means, sums of counts that a user has may not.
UNCLIPPED: dict[str, Link] = LINKS | {
    "poisson": Link(
        jnp.exp,
        jnp.exp,
        lambda z: (jnp.exp(z), jnp.exp(z)),
        lambda z: (jnp.exp(z), jnp.exp(z), jnp.exp(z)),
    )
}
