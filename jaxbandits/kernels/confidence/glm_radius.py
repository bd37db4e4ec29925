"""How far regret algorithms of generalised linear models look: widths and scales of their theorems.

Slopes are those of the mean function near theta: `kappa` the least, `lipschitz` the largest.
Natural logarithms; n rounds, d features.
"""

import jax.numpy as jnp

from ..estimate.links import LINKS


def slopes(family, kappa, lipschitz):
    """Those given, or the slope at 0, which Kveton et al. (2020) take for both."""
    at_zero = LINKS[family].variance(jnp.zeros(()))
    return tuple(at_zero if slope is None else slope for slope in (kappa, lipschitz))


def glm_ucb(t, level, horizon, dim, *, max_sqnorm, eigenvalue, kappa, lipschitz):
    """`(2 k rho / c) sqrt(2 d log(t) log(2 d n / delta))`: Filippi et al. (2010), Theorem 2.

    Of a mean, for rewards in [0, 1]; k is the largest slope, c the least, and `rho^2 = 3 + 2
    log(1 + 2 L^2 / l)`, L the largest norm of an arm, l the least eigenvalue of `sum of x x^T`
    after the first draws.
    """
    rho = jnp.sqrt(3.0 + 2.0 * jnp.log1p(2.0 * max_sqnorm / eigenvalue))
    spread = jnp.sqrt(2.0 * dim * jnp.log(t) * jnp.log(2.0 * dim * horizon / level))
    return 2.0 * lipschitz * rho / kappa * spread


def estimate(horizon, dim, noise_var, kappa):
    """`c_1 = (sigma / kappa) sqrt(d log(n / d) + 2 log n)`: Kveton et al. (2020), Section 4.3.

    Once `sum of x x^T` is large enough, `|x^T (estimate - theta)| <= c_1 ||x||` in its inverse for
    all arms, but for a chance of 1/n a round. Fewer rounds than features count as that many: they
    go by before there is an estimate.
    """
    horizon = jnp.maximum(horizon, dim)
    spread = jnp.sqrt(dim * jnp.log(horizon / dim) + 2.0 * jnp.log(horizon))
    return jnp.sqrt(noise_var) / kappa * spread


def glm_tsl(horizon, dim, noise_var, kappa, lipschitz):
    """The a of GLM-TSL, `c_1 sqrt(largest slope)`: Kveton et al. (2020), Section 4.3."""
    return estimate(horizon, dim, noise_var, kappa) * jnp.sqrt(lipschitz)


def tsl_spread(horizon, num_arms, dim, noise_var, kappa, lipschitz):
    """`c_2` of GLM-TSL: no sample is `c_2 ||x||` away from the estimate, but for 1/n a round."""
    spread = jnp.sqrt(2.0 * lipschitz / kappa * jnp.log(num_arms * horizon))
    return estimate(horizon, dim, noise_var, kappa) * spread


def glm_fpl(horizon, dim, noise_var, kappa, lipschitz):
    """The a of GLM-FPL, `c_1 times the largest slope`: Kveton et al. (2020), Section 4.4."""
    return estimate(horizon, dim, noise_var, kappa) * lipschitz


def fpl_spread(horizon, num_arms, dim, noise_var, kappa, lipschitz):
    """`c_2` of GLM-FPL: the same, but for 2/n a round."""
    spread = lipschitz / kappa * jnp.sqrt(2.0 * jnp.log(num_arms * horizon))
    return estimate(horizon, dim, noise_var, kappa) * spread
