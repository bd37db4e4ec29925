"""Comparisons of arms in the gap-index loop: how rewards are remembered, which pair is in doubt.

The columns of Table 1 of Reda, Kaufmann and Delahaye-Duriez (2021), each of them a function: the
indices, the set J, its weakest member b, and the stopping rule.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...kernels import selection
from ...kernels.confidence import gaps
from ...kernels.estimate import least_squares, sample_means
from ...types import Arms, Pytree, Scalar


def _no_features(*_: Any) -> NoReturn:
    raise TypeError("averages of rewards do not tell the products of features")


class Evidence(NamedTuple):
    """How rewards are remembered; `stats` have `means`, `variances` [K] and `logdet` []."""

    begin: Callable[[], Pytree]  # () -> stats
    observe: Callable[[Pytree, Array, Array], Pytree]  # (stats, arm, reward) -> stats
    row: Callable[[Pytree, Array], Array] = _no_features  # (stats, arm) -> x_arm^T V^-1 x_k [K]
    gram: Callable[[Pytree], Array] = _no_features  # (stats) -> x_i^T V^-1 x_j [K, K]


def by_features(arms: Arms, v0: Scalar, *, arm_space: bool) -> Evidence:
    """Ridge least squares; where all pairs of arms are compared, arm space is the faster form.

    So it was measured, from 10 arms in 2 dimensions to 100 in 5: a round needs K^2 numbers in
    either form.
    Variances fall from 1 / v0 to 1 with the first draws, which single precision cannot follow: use
    double precision, as `simulate` and `Live` do.
    """
    return Evidence(
        begin=lambda: least_squares.ridge(arms, v0, arm_space=arm_space),
        observe=lambda stats, arm, reward: least_squares.observe(
            stats, arms, arm, reward, arm_space=arm_space
        ),
        row=lambda stats, arm: least_squares.row(stats, arms, arm, arm_space=arm_space),
        gram=lambda stats: least_squares.rows(stats, arms, arm_space=arm_space),
    )


def by_averages(num_arms: int) -> Evidence:
    """The average reward of each arm."""
    return Evidence(lambda: sample_means.nothing(num_arms), sample_means.observe)


class View(NamedTuple):
    """The pair that a round compares, and how much is in doubt."""

    top: Bool[Array, " K"]  # J, the arms believed best
    weakest: Int[Array, ""]  # b, the member of J that is most in doubt
    challenger: Int[Array, ""]  # c, the arm outside J that comes closest to b
    doubt: Float[Array, ""]  # at most epsilon where the answer is good enough


class Comparison(NamedTuple):
    """A `View`, with functions that compute more of the comparison where it is needed."""

    view: View
    column: Callable[[Array], Array]  # (arm j) -> B[i, j] for every i
    between: Callable[[], Array]  # () -> (x_b - x_c)^T V^-1 x_k


# (stats, order, width) -> Comparison
Compare: TypeAlias = Callable[[Pytree, Array, Array], Comparison]
# (comparison, the view before the last draw) -> View
Retest: TypeAlias = Callable[[Comparison, View], View]


def one_with_rest(evidence: Evidence, *, first_leads: bool = False) -> Compare:
    """J is the arm of largest estimate, so that only the indices `B[i, j]` of that arm j matter.

    Args:
      evidence: by features.
      first_leads: whether ties between leaders, or between rivals, go to the first arm: this saves
        a tenth of the time, and where rewards have a density there are no ties.
    """
    row = evidence.row

    def best(values: Array, order: Array) -> selection.Best:
        if first_leads:
            return selection.best(values)
        arm = selection.argmax(values, order)
        return selection.Best(arm, selection.at(values, arm))

    def compare(stats, order, width):
        leader = best(stats.means, order).arm
        from_leader = row(stats, leader)
        top = jnp.arange(order.size) == leader
        bounds = gaps.column(stats, from_leader, leader, width)
        rival = best(jnp.where(top, -jnp.inf, bounds), order)
        return Comparison(
            view=View(top, leader, rival.arm, rival.value),
            column=lambda arm: gaps.column(stats, row(stats, arm), arm, width),
            between=lambda: from_leader - row(stats, rival.arm),
        )

    return compare


Row: TypeAlias = Callable[[Array], Array]  # (arm) -> x_arm^T V^-1 x_k [K]


class Indices(NamedTuple):
    """The gap indices of a round."""

    means: Float[Array, " K"]
    bounds: gaps.Paired | gaps.Individual
    worst: Callable[[], Array]  # () -> D_j [K]: how far arm j may be from the m best


# (evidence, stats, width) -> (B, row)
GapIndices: TypeAlias = Callable[
    [Evidence, Pytree, Array], tuple[gaps.Paired | gaps.Individual, Row]
]


def paired(evidence: Evidence, stats: Pytree, width: Array) -> tuple[gaps.Paired, Row]:
    """`B[i, j] = mu_i - mu_j + width ||x_i - x_j||`."""
    gram = evidence.gram(stats)
    row = functools.partial(selection.at, gram)
    return gaps.paired(stats.means, stats.variances, gram, width), row


def individual(evidence: Evidence, stats: Pytree, width: Array) -> tuple[gaps.Individual, Row]:
    """`B[i, j] = mu_i - mu_j + width (||x_i|| + ||x_j||)`."""
    row = functools.partial(evidence.row, stats)
    return gaps.individual(stats.means, stats.variances, width), row


def largest_means(found: Indices) -> Array:
    """J holds the m arms of largest estimates."""
    return found.means


def least_worst(found: Indices) -> Array:
    """J holds the m arms of least `D_j`."""
    return -found.worst()


def hardest_pair(found: Indices, top: Array) -> Array:
    """`b = argmax_{j in J} max_{i not in J} B[i, j]`: of the pair that is hardest to tell apart."""
    return found.bounds.highest(~top)


def largest_worst(found: Indices, top: Array) -> Array:
    """`b = argmax_{j in J} D_j`."""
    return found.worst()


class Stopping(NamedTuple):
    """A stopping rule."""

    # (indices, J, B[i, b] for i not in J, c) -> []: what is left to doubt
    doubt: Callable[[Indices, Array, Array, Array], Array]
    retest: Retest  # what published programs test instead, once the pair's arm is drawn


def _lucb_retest(comparison: Comparison, last: View) -> View:
    return last._replace(doubt=selection.at(comparison.column(last.weakest), last.challenger))


# Stop when B[c, b] <= epsilon. Published programs test the present B[c, b] of the last pair b, c.
LUCB: Stopping = Stopping(lambda found, top, rivals, c: selection.at(rivals, c), _lucb_retest)
# Stop when D_j <= epsilon for all j in J. Published programs test the D_j before the last draw.
UGAPE: Stopping = Stopping(
    lambda found, top, rivals, c: jnp.where(top, found.worst(), -jnp.inf).max(),
    lambda comparison, last: last,
)

INDICES: dict[str, GapIndices] = {"paired": paired, "individual": individual}
STOPPING: dict[str, Stopping] = {"lucb": LUCB, "ugape": UGAPE}


def best_with_rest(
    evidence: Evidence,
    m: int,
    *,
    indices: GapIndices = paired,
    members: Callable[[Indices], Array] = largest_means,
    weakest: Callable[[Indices, Array], Array] = hardest_pair,
    stopping: Stopping = LUCB,
) -> Compare:
    """J, the m arms believed best, is compared with the others: a line of Table 1.

    Args:
      evidence: how rewards are remembered.
      m: number of arms in J.
      indices: `paired` or `individual`.
      members: J holds the m arms for which this is largest, `largest_means` or `least_worst`.
      weakest: b is the member of J for which this is largest, `hardest_pair` or `largest_worst`.
      stopping: `LUCB` or `UGAPE`.
    """

    def compare(stats, order, width):
        bounds, row = indices(evidence, stats, width)
        found = Indices(stats.means, bounds, functools.cache(lambda: bounds.nth(m)))
        top = selection.top(members(found), order, m)
        b = selection.argmax(jnp.where(top, weakest(found, top), -jnp.inf), order)
        rivals = jnp.where(top, -jnp.inf, bounds.column(b))
        c = selection.argmax(rivals, order)
        view = View(top, b, c, stopping.doubt(found, top, rivals, c))
        return Comparison(view, bounds.column, lambda: row(b) - row(c))

    return compare
