"""Comparisons of arms in the gap-index loop: what rewards tell, and which pair is in doubt.

The columns of Table 1 of Reda, Kaufmann and Delahaye-Duriez (2021), each of them a function: the
indices, the set J, its weakest member b, and the stopping rule.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array

from ...kernels import selection
from ...kernels.confidence import gaps
from ...kernels.estimate import least_squares, sample_means
from ...types import Arms, Pytree, Scalar


class Evidence(NamedTuple):
    """How rewards are remembered; `stats` have `means`, `variances` [K] and `logdet` []."""

    begin: Callable[[], Pytree]  # () -> stats
    observe: Callable[[Pytree, Array, Array], Pytree]  # (stats, arm, reward) -> stats
    row: Callable[[Pytree, Array], Array] | None = None  # (stats, arm) -> x_arm^T V^-1 x_k [K]
    gram: Callable[[Pytree], Array] | None = None  # (stats) -> x_i^T V^-1 x_j [K, K]


def by_features(arms: Arms, v0: Scalar, *, arm_space: bool) -> Evidence:
    """Ridge least squares; where all pairs of arms are compared, arm space is the faster form.

    Measured from 10 arms in 2 dimensions to 100 in 5: a round looks at K^2 numbers in any case.
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
    """What a round sees."""

    top: Array  # bool [K], J
    weakest: Array  # int [], b
    challenger: Array  # int [], c
    doubt: Array  # float []: at most epsilon where the answer is good enough


class Comparison(NamedTuple):
    """A `View`, and what it was taken from."""

    view: View
    column: Callable[[Array], Array]  # (arm j) -> B[i, j] for every i
    between: Callable[[], Array]  # () -> (x_b - x_c)^T V^-1 x_k


# (stats, order, width) -> Comparison
Compare: TypeAlias = Callable[[Pytree, Array, Array], Comparison]
# (comparison, what was seen before the last draw) -> View
Retest: TypeAlias = Callable[[Comparison, View], View]


def one_with_rest(evidence: Evidence, *, first_leads: bool = False) -> Compare:
    """J is the arm of largest estimate, so that only what is compared with it matters.

    Args:
      evidence: by features.
      first_leads: whether of equal leaders or rivals the first is taken: it spares a tenth of the
        time, and with rewards that have a density there are none.
    """
    row = evidence.row

    def best(values: Array, order: Array) -> selection.Best:
        if first_leads:
            return selection.best(values)
        arm = selection.argmax(values, order)
        return selection.Best(arm, selection.at(values, arm))

    def compare(stats, order, wide):
        leader = best(stats.means, order).arm
        from_leader = row(stats, leader)
        top = jnp.arange(order.size) == leader
        bounds = gaps.column(stats, from_leader, leader, wide)
        rival = best(jnp.where(top, -jnp.inf, bounds), order)
        return Comparison(
            view=View(top, leader, rival.arm, rival.value),
            column=lambda arm: gaps.column(stats, row(stats, arm), arm, wide),
            between=lambda: from_leader - row(stats, rival.arm),
        )

    return compare


class Indices(NamedTuple):
    """The gap indices of a round."""

    means: Array  # float [K]
    bounds: gaps.Paired | gaps.Individual
    worst: Callable[[], Array]  # () -> D_j [K]: how far arm j may be from the m best
    row: Callable[[Array], Array]  # (arm) -> x_arm^T V^-1 x_k [K]


def paired(evidence: Evidence, stats: Pytree, wide: Array) -> tuple[gaps.Paired, Callable]:
    """`B[i, j] = mu_i - mu_j + width ||x_i - x_j||`."""
    gram = evidence.gram(stats)
    row = functools.partial(selection.at, gram)
    return gaps.paired(stats.means, stats.variances, gram, wide), row


def individual(evidence: Evidence, stats: Pytree, wide: Array) -> tuple[gaps.Individual, Callable]:
    """`B[i, j] = mu_i - mu_j + width (||x_i|| + ||x_j||)`."""
    row = lambda arm: evidence.row(stats, arm)  # noqa: E731
    return gaps.individual(stats.means, stats.variances, wide), row


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
    retest: Retest  # what published programs test after a draw


def _lucb_retest(found: Comparison, last: View) -> View:
    return last._replace(doubt=selection.at(found.column(last.weakest), last.challenger))


# Stop when B[c, b] <= epsilon. Programs ask whether the pair that was drawn for is settled.
LUCB = Stopping(lambda found, top, rivals, c: selection.at(rivals, c), _lucb_retest)
# Stop when D_j <= epsilon for all j in J. Programs ask what was known before the draw.
UGAPE = Stopping(
    lambda found, top, rivals, c: jnp.where(top, found.worst(), -jnp.inf).max(),
    lambda found, last: last,
)

INDICES = {"paired": paired, "individual": individual}
STOPPING = {"lucb": LUCB, "ugape": UGAPE}


def best_with_rest(
    evidence: Evidence,
    m: int,
    *,
    indices: Callable = paired,
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

    def compare(stats, order, wide):
        bounds, row = indices(evidence, stats, wide)
        found = Indices(stats.means, bounds, functools.cache(lambda: bounds.nth(m)), row)
        top = selection.top(members(found), order, m)
        b = selection.argmax(jnp.where(top, weakest(found, top), -jnp.inf), order)
        rivals = jnp.where(top, -jnp.inf, bounds.column(b))
        c = selection.argmax(rivals, order)
        view = View(top, b, c, stopping.doubt(found, top, rivals, c))
        return Comparison(view, bounds.column, lambda: row(b) - row(c))

    return compare
