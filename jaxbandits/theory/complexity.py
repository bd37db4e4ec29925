"""Constants H of Top-m identification, and the bound on pulls that follows from them.

Where the confidence bounds hold with widths `C_u sigma ||.||` after u pulls, an algorithm with the
constant H stops no later than at `inf {u > 0: u > 1 + H C_u^2 + O(K)}` (Theorem 2 of C. Reda,
E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits", AISTATS 2021). With
`mu_(m)` the m-th largest value, an arm's gap is `D_a = mu_a - mu_(m+1)` if it is among the m best
and `D_a = mu_(m) - mu_a` otherwise.
"""

import math
from typing import Literal, TypeAlias

import jax.numpy as jnp
import numpy as np

from ..algorithms.loops.top_m import USUAL_RIDGE
from ..instances import Instance
from ..instances.options import check_option
from ..kernels.allocate import pair_shares
from ..kernels.confidence import radius
from ..parameters import choice, nonnegative, positive, probability, real, require
from ..precision import double, on_host
from ..whole_numbers import allowed_whole, is_whole, shown
from .given import given, instance_of, plain

__all__ = [
    "lucb_complexity",
    "m_lingape_complexity",
    "top_m_pull_bound",
    "ugape_complexity",
]

Selection: TypeAlias = Literal["largest_variance", "ratio"]

SELECTIONS: tuple[Selection, ...] = ("largest_variance", "ratio")
# Thresholds that depend on no determinant.
OF_TIME: tuple[str, ...] = (
    *("self_normalised", "lucb1", "heuristic"),
    *("self_normalised_printed", "self_normalised_code"),
)
ROUNDING: float = 1e-12  # relative accuracy of a bound on pulls


@on_host
def lucb_complexity(instance: Instance, m: int, *, epsilon: float = 0.0) -> float:
    """`H(LUCB) = 2 noise_var sum_a max(epsilon / 2, D_a)^-2`.

    By Theorem 2 (see the module), LUCB with a width for each arm stops no later than at the first u
    above `1 + H C_u^2 + O(K)` where its confidence bounds hold.

    Args:
      instance: an `Instance` whose arms are the targets.
      m: the number of arms to identify, below K.
      epsilon: the accuracy, 0 or above, in units of a reward.
    Returns:
      The constant, infinite where the gap between the m-th and the next value is 0 and so is
      epsilon.
    Raises:
      ValueError: other targets than the arms, an m outside 1 .. K - 1, a bad epsilon.
    Deviations:
      The paper prints the constants of LUCB and UGapE without the variance, which its width for
      them lacks too. Here it is a factor, as in that of m-LinGapE, so that the unit of rewards
      changes no constant.
    Reference:
      C. Reda, E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits",
      AISTATS 2021, Section 4. https://arxiv.org/abs/2103.10070

    >>> import jaxbandits as jb
    >>> lucb_complexity(jb.instances.canonical(4, gap=0.5), 1)
    32.0
    """
    gaps, epsilon = _gaps(instance, m, epsilon)
    sizes = np.maximum(epsilon / 2.0, gaps)
    return float(2.0 * float(instance.noise_var) * _inverse_squares(sizes).sum())


@on_host
def ugape_complexity(instance: Instance, m: int, *, epsilon: float = 0.0) -> float:
    """`H(UGapE) = 2 noise_var sum_a max(epsilon, (epsilon + D_a) / 2)^-2`.

    By Theorem 2 (see the module), UGapE with a width for each arm stops no later than at the first
    u above `1 + H C_u^2 + O(K)` where its confidence bounds hold.

    Args:
      instance, m, epsilon: those of `lucb_complexity`.
    Returns:
      The constant, infinite where it is in `lucb_complexity`.
    Raises:
      ValueError: see `lucb_complexity`.
    Deviations:
      With the variance, as in `lucb_complexity`. The paper claims the order LUCB, m-LinGapE, UGapE
      of its constants, the largest first. They are not in this order: with epsilon 0 and variance 1
      they are 2, 36 and 8 times the sum of the `D_a^-2`, and with 1/4, the paper's, 2, 9 and 8
      times as printed.
    Reference:
      See `lucb_complexity`.

    >>> import jaxbandits as jb
    >>> ugape_complexity(jb.instances.canonical(4, gap=0.5), 1)
    128.0
    """
    gaps, epsilon = _gaps(instance, m, epsilon)
    sizes = np.maximum(epsilon, (epsilon + gaps) / 2.0)
    return float(2.0 * float(instance.noise_var) * _inverse_squares(sizes).sum())


@on_host
def m_lingape_complexity(
    instance: Instance,
    m: int,
    *,
    epsilon: float = 0.0,
    selection: Selection = "largest_variance",
    rho_power: Literal[1, 2] = 1,
    enough: float | None = None,
) -> float:
    """The constant of m-LinGapE, with `s_a = max(epsilon, (epsilon + D_a) / 3)`.

    `4 noise_var sum_a s_a^-2` where the arm of larger variance of a pair is drawn (or both arms),
    and `noise_var sum_a max over i < j of |w_a(i, j)| / max(s_i, s_j)^2` where draws follow the
    optimal ratios: `w(i, j)` has the least norm `rho = ||w||_1` with `X^T w = x_i - x_j`. By
    Theorem 2 (see the module), m-LinGapE stops no later than at the first u above
    `1 + H C_u^2 + O(K)` where its confidence bounds hold.

    Args:
      instance: an `Instance` whose arms are the targets. The theorem requires values that are
        linear in the arms; the formula is computed for any.
      m, epsilon: those of `lucb_complexity`.
      selection: "largest_variance" or "ratio".
      rho_power: of "ratio", 1 for `|w_a|` as printed, 2 for `|w_a| rho`.
      enough: for comparisons of "ratio" with another constant: pairs are visited in the order of
        their gaps, the smallest first, and the first sum above `enough` is returned. It is a lower
        bound of the constant.
    Returns:
      The constant, infinite where it is in `lucb_complexity`.
    Raises:
      ValueError: see `lucb_complexity`; an unknown selection or rho_power, a bad `enough`.
      RuntimeError: a linear program that was not solved to its certificate.
    Deviations:
      `w` is not unique for some arms, and then neither is the constant. Here it is the vertex that
      HiGHS' dual simplex returns for `x_i - x_j` with i < j; for independent arms it is
      `e_i - e_j`. The paper prints `|w_a|` alone, which is rho_power 1. But draws by these ratios
      make `||x_i - x_j||^2` in V^-1 at most `|w_a| ||w||_1` over the draws of a, and a
      proof from that width gives the constant of rho_power 2, at most twice as large. The printed
      constants do not lie between those of LUCB and UGapE as claimed; see `ugape_complexity`.
    Reference:
      See `lucb_complexity`; Appendix A compares the constants of "ratio" and UGapE.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(4, gap=0.5)
    >>> m_lingape_complexity(instance, 1)
    576.0
    >>> m_lingape_complexity(instance, 1, selection="ratio")
    144.0
    """
    given(choice(*SELECTIONS), selection=selection)
    rho_power = given(choice(1, 2), rho_power=rho_power)
    check_option(positive, enough=enough)
    gaps, epsilon = _gaps(instance, m, epsilon)
    sizes = np.maximum(epsilon, (epsilon + gaps) / 3.0)
    noise_var = float(instance.noise_var)
    if selection == "largest_variance":
        return float(4.0 * noise_var * _inverse_squares(sizes).sum())
    enough = math.inf if enough is None else float(enough)
    return _largest_weights(instance.arms, sizes, noise_var, rho_power, enough)


@on_host
@double
def top_m_pull_bound(
    instance: Instance,
    complexity: float,
    delta: float,
    *,
    threshold: str = "self_normalised",
    v0: float = USUAL_RIDGE,
    theta_norm: float | None = None,
) -> float:
    """`inf {u: u > 1 + H C_u^2 + K}`: Theorem 2 and Table 2, the pulls of a Top-m algorithm.

    An algorithm whose constant is H takes no more pulls than this where its confidence bounds hold,
    which is so with probability `1 - delta`.

    Args:
      instance: an `Instance`; arms, variance and the norm of theta enter C.
      complexity: H, above 0: one of the constants of this module; infinite gives infinity.
      delta: error probability, in (0, 1).
      threshold: the radius C_u, as the option of that name: "self_normalised", which bounds
        "self_normalised_det", "lucb1", "heuristic", "self_normalised_printed" or
        "self_normalised_code".
      v0: the ridge, above 0, which only the self-normalised thresholds use.
      theta_norm: a bound on the norm of theta, which the same need; the instance's by default.
    Returns:
      The bound in pulls, the first draw of each arm included.
    Raises:
      ValueError: no `Instance`, a bad option, or an unknown norm of theta.
      TypeError: traced arguments; it is computed on the host.
    Deviations:
      K stands for the paper's `O(K)`. Each arm is drawn once in the beginning, and after that at
      most once more than `T*(a, u)` (Lemma 5), whose sum is `H C_u^2`. The paper's proof is one
      for m-LinGapE. The bound is proved for `m_lingape_complexity` of "largest_variance", and of
      "ratio" with rho_power 2; with the former and the threshold "lucb1" it is one for LUCB as
      well. With `lucb_complexity`, which is that of Table 2, it is no bound: LUCB ends where both
      widths of a pair add up to its gap, that is after some `4 noise_var C^2 / D_a^2` draws of the
      arms next to the gap, while H counts `2 noise_var C^2 / D_a^2`.
    Reference:
      See `lucb_complexity`.

    >>> import math
    >>> import jaxbandits as jb
    >>> instance = jb.instances.classic_top_m(4, 2, angle=math.pi / 6)
    >>> round(top_m_pull_bound(instance, m_lingape_complexity(instance, 2), 0.05))
    82261
    """
    instance = instance_of(instance)
    positive_or_infinite = real("a number above 0", lambda v: v > 0)
    complexity = float(given(positive_or_infinite, complexity=complexity))
    delta = given(probability, delta=delta)
    given(choice(*OF_TIME), threshold=threshold)
    v0 = float(given(positive, v0=v0))
    norm = instance.theta_norm if theta_norm is None else given(nonnegative, theta_norm=theta_norm)
    needed = threshold in radius.NEED_THETA_NORM
    require(norm is not None or not needed, f"theta_norm must be given: {threshold} needs it")
    noise_var = float(instance.noise_var)
    known = radius.facts(
        jnp.asarray(instance.arms), delta=delta, noise_var=noise_var, v0=v0, theta_norm=norm
    )
    at_least = 1.0 + len(instance.arms)

    def after(pulls: float) -> float:
        return at_least + complexity * float(radius.THRESHOLDS[threshold](known, pulls, 0.0)) ** 2

    # Both sides are equal once alone: `after` is concave, and above its argument in the beginning.
    low, high = at_least, 2.0 * at_least
    while high <= after(high) < math.inf:
        low, high = high, 2.0 * high
    if math.isinf(after(high)):
        return math.inf
    while high - low > ROUNDING * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle > after(middle) else (middle, high)
    return high


def _largest_weights(arms, sizes, noise_var, rho_power, enough):
    """The constant of "ratio", or the sum over the pairs of smallest gaps once above `enough`."""
    first, second = np.triu_indices(len(sizes), 1)
    factors = noise_var * _inverse_squares(np.maximum(sizes[first], sizes[second]))
    order = np.argsort(-factors, kind="stable")
    if np.isinf(factors[order[0]]):
        return math.inf
    largest = np.zeros(len(sizes))
    optima = pair_shares.optima(arms, zip(first[order], second[order], strict=True))
    for factor, weights in zip(factors[order], optima, strict=True):
        largest = np.maximum(largest, factor * weights * weights.sum() ** (rho_power - 1))
        if largest.sum() > enough:
            break
    return float(largest.sum())


def _inverse_squares(numbers):
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / np.square(numbers)


def _gaps(instance, m, epsilon):
    """`D_a` of each arm, and epsilon as a float."""
    instance = instance_of(instance)
    same = np.array_equal(instance.targets, instance.arms)
    require(same, "instance: its targets must be its arms")
    values = np.asarray(instance.values, float)
    last = len(values) - 1
    if not is_whole(m, 1, last):
        raise ValueError(f"m must be {allowed_whole(1, last)}, got {shown(m)}")
    m = int(plain(m))
    given(nonnegative, epsilon=epsilon)
    after, least = np.sort(values)[-m - 1], np.sort(values)[-m]
    return np.where(values >= least, values - after, least - values), float(epsilon)
