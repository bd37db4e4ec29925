"""Bounds of the error of fixed-budget algorithms, as papers print them.

Most exceed 1 at the budgets of the papers' own experiments, where they are vacuous. Those of
"simplified" form are what Azizi, Kveton and Ghavamzadeh (2022) make of them to compare them.
"""

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..design.optimal import unit_of
from ..instances import Instance
from ..instances.options import check_option
from ..kernels.estimate.links import LINKS
from ..kernels.linalg import scaling
from ..parameters import choice, nonnegative, positive, require, whole
from ..precision import on_host
from ..system.jax_options import pinned
from .given import given, instance_of, plain

__all__ = [
    "ErrorBound",
    "bayes_gap_error_bound",
    "error_lower_bound",
    "od_linbai_error_bound",
    "sequential_halving_error_bound",
]

BoundForm: TypeAlias = Literal["paper", "simplified"]
LowerForm: TypeAlias = Literal["kaufmann", "carpentier_locatelli"]

SMALLEST: float = float(np.finfo(float).tiny)  # variance, by which bounds divide
OVERFLOW: float = 700.0  # of the exponential: e^709 is the last in range


class ErrorBound(NamedTuple):
    """A bound of the probability of a wrong answer; above 1 it is vacuous.

    >>> import jaxbandits as jb
    >>> bound = sequential_halving_error_bound(jb.instances.canonical(4, gap=1.0), 400)
    >>> 0 < bound.value < 1, bound.standard_error
    (True, 0.0)
    """

    value: float
    standard_error: float  #: of a mean over replications, 0 for a closed form


class Facts(NamedTuple):
    """The quantities of an instance that bounds use, in a unit in which squares are in range."""

    unit: float  # of rewards: a power of two, so that it alters no rounding
    gaps: Float[np.ndarray, " K"]  # of linear predictors, 0 for the best arm
    best: int
    gap: float  # the least positive one
    noise_var: float
    dim: int  # the length of a feature
    rank: int
    slope: float
    linear: bool

    @property
    def num_arms(self) -> int:
        """K."""
        return len(self.gaps)


def facts_of(instance: Instance, slope: float | None = None) -> Facts:
    """The `Facts` of an instance with one best arm and means that follow from its features."""
    instance = instance_of(instance)
    check_option(positive, slope=slope)
    arms, means = np.asarray(instance.arms), np.asarray(instance.means)
    predictors, link = arms @ np.asarray(instance.theta), LINKS[instance.family]
    with pinned():
        expected = np.asarray(link.mean(jnp.asarray(predictors)))
        slopes = np.asarray(link.variance(jnp.asarray(predictors)))
    known = np.allclose(expected, means, atol=1e-6 * np.abs(means).max())
    require(known, "instance: its means are not given by its features")
    gaps = predictors.max() - predictors
    _check_one_best(gaps)
    noise_var = float(instance.noise_var)
    unit = float(unit_of(np.append(gaps, math.sqrt(noise_var))))
    gaps = gaps / unit
    return Facts(
        unit=unit,
        gaps=gaps,
        best=int(gaps.argmin()),
        gap=float(np.sort(gaps)[1]),
        noise_var=max(noise_var / unit / unit, SMALLEST),
        dim=arms.shape[1],
        rank=scaling.condition(arms).rank,
        slope=float(slopes.min()) if slope is None else slope,
        linear=instance.family == "gaussian",
    )


def _linear_facts_of(instance):
    facts = facts_of(instance)
    wrong = f"instance: its means must be linear, got family {instance.family!r}"
    require(facts.linear, wrong)
    return facts


def _check_one_best(gaps):
    require(len(gaps) > 1, "instance: it must have two arms or more, got one")
    require((gaps > 0).sum() == len(gaps) - 1, "instance: it must have one best arm")


def _exponential(power):
    """`e^power`, infinite where that is out of range."""
    return math.exp(power) if power < OVERFLOW else math.inf


@on_host
@np.errstate(over="ignore", divide="ignore")
def sequential_halving_error_bound(instance: Instance, budget: int) -> ErrorBound:
    """`3 log2(K) exp(-B / (8 log2(K) H2))`, `H2 = max i / gap_i^2` (Karnin et al., Theorem 4.1).

    Args:
      instance: an `Instance` with rewards in [0, 1], as the theorem requires; only its means are
        used.
      budget: total draws B.
    Returns:
      `ErrorBound`.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.bernoulli([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.1])
    >>> round(sequential_halving_error_bound(instance, 200).value, 4)
    0.001
    """
    budget = given(whole(), budget=budget)
    gaps = _mean_gaps(instance)
    halvings = math.log2(len(gaps))
    hardness = (np.arange(2, len(gaps) + 1) / gaps[1:] ** 2).max()
    return ErrorBound(3 * halvings * _exponential(-budget / (8 * halvings * hardness)), 0.0)


@on_host
@np.errstate(over="ignore", divide="ignore")
def od_linbai_error_bound(
    instance: Instance, budget: int, *, form: BoundForm = "paper"
) -> ErrorBound:
    """`(4 K / d + 3 log2 d) exp(-m / (32 s^2 H))`, `H = max_{2 <= i <= d} i / gap_i^2`.

    m is the number of draws in a round of `od_linbai` (Yang and Tan, 2022, Theorem 2, where s = 1).

    Args:
      instance: an `Instance` with linear means.
      budget: total draws B.
      form: "simplified" has `(B - d^2) / log2 d` draws for m and `H = d / D^2`, D the least gap
        (Azizi et al., 2022, D.3): for many arms, of which the d best have equal gaps, roughly. Its
        fewer draws need not make it an upper bound.
    Returns:
      `ErrorBound`.
    Raises:
      ValueError: means that are not linear, a best arm that is not the only one, an unknown form,
        or the simplified one in a single dimension, for which it divides by log2 d = 0.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(4, gap=1.0)
    >>> round(od_linbai_error_bound(instance, 2000).value, 3)
    0.004
    """
    budget = given(whole(), budget=budget)
    given(choice(*get_args(BoundForm)), form=form)
    facts = _linear_facts_of(instance)
    front = 4 * facts.num_arms / facts.rank + 3 * math.log2(facts.rank)
    if form == "simplified":
        require(facts.rank > 1, "form 'simplified' needs arms that span two dimensions or more")
        scale = 32 * facts.noise_var * facts.rank * math.log2(facts.rank)
        power = (facts.rank**2 - budget) * np.square(facts.gap) / scale
        return ErrorBound(front * _exponential(power), 0.0)
    rounds = max(1, (facts.rank - 1).bit_length())
    kept = sum(-(-facts.rank // 2**r) for r in range(1, rounds))
    spare = facts.num_arms
    if spare > facts.dim * (facts.dim + 1) // 2:
        spare = min(spare, facts.rank * (facts.rank + 1) // 2)
    each = (budget - spare - kept) / rounds
    gaps = np.sort(facts.gaps)
    ranks = np.arange(2, max(facts.rank, 2) + 1)
    hardness = (ranks / gaps[ranks - 1] ** 2).max()
    return ErrorBound(front * _exponential(-each / (32 * facts.noise_var * hardness)), 0.0)


@on_host
@np.errstate(over="ignore", divide="ignore")
def bayes_gap_error_bound(
    instance: Instance,
    budget: int,
    *,
    prior_scale: float | None = None,
    epsilon: float = 0.0,
    form: BoundForm = "paper",
) -> ErrorBound:
    """`K B exp(-((B - K) / s^2 + kappa / e^2) / (8 H))`, of `bayes_gap` that knows H.

    `H = sum of max((gap_i + epsilon) / 2, epsilon)^-2`, `kappa = sum of ||x_k||^-2` over arms of
    positive length, and e is the prior's scale (Hoffman, Shahriari and de Freitas, 2014, Theorem 1,
    with the linear kernel).

    Args:
      instance: an `Instance` with linear means; the gap of the best arm is that to the second.
      budget: total draws B.
      prior_scale: e, in units of a reward; by default s.
      epsilon: accuracy, in units of a reward.
      form: "simplified" is `K B exp(-B D^2 / (32 K s^2))`, D the least gap (Azizi et al., 2022,
        eq. 11): for epsilon = 0 and without the prior and the K draws that are subtracted.
    Returns:
      `ErrorBound`.
    Raises:
      ValueError: means that are not linear, a best arm that is not the only one, an unknown form,
        or a prior_scale or epsilon for the simplified one, which has none.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(4, gap=1.0)
    >>> round(bayes_gap_error_bound(instance, 2000).value, 4)
    0.0013
    """
    budget = given(whole(), budget=budget)
    check_option(positive, prior_scale=prior_scale)
    epsilon = given(nonnegative, epsilon=epsilon)
    given(choice(*get_args(BoundForm)), form=form)
    facts = _linear_facts_of(instance)
    front = facts.num_arms * budget
    if form == "simplified":
        require(prior_scale is None and epsilon == 0, "form 'simplified' has no other options")
        power = -budget * np.square(facts.gap) / (32 * facts.num_arms * facts.noise_var)
        return ErrorBound(front * _exponential(power), 0.0)
    epsilon = epsilon / facts.unit
    scale = math.sqrt(facts.noise_var) if prior_scale is None else plain(prior_scale) / facts.unit
    gaps = np.where(facts.gaps > 0, facts.gaps, facts.gap)
    hardness = (np.maximum((gaps + epsilon) / 2, epsilon) ** -2.0).sum()
    lengths = (np.asarray(instance.arms) ** 2).sum(1)
    known = (1.0 / lengths[lengths > 0]).sum() / np.square(scale)
    evidence = (budget - facts.num_arms) / facts.noise_var + known
    return ErrorBound(float(front * _exponential(-evidence / (8 * hardness))), 0.0)


@on_host
@np.errstate(over="ignore", divide="ignore")
def error_lower_bound(instance: Instance, budget: int, *, form: LowerForm = "kaufmann") -> float:
    """`exp(-B / (s^2 H))`, `H = sum over arms of gap_i^-2`: the order of the least error.

    Independent arms, that is, without the structure that features give: on the hardest of the
    problems with this H, no algorithm has an error of a smaller order. The gap of the best arm is
    that to the second. Azizi, Kveton and Ghavamzadeh (2022, Section 4.1) print it without the
    constants of the theorems, so that a single algorithm on a single problem may be below it.

    Args:
      instance: an `Instance`; only its means and its noise variance s^2 are used.
      budget: total draws B.
      form: "kaufmann" (Kaufmann, Cappe and Garivier, 2016), or "carpentier_locatelli" (2016):
        `exp(-B / (s^2 log(K) H))`, where H is not known beforehand; a natural logarithm.
    Returns:
      A number in [0, 1].
    Raises:
      ValueError: a bad budget, an unknown form, one arm or two best.
    Reference:
      E. Kaufmann, O. Cappe, A. Garivier, "On the complexity of best-arm identification in
      multi-armed bandit models", JMLR 17, 2016. A. Carpentier, A. Locatelli, "Tight (lower) bounds
      for the fixed budget best arm identification bandit problem", COLT 2016.

    >>> import jaxbandits as jb
    >>> round(error_lower_bound(jb.instances.canonical(4, gap=1.0), 20), 4)
    0.0067
    """
    budget = given(whole(), budget=budget)
    given(choice(*get_args(LowerForm)), form=form)
    gaps = _mean_gaps(instance)
    noise_var = float(instance_of(instance).noise_var)
    unit = float(unit_of(np.append(gaps, math.sqrt(noise_var))))
    hardness = float(((np.append(gaps[1], gaps[1:]) / unit) ** -2.0).sum())
    hardness *= max(noise_var / unit / unit, SMALLEST)
    hardness *= math.log(len(gaps)) if form == "carpentier_locatelli" else 1.0
    return math.exp(-budget / hardness)


def _mean_gaps(instance):
    instance = instance_of(instance)
    means = np.sort(np.asarray(instance.means))[::-1]
    _check_one_best(means[0] - means)
    return means[0] - means
