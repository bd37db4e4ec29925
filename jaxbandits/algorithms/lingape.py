"""LinGapE: fully adaptive best-arm identification in linear bandits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import ledger, pick, radius
from ..kernels import ratios as ratio_tables
from ..kernels.once import once_for_equal
from ..options import (
    array,
    choice,
    constructor,
    nonnegative,
    positive,
    probability,
    ratios_known,
    theta_norm_known,
)


class State(NamedTuple):
    """What LinGapE remembers."""

    stats: ledger.Ledger
    order: jax.Array  # int [K] priorities that break ties
    draws: jax.Array  # int []
    counts: jax.Array | None  # int [K]; for "ratio"
    ratios: jax.Array | None  # float [K, K, K], of arms that are not known beforehand


def _consistent(values):
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ratios_known(values, ratio_tables.num_bases(values["arms"]), ratio_tables.MOST_BASES)


@constructor(
    requires=_consistent,
    completes=ratio_tables.completed,
    delta=probability,
    epsilon=nonnegative,
    noise_var=positive,
    theta_norm=nonnegative,
    v0=positive,
    selection=choice("greedy", "ratio"),
    ratios=array("K", "K", "K"),
    threshold=choice(*radius.THRESHOLDS),
)
def lingape(
    arms,
    *,
    delta=0.05,
    epsilon=0.0,
    noise_var=1.0,
    theta_norm=None,
    v0=1.0,
    selection="greedy",
    ratios=None,
    threshold="pairwise",
):
    """LinGapE (Xu, Honda, Sugiyama, 2018).

    Leader i and most ambiguous rival j, `B = max_j mu_j - mu_i + C ||x_j - x_i||_{V^-1}`; stop
    when `B <= epsilon`, else draw the arm that shrinks `||x_i - x_j||_{V^-1}` most (eq. 9):
    `argmax_a (G_ia - G_ja)^2 / (1 + G_aa)` with `G = X V^-1 X^T`, or the one furthest behind its
    share of the design that is best for that pair in the long run (eq. 12):
    `argmin_a T_a / p_a(i, j)` with `p` from the w of least `||w||_1` with `X^T w = x_i - x_j`.
    The first K draws take each arm once and count.

    Args:
      arms: `[K, d]` features.
      delta: error probability, in (0, 1).
      epsilon: an answer within epsilon of the best is good enough.
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge, the paper's lambda.
      selection: "greedy" (eq. 9) or "ratio" (eq. 12, the one the paper analyses).
      ratios: `[K, K, K]` the table of p, by default `design.ratios(arms)`; for arms that each
        replication draws anew it is found among all sets of d arms, at most 100,000.
      threshold: the radius C, a name in `kernels.radius.THRESHOLDS`; the paper's (eq. 8) is
        "pairwise".
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The stopping test comes before the draw, with the pair recomputed. Ties of the greedy rule
      are broken by a random order of the arms drawn once a replication, not anew each round;
      of eq. 12 to the lowest index. Where a pair has several best designs, one with at most d
      arms is used.
    Reference:
      L. Xu, J. Honda, M. Sugiyama, "A fully adaptive algorithm for pure exploration in linear
      bandits", AISTATS 2018, Algorithm 1. https://arxiv.org/abs/1710.05552
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.lingape, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=50)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, _ = arms.shape
    in_arms = {"arm_space": ledger.prefers_arm_space(arms)}
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    sigma = jnp.sqrt(noise_var)
    by_ratio = selection == "ratio"
    solve = once_for_equal(ratio_tables.enumerated)

    def init(key):
        stats = ledger.ridge(arms, v0, **in_arms)
        counts = jnp.zeros(num_arms, int) if by_ratio else None
        table = solve(arms) if by_ratio and ratios is None else None
        order = pick.tie_order(key, num_arms)
        return State(stats, order, jnp.zeros((), int), counts, table)

    def ask(key, state):
        stats, draws = state.stats, state.draws
        leader, highest = pick.best(stats.means)
        from_leader = ledger.row(stats, arms, leader, **in_arms)
        width = sigma * radius.THRESHOLDS[threshold](facts, draws, stats.logdet)
        gaps = stats.means - highest
        bounds = gaps + width * jnp.sqrt(ledger.sqdist(stats, from_leader, leader))
        bounds = jnp.where(jnp.arange(num_arms) == leader, -jnp.inf, bounds)
        rival, ambiguity = pick.best(bounds)
        if by_ratio:
            table = state.ratios if ratios is None else ratios
            shares = pick.at(pick.at(table, leader), rival)
            chosen = pick.furthest_behind(state.counts, shares)  # eq. (12)
        else:
            between = from_leader - ledger.row(stats, arms, rival, **in_arms)
            chosen = pick.argmax(between**2 / (1.0 + stats.variances), state.order)  # eq. (9)
        first = draws < num_arms
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), chosen),
            count=None,
            done=~first & (ambiguity <= epsilon),
            answer=leader,
        )

    def tell(state, move, total):
        stats = ledger.observe(state.stats, arms, move.arm, total, **in_arms)
        counts = None
        if by_ratio:
            counts = state.counts + (jnp.arange(num_arms) == move.arm)
        return state._replace(stats=stats, draws=state.draws + 1, counts=counts)

    return Algorithm(init, ask, tell)
