"""Confidence radii, one function per theorem.

Each returns C such that, with probability 1 - delta at all times,
`|y^T (estimate - theta)| <= sigma C ||y||_{V^-1}` for the directions the theorem covers;
`sigma = sqrt(noise_var)`, natural logarithms, `t` draws made, `V = v0 I + sum of x x^T`.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from ...types import Scalar, Table

REFINEMENTS = 12  # of `self_concordant`


class Facts(NamedTuple):
    """What is fixed in a run: everything a radius may use besides time and determinant."""

    delta: Scalar
    noise_var: Scalar
    v0: Scalar
    theta_norm: Scalar | None
    num_arms: int
    dim: int
    max_sqnorm: Scalar  # max ||x||^2


Values: TypeAlias = Float[Table, "..."] | float
Radius: TypeAlias = Float[Array, "..."]
Threshold: TypeAlias = Callable[[Facts, Scalar, Scalar], Radius]  # (facts, t, logdet) -> C


def _bias(facts):
    """sqrt(v0) ||theta|| in units of sigma: what the ridge costs."""
    return jnp.sqrt(facts.v0 / facts.noise_var) * facts.theta_norm


def self_normalised_det(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 2, with the exact determinant.

    `logdet = log det V - d log v0`. Covers every direction.
    """
    return jnp.sqrt(2.0 * jnp.log(1.0 / facts.delta) + logdet) + _bias(facts)


def self_normalised(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """The same with the determinant bounded by `(1 + t L^2 / (v0 d))^d`; needs no `logdet`."""
    bound = facts.dim * jnp.log1p(t * facts.max_sqnorm / (facts.v0 * facts.dim))
    return jnp.sqrt(2.0 * jnp.log(1.0 / facts.delta) + bound) + _bias(facts)


def self_normalised_printed(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """Reda et al. (2021), eq. (2), exactly as printed, `lambda = v0`: no theorem.

    `lambda^2` under the logarithm belongs to `V = lambda^2 I + ..`, the root of lambda in the last
    term to `V = lambda I + ..`.
    """
    bound = facts.dim * jnp.log1p((t + 1) * facts.max_sqnorm / (facts.v0**2 * facts.dim))
    return jnp.sqrt(2.0 * jnp.log(1.0 / facts.delta) + bound) + _bias(facts)


def self_normalised_code(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """The same as in the program of Reda et al. (2021): `self_normalised` for one ridge.

    That ridge is `(sigma / 20)^2`, whatever `v0` is: a theorem for it alone. It depends on the unit
    of the rewards.
    """
    return self_normalised(facts._replace(v0=facts.noise_var / 400.0), t, logdet)


def pairwise(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """Xu, Honda, Sugiyama (2018), eq. (8): `self_normalised_det` at level delta / K^2."""
    level = 2.0 * jnp.log(facts.num_arms**2 / facts.delta)
    return jnp.sqrt(level + logdet) + _bias(facts)


def lucb1(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """Kalyanakrishnan et al. (2012): Hoeffding at level 4 delta / (5 K t^4), for sample means."""
    # The fourth power of a whole number of draws does not fit 64 bits from 55,109 on.
    return jnp.sqrt(2.0 * jnp.log(1.25 * facts.num_arms / facts.delta) + 8.0 * jnp.log(t))


def heuristic(facts: Facts, t: Scalar, logdet: Scalar) -> Radius:
    """`sqrt(2 log((1 + log t) / delta))`: no theorem; Reda et al. (2021) use it in figures."""
    return jnp.sqrt(2.0 * jnp.log((1.0 + jnp.log(t)) / facts.delta))


def static(delta: Scalar, t: Scalar, directions: Scalar, log_factor: Scalar) -> Radius:
    """Designs fixed in advance: `sqrt(2 log(c n t^2 / delta))` for n directions at test number t.

    Sub-Gaussian tail, union over directions, and level `delta / t^2` for test t: the levels add
    up to less than delta from `c = pi^2/6` on for one-sided tests (Soare et al., 2014; Fiez et
    al., 2019, Algorithm 1).
    """
    return jnp.sqrt(2.0 * jnp.log(log_factor * directions * (1.0 * t) ** 2 / delta))


def soare(delta: Scalar, draws: Scalar, directions: Scalar) -> Radius:
    """`2 sqrt(2) sqrt(log(6 n^2 k / (pi^2 delta)))` for k directions after n draws.

    Soare, Lazaric and Munos (2014), Proposition 1: a fixed allocation tested after each draw,
    with noise bounded by sigma; for sub-Gaussian noise half of it is enough.
    """
    return 2.0 * static(delta, draws, directions, 6.0 / jnp.pi**2)


def least_squares(delta: Scalar, u: Scalar, logdet: Scalar) -> Radius:
    """Jedra and Proutiere (2020), eq. (9): no ridge, wherever `A = sum of x x^T >= c I`.

    `logdet = log det(I + A / (u c))`. There `A^-1 <= (1 + u) (A + u c I)^-1`, in which
    Abbasi-Yadkori et al. (2011), Theorem 1, bounds the sum of noise times x at all times; so
    every direction is covered, at no cost in `theta_norm`, for any u, c > 0.
    """
    return jnp.sqrt((1.0 + u) * (2.0 * jnp.log(1.0 / delta) + logdet))


def lin_ucb(delta: Scalar) -> Radius:
    """`1 + sqrt(log(2 / delta) / 2)`: Li, Chu, Langford, Schapire (2010), eq. (4).

    For one arm at one time, the ridge 1, rewards in [0, 1] and a theta of norm 1 at most, by
    Hoeffding's inequality where draws do not depend on earlier rewards. In LinUCB they do: there
    it is no theorem.
    """
    return 1.0 + jnp.sqrt(jnp.log(2.0 / delta) / 2.0)


def lin_ts(delta: Scalar, t: Scalar, dim: Scalar) -> Radius:
    """`sqrt(9 d log(t / delta))`: Agrawal and Goyal (2013, as on arXiv), v of round t.

    For arms and theta of norm 1 at most and the ridge 1; not a width but a standard deviation.
    """
    return jnp.sqrt(9.0 * dim * jnp.log(t / delta))


def ucb_glm(delta: Scalar, horizon: Scalar, dim: Scalar) -> Radius:
    """`sqrt(d log(1 + 2 n / d) / 2 + log(1 / delta))`: Li, Lu, Zhou (2017), Theorem 2.

    Over n rounds, arms of norm 1 at most, once `sum of x x^T >= I` and more. It has to be divided
    by the least slope of the mean function near theta: the width is one of the linear predictor.
    """
    return jnp.sqrt(0.5 * dim * jnp.log1p(2.0 * horizon / dim) + jnp.log(1.0 / delta))


def bayes_gap(
    draws: Scalar,
    noise_var: Scalar,
    prior: Float[Array, " K"],
    gaps: Float[Array, " K"],
    epsilon: Scalar,
) -> Radius:
    """`sqrt((n / sigma^2 + sum_k 1 / v_k) / (4 H))`: Hoffman, Shahriari, de Freitas (2014).

    In units of posterior deviations, for n draws after the first of each arm and prior variances
    v `[K]`; `H = sum_k max((D_k + epsilon) / 2, epsilon)^-2` for the gaps D. With the gaps of the
    means, which are themselves drawn from the prior, the answer is within epsilon of the best
    except with probability `K B e^(-beta^2 / 2)`: a normal tail for each arm and round. An arm
    whose prior variance is 0 adds nothing.
    """
    certain = jnp.where(prior > 0, 1.0 / jnp.where(prior > 0, prior, 1.0), 0.0).sum()
    hardness = (1.0 / jnp.maximum((gaps + epsilon) / 2.0, epsilon) ** 2).sum()
    return jnp.sqrt((draws / noise_var + certain) / (4.0 * hardness))


def logistic(level: Scalar, dim: Scalar, reach: Scalar) -> Radius:
    """Maximum likelihood of a logistic model, on draws fixed in advance; infinite if too few.

    `|v^T (theta_hat - theta)| <= C ||v||_{H^-1}`, `H = sum of mu'(x^T theta) x x^T`, for the arms
    x and other listed directions v, n in all; no sigma. `level` is `sqrt(2 L)`: all of this holds,
    and theta_hat exists, except with probability `(2 n + 1) e^-L`. `reach` is `max ||x||_{H^-1}`
    over the arms, or an upper bound on it. For z the sum of noise times x, Bernstein's inequality
    gives `|v^T H^-1 z| <= (level + reach L / 3) ||v||_{H^-1}`; with `noise_length`, C then follows
    as in `self_concordant`.

    The proof is this package's own: here and at the two functions below; the page "Thresholds and
    what delta promises" shows it in one place. To bound the error one arm at a time, so that only
    reach times `sqrt(d + log)` has to be small, is the idea of Jun, Jain, Mason, Nassif (2021),
    Theorem 1.
    """
    factor = level + reach * level**2 / 6.0
    return self_concordant(factor, noise_length(level, dim, reach), reach)


def self_concordant(factor: Scalar, length: Scalar, reach: Scalar) -> Radius:
    """C where `|v^T H^-1 z| <= factor ||v||_{H^-1}`, arms among v, and `||z||_{H^-1} <= length`.

    Let D = theta_hat - theta, hence `G D = z` for a matrix G, `h(b) = (1 - exp(-b)) / b` and
    `e(b) = (exp(b) - 1) / b - 1`. As `|mu''| <= mu'`, `h(b) H <= G <= (1 + e(b)) H` where
    `|x^T D| <= b` for all arms drawn.

    1. The gradient of the loss points outwards at `||D||_H = b / reach` for any b with
       `1 - exp(-b) > reach length`: theta_hat exists, and `b = -log(1 - reach length)` is enough.
    2. `h(b) ||D||_H^2 <= D^T G D = D^T z`, so `||D||_H <= length / h(b)`.
    3. `D = H^-1 z + H^-1 (H - G) D`, so `C = factor + e(b) length / h(b)`; then `b = reach C` is
       enough as well, and is used where it is smaller.
    """
    fine = reach * length < 1.0
    first = -jnp.log1p(-jnp.where(fine, reach * length, 0.5))

    def radius_at(bound):
        bound = jnp.maximum(bound, jnp.finfo(bound.dtype).tiny)
        return factor + (jnp.expm1(bound) / bound - 1.0) * length * bound / -jnp.expm1(-bound)

    def refine(_, bound):
        return jnp.minimum(bound, reach * radius_at(bound))

    return jnp.where(fine, radius_at(lax.fori_loop(0, REFINEMENTS, refine, first)), jnp.inf)


def noise_length(level: Scalar, dim: Scalar, reach: Scalar) -> Radius:
    """`||z||_{H^-1} <= this` except with probability `e^-L`, `level = sqrt(2 L)`; see `logistic`.

    Klein and Rio (2005), Theorem 1.1, for `sup of v^T H^-1/2 z` over unit v: variances are at most
    1, terms at most reach, and the mean is at most `sqrt(d)`. The mean is exceeded by t with a
    probability of `exp(-t^2 / (2 (1 + 2 reach sqrt(d)) + 3 reach t))`.
    """
    half = 0.75 * reach * level**2
    variance = (1.0 + 2.0 * reach * jnp.sqrt(dim)) * level**2
    return jnp.sqrt(dim) + half + jnp.sqrt(half**2 + variance)


def logistic_reach(level: Scalar, dim: Scalar) -> Radius:
    """The reach at which reach times `noise_length` is 1/2: C is then 1.5 to 1.8 times `level`."""
    shorter = lambda _, reach: 0.5 / noise_length(level, dim, reach)  # noqa: E731
    return lax.fori_loop(0, 30, shorter, jnp.zeros_like(level))


def alba_worst_case(
    draws: Scalar,
    norms: Values,
    theta_norm: Scalar,
    dim: Scalar,
    lengths: Values,
) -> Radius:
    """Tao, Blanco, Zhou (2018), Y-ElimTil: a width, not C, for draws at random from a design.

    `sqrt(2 / l) L v + 2 L (||y|| + v sqrt(d)) / (3 l) + noise` by Bernstein's inequality for the
    arms that are drawn, then for their rewards; l = `draws` is the number of draws divided by the
    logarithm that the confidence costs. v are the `norms` of directions y in the inverse of the
    design's information matrix, `lengths` their ||y||, L the norm of theta; all over sigma.
    """
    range_ = lengths + norms * jnp.sqrt(dim)
    choice = jnp.sqrt(2.0 / draws) * norms + 2.0 * range_ / (3.0 * draws)
    return theta_norm * choice + _alba_noise(draws, norms, dim)


def alba_empirical(
    draws: Scalar,
    norms: Values,
    theta_norm: Scalar,
    dim: Scalar,
    moments: Values,
    gaps: Values,
    accuracy: Scalar,
) -> Radius:
    """The same with estimates instead of the norm of theta, taken to be right to `accuracy / 2`.

    `sqrt(2 E / l) + (2 (|gap| + accuracy / 2) + L v sqrt(d)) / (3 l) + noise`; E, `moments`, are
    upper bounds on the second moments of what a draw adds to the estimated `gaps`.
    """
    range_ = 2.0 * jnp.abs(gaps) + accuracy + theta_norm * norms * jnp.sqrt(dim)
    return jnp.sqrt(2.0 * moments / draws) + range_ / (3.0 * draws) + _alba_noise(draws, norms, dim)


def _alba_noise(draws, norms, dim):
    """`sqrt(2 v^2 / l (1 + sqrt(3 d / l)))`."""
    return jnp.sqrt(2.0 / draws * (1.0 + jnp.sqrt(3.0 * dim / draws))) * norms


THRESHOLDS: dict[str, Threshold] = {
    f.__name__: f
    for f in (
        self_normalised,
        self_normalised_det,
        self_normalised_printed,
        self_normalised_code,
        pairwise,
        lucb1,
        heuristic,
    )
}
# As printed in a paper and as in its program; neither is a theorem for every ridge.
PUBLISHED = ("self_normalised_printed", "self_normalised_code")
USUAL = tuple(name for name in THRESHOLDS if name not in PUBLISHED)
NEED_NO_FEATURES = ("lucb1", "heuristic")
NEED_THETA_NORM = tuple(name for name in THRESHOLDS if name not in NEED_NO_FEATURES)


def facts(
    arms: Float[Array, "K d"],
    *,
    delta: Scalar,
    noise_var: Scalar,
    v0: Scalar,
    theta_norm: Scalar | None,
) -> Facts:
    """Collect the `Facts` of a table of arms."""
    num_arms, dim = arms.shape
    return Facts(delta, noise_var, v0, theta_norm, num_arms, dim, (arms**2).sum(1).max())


def width(threshold: str, facts: Facts) -> Callable[[Scalar, Scalar], Radius]:
    """`(t, logdet) -> sigma C`, half the width of a direction of length 1."""
    sigma = jnp.sqrt(facts.noise_var)
    return lambda t, logdet: sigma * THRESHOLDS[threshold](facts, t, logdet)
