"""Confidence radii, one function per theorem.

Each returns C such that, with probability 1 - delta at all times,
`|y^T (estimate - theta)| <= sigma C ||y||_{V^-1}` for the directions the theorem covers;
`sigma = sqrt(noise_var)`, natural logarithms, `t` draws made, `V = v0 I + sum of x x^T`.
"""

from typing import NamedTuple

import jax.numpy as jnp


class Facts(NamedTuple):
    """What is fixed in a run: everything a radius may use besides time and determinant."""

    delta: float
    noise_var: float
    v0: float
    theta_norm: float | None
    num_arms: int
    dim: int
    max_sqnorm: float  # max ||x||^2


def _bias(facts):
    """sqrt(v0) ||theta|| in units of sigma: what the ridge costs."""
    return jnp.sqrt(facts.v0 / facts.noise_var) * facts.theta_norm


def self_normalised_det(facts, t, logdet):
    """Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 2, with the exact determinant.

    `logdet = log det V - d log v0`. Covers every direction.
    """
    return jnp.sqrt(2.0 * jnp.log(1.0 / facts.delta) + logdet) + _bias(facts)


def self_normalised(facts, t, logdet):
    """The same with the determinant bounded by `(1 + t L^2 / (v0 d))^d`; needs no `logdet`."""
    bound = facts.dim * jnp.log1p(t * facts.max_sqnorm / (facts.v0 * facts.dim))
    return jnp.sqrt(2.0 * jnp.log(1.0 / facts.delta) + bound) + _bias(facts)


def pairwise(facts, t, logdet):
    """Xu, Honda, Sugiyama (2018), eq. (8): `self_normalised_det` at level delta / K^2."""
    level = 2.0 * jnp.log(facts.num_arms**2 / facts.delta)
    return jnp.sqrt(level + logdet) + _bias(facts)


def lucb1(facts, t, logdet):
    """Kalyanakrishnan et al. (2012): Hoeffding at level 4 delta / (5 K t^4), for sample means."""
    return jnp.sqrt(2.0 * jnp.log(5.0 * facts.num_arms * t**4 / (4.0 * facts.delta)))


def heuristic(facts, t, logdet):
    """`sqrt(2 log((1 + log t) / delta))`: no theorem; Reda et al. (2021) use it in figures."""
    return jnp.sqrt(2.0 * jnp.log((1.0 + jnp.log(t)) / facts.delta))


def static(delta, t, directions, log_factor):
    """Designs fixed in advance: `sqrt(2 log(c n t^2 / delta))` for n directions at test number t.

    Sub-Gaussian tail, union over directions, and level `delta / t^2` for test t: the levels add
    up to less than delta from `c = pi^2/6` on for one-sided tests (Soare et al., 2014; Fiez et
    al., 2019, Algorithm 1).
    """
    return jnp.sqrt(2.0 * jnp.log(log_factor * directions * t**2 / delta))


def soare(delta, draws, directions):
    """`2 sqrt(2) sqrt(log(6 n^2 k / (pi^2 delta)))` for k directions after n draws.

    Soare, Lazaric and Munos (2014), Proposition 1: a fixed allocation tested after each draw,
    with noise bounded by sigma; for sub-Gaussian noise half of it is enough.
    """
    return 2.0 * static(delta, draws, directions, 6.0 / jnp.pi**2)


def least_squares(delta, u, logdet):
    """Jedra and Proutiere (2020), eq. (9): no ridge, wherever `A = sum of x x^T >= c I`.

    `logdet = log det(I + A / (u c))`. There `A^-1 <= (1 + u) (A + u c I)^-1`, in which
    Abbasi-Yadkori et al. (2011), Theorem 1, bounds the sum of noise times x at all times; so
    every direction is covered, at no cost in `theta_norm`, for any u, c > 0.
    """
    return jnp.sqrt((1.0 + u) * (2.0 * jnp.log(1.0 / delta) + logdet))


def alba_worst_case(draws, norms, theta_norm, dim, lengths):
    """Tao, Blanco, Zhou (2018), Y-ElimTil: a width, not C, for draws at random from a design.

    `sqrt(2 / l) L v + 2 L (||y|| + v sqrt(d)) / (3 l) + noise` by Bernstein's inequality for the
    arms that are drawn, then for their rewards; l = `draws`, but for the logarithm that pays for
    the confidence and multiplies them. v are the `norms` of directions y in the inverse of the
    design's information matrix, `lengths` their ||y||, L the norm of theta; all over sigma.
    """
    range_ = lengths + norms * jnp.sqrt(dim)
    choice = jnp.sqrt(2.0 / draws) * norms + 2.0 * range_ / (3.0 * draws)
    return theta_norm * choice + _alba_noise(draws, norms, dim)


def alba_empirical(draws, norms, theta_norm, dim, moments, gaps, accuracy):
    """The same with estimates in place of the norm of theta, taken to be right to `accuracy / 2`.

    `sqrt(2 E / l) + (2 (|gap| + accuracy / 2) + L v sqrt(d)) / (3 l) + noise`; E, `moments`, are
    second moments of what a draw adds to the estimated `gaps`, as large as the accuracy allows.
    """
    range_ = 2.0 * jnp.abs(gaps) + accuracy + theta_norm * norms * jnp.sqrt(dim)
    return jnp.sqrt(2.0 * moments / draws) + range_ / (3.0 * draws) + _alba_noise(draws, norms, dim)


def _alba_noise(draws, norms, dim):
    """`sqrt(2 v^2 / l (1 + sqrt(3 d / l)))`."""
    return jnp.sqrt(2.0 / draws * (1.0 + jnp.sqrt(3.0 * dim / draws))) * norms


THRESHOLDS = {
    f.__name__: f for f in (self_normalised, self_normalised_det, pairwise, lucb1, heuristic)
}
NEED_THETA_NORM = ("self_normalised", "self_normalised_det", "pairwise")


def facts(arms, *, delta, noise_var, v0, theta_norm) -> Facts:
    """Collect the `Facts` of a table of arms."""
    num_arms, dim = arms.shape
    return Facts(delta, noise_var, v0, theta_norm, num_arms, dim, (arms**2).sum(1).max())
