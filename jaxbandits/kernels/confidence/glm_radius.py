"""Confidence widths and scales of perturbation for regret in generalised linear models.

Slopes are those of the mean function near theta: `kappa` the least, `lipschitz` the largest.
Natural logarithms; n rounds (`horizon`), d features.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...types import Scalar
from ..estimate.links import LINKS


def slopes(family: str, kappa: Scalar | None, lipschitz: Scalar | None) -> tuple[Scalar, Scalar]:
    """Those given, or the slope at 0, which Kveton et al. (2020) take for both."""
    at_zero = LINKS[family].variance(jnp.zeros(()))
    return at_zero if kappa is None else kappa, at_zero if lipschitz is None else lipschitz


def glm_ucb(
    t: Scalar,
    level: Scalar,
    horizon: Scalar,
    dim: Scalar,
    *,
    max_sqnorm: Scalar,
    eigenvalue: Scalar,
    kappa: Scalar,
    lipschitz: Scalar,
) -> Float[Array, "..."]:
    """`(2 k rho / c) sqrt(2 d log(t) log(2 d n / delta))`: Filippi et al. (2010), Theorem 2.

    Of a mean, for rewards in [0, 1]; k is the largest slope, c the least, and `rho^2 = 3 + 2
    log(1 + 2 L^2 / l)`, L the largest norm of an arm, l the least eigenvalue of `sum of x x^T`
    after the first draws.
    """
    rho = jnp.sqrt(3.0 + 2.0 * jnp.log1p(2.0 * max_sqnorm / eigenvalue))
    length = jnp.sqrt(2.0 * dim * jnp.log(t) * jnp.log(2.0 * dim * horizon / level))
    return 2.0 * lipschitz * rho / kappa * length


def estimate(horizon: Scalar, dim: Scalar, noise_var: Scalar, kappa: Scalar) -> Float[Array, "..."]:
    """`c_1 = (sigma / kappa) sqrt(d log(n / d) + 2 log n)`: Kveton et al. (2020), Section 4.3.

    Once `sum of x x^T` is large enough, `|x^T (estimate - theta)| <= c_1 ||x||` in its inverse for
    all arms, in each round except with probability 1/n. A horizon below d counts as d: so many
    rounds pass before there is an estimate.
    """
    horizon = jnp.maximum(horizon, dim)
    length = jnp.sqrt(dim * jnp.log(horizon / dim) + 2.0 * jnp.log(horizon))
    return jnp.sqrt(noise_var) / kappa * length


def glm_tsl(
    horizon: Scalar, dim: Scalar, noise_var: Scalar, kappa: Scalar, lipschitz: Scalar
) -> Float[Array, "..."]:
    """The a of GLM-TSL, `c_1 sqrt(largest slope)`: Kveton et al. (2020), Section 4.3."""
    return estimate(horizon, dim, noise_var, kappa) * jnp.sqrt(lipschitz)


def tsl_exploration(
    horizon: Scalar, dim: Scalar, noise_var: Scalar, kappa: Scalar, lipschitz: Scalar
) -> Float[Array, "..."]:
    """`max(c_1^2, 1)`: what the least eigenvalue of `sum of x x^T` must reach for GLM-TSL.

    As the theorem on GLM-TSL asks (Kveton et al., 2020, Section 4.3).
    """
    return jnp.maximum(estimate(horizon, dim, noise_var, kappa) ** 2, 1.0)


def tsl_deviation(
    horizon: Scalar,
    num_arms: Scalar,
    dim: Scalar,
    noise_var: Scalar,
    kappa: Scalar,
    lipschitz: Scalar,
) -> Float[Array, "..."]:
    """`c_2` of GLM-TSL: samples are within `c_2 ||x||` of the estimate.

    In each round this fails with probability 1/n at most.
    """
    ratio = jnp.sqrt(2.0 * lipschitz / kappa * jnp.log(num_arms * horizon))
    return estimate(horizon, dim, noise_var, kappa) * ratio


def glm_fpl(
    horizon: Scalar, dim: Scalar, noise_var: Scalar, kappa: Scalar, lipschitz: Scalar
) -> Float[Array, "..."]:
    """The a of GLM-FPL, `c_1 times the largest slope`: Kveton et al. (2020), Section 4.4."""
    return estimate(horizon, dim, noise_var, kappa) * lipschitz


def fpl_exploration(
    horizon: Scalar, dim: Scalar, noise_var: Scalar, kappa: Scalar, lipschitz: Scalar
) -> Float[Array, "..."]:
    """`max(4 c_1^2, 8 a^2 log(n) / kappa^2, 1)`: what the least eigenvalue must reach for GLM-FPL.

    Of `sum of x x^T`, as the theorem on GLM-FPL asks (Kveton et al., 2020, Section 4.4).
    """
    a = glm_fpl(horizon, dim, noise_var, kappa, lipschitz)
    perturbation = 8.0 * a**2 * jnp.log(horizon) / kappa**2
    estimated = 4.0 * estimate(horizon, dim, noise_var, kappa) ** 2
    return jnp.maximum(jnp.maximum(estimated, perturbation), 1.0)


def fpl_deviation(
    horizon: Scalar,
    num_arms: Scalar,
    dim: Scalar,
    noise_var: Scalar,
    kappa: Scalar,
    lipschitz: Scalar,
) -> Float[Array, "..."]:
    """`c_2` of GLM-FPL: the same, which fails with probability 2/n at most."""
    ratio = lipschitz / kappa * jnp.sqrt(2.0 * jnp.log(num_arms * horizon))
    return estimate(horizon, dim, noise_var, kappa) * ratio
