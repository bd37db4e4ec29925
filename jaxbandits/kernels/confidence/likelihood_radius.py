"""Confidence sets from likelihoods: levels and radii that hold at all times.

Each fails with probability delta at most, by Ville's inequality: with a probability of at most
delta, the likelihood under other parameters, or under probabilities of rewards that are known
beforehand, ever exceeds 1 / delta times that under theta.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...types import Scalar


def likelihood_ratio(delta: Scalar, dim: Scalar, climb: Scalar) -> Float[Array, ""]:
    """`log(1 / delta) + min over c in (0, 1] of d log(1 / c) + c climb`: not C, but a level.

    Lee, Yun, Jun (2024), Theorem 3.1: at all times the negative log-likelihood L at theta exceeds
    its least value in a ball by this at most; `climb` is the diameter of the ball times a bound
    there on the length of L's gradient. Proof: `exp(L(theta) - L(theta'))` is a supermartingale
    that starts at 1, for any theta', and so is its mean over the ball: at most 1 / delta, by
    Ville's inequality. The ball shrunk by c towards the minimiser has a share `c^d` of its volume,
    and L is above the minimum by `c climb` at most there.
    """
    steep = climb > dim
    shrunk = dim * (1.0 + jnp.log(jnp.where(steep, climb, dim) / dim))
    return jnp.log(1.0 / delta) + jnp.where(steep, shrunk, climb)


def online_logistic(
    delta: Scalar, eta: Scalar, ridge: Scalar, theta_norm: Scalar, growth: Scalar
) -> Float[Array, ""]:
    """`||theta_t - theta||_W <= this` at all times: no sigma, W as in `online_logistic`.

    The root of `ridge S^2 + 2 eta (log(1 / delta) + growth)`, growth the sum of `log Q`, `Q =
    exp(-M(0)) + exp(-M(1))`, `M(y)` the minimum that a reward y leads to. As theta obeys
    `|x^T theta| <= S ||x||`, the minimum at theta' has `(theta' - theta)^T grad l(theta')` at most
    `(||theta_t - theta||_W^2 - ||theta' - theta||_W^2 - ||theta' - theta_t||_W^2) / (2 eta)`. As
    `|mu''| <= mu'`, `l(theta)` exceeds its tangent at theta' by `mu' a^2 / (2 + |a|)` or more, `a =
    x^T (theta - theta')`, so by `mu' a^2 / (2 eta)`. Together, with W' the new W,
    `||theta' - theta||_{W'}^2 <= ||theta_t - theta||_W^2 + 2 eta (l(theta) - M(y))`. And
    `exp(-M(y)) / Q` is a probability of y that is known beforehand: the product of these ever
    exceeds 1 / delta times the likelihood under theta with a probability of at most delta (Ville);
    for y in (0, 1) as well, as M is concave in y. This is the package's own bound: Faury et al.
    (2022) have other terms.

    It is 0 where the square is below 0: then no theta of norm S is left at that delta.
    """
    square = ridge * theta_norm**2 + 2.0 * eta * (jnp.log(1.0 / delta) + growth)
    return jnp.sqrt(jnp.maximum(square, 0.0))
