"""Bounds of the error of fixed-budget algorithms, as their papers print them.

Most exceed 1 at the budgets of the papers' own experiments, where they are vacuous.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..design.optimal import unit_of
from ..instances import Instance
from ..instances.options import check_option
from ..kernels.estimate.links import LINKS
from ..kernels.linalg import scaling
from ..parameters import nonnegative, positive, require, whole
from ..precision import on_host
from ..system.jax_options import pinned
from .given import given, instance_of, plain

__all__ = [
    "ErrorBound",
    "bayes_gap_error_bound",
    "od_linbai_error_bound",
    "sequential_halving_error_bound",
]

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
        noise_var=max(noise_var / unit / unit, float(np.finfo(float).tiny)),  # bounds divide by it
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
def od_linbai_error_bound(instance: Instance, budget: int) -> ErrorBound:
    """`(4 K / d + 3 log2 d) exp(-m / (32 s^2 H))`, `H = max_{2 <= i <= d} i / gap_i^2`.

    m is the number of draws in a round of `od_linbai` (Yang and Tan, 2022, Theorem 2, where s = 1).

    Args:
      instance: an `Instance` with linear means.
      budget: total draws B.
    Returns:
      `ErrorBound`.
    Raises:
      ValueError: means that are not linear, or a best arm that is not the only one.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(4, gap=1.0)
    >>> round(od_linbai_error_bound(instance, 2000).value, 3)
    0.004
    """
    budget = given(whole(), budget=budget)
    facts = _linear_facts_of(instance)
    rounds = max(1, (facts.rank - 1).bit_length())
    kept = sum(-(-facts.rank // 2**r) for r in range(1, rounds))
    spare = facts.num_arms
    if spare > facts.dim * (facts.dim + 1) // 2:
        spare = min(spare, facts.rank * (facts.rank + 1) // 2)
    each = (budget - spare - kept) / rounds
    gaps = np.sort(facts.gaps)
    ranks = np.arange(2, max(facts.rank, 2) + 1)
    hardness = (ranks / gaps[ranks - 1] ** 2).max()
    front = 4 * facts.num_arms / facts.rank + 3 * math.log2(facts.rank)
    return ErrorBound(front * _exponential(-each / (32 * facts.noise_var * hardness)), 0.0)


@on_host
@np.errstate(over="ignore", divide="ignore")
def bayes_gap_error_bound(
    instance: Instance, budget: int, *, prior_scale: float | None = None, epsilon: float = 0.0
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
    Returns:
      `ErrorBound`.
    Raises:
      ValueError: means that are not linear, or a best arm that is not the only one.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(4, gap=1.0)
    >>> round(bayes_gap_error_bound(instance, 2000).value, 4)
    0.0013
    """
    budget = given(whole(), budget=budget)
    check_option(positive, prior_scale=prior_scale)
    epsilon = given(nonnegative, epsilon=epsilon)
    facts = _linear_facts_of(instance)
    epsilon = epsilon / facts.unit
    scale = math.sqrt(facts.noise_var) if prior_scale is None else plain(prior_scale) / facts.unit
    gaps = np.where(facts.gaps > 0, facts.gaps, facts.gap)
    hardness = (np.maximum((gaps + epsilon) / 2, epsilon) ** -2.0).sum()
    lengths = (np.asarray(instance.arms) ** 2).sum(1)
    known = (1.0 / lengths[lengths > 0]).sum() / np.square(scale)
    evidence = (budget - facts.num_arms) / facts.noise_var + known
    front = facts.num_arms * budget
    return ErrorBound(float(front * _exponential(-evidence / (8 * hardness))), 0.0)


def _mean_gaps(instance):
    instance = instance_of(instance)
    means = np.sort(np.asarray(instance.means))[::-1]
    _check_one_best(means[0] - means)
    return means[0] - means
