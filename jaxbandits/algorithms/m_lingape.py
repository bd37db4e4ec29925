"""m-LinGapE: the m best arms of a linear bandit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import ledger, pick, radius
from ..options import (
    choice,
    constructor,
    nonnegative,
    positive,
    probability,
    require,
    size,
    theta_norm_known,
)


class State(NamedTuple):
    """What m-LinGapE remembers."""

    stats: ledger.Ledger  # in arm space: every pair of arms is compared each round
    order: jax.Array  # int [K] priorities that break ties
    draws: jax.Array  # int []


def _consistent(values):
    num_arms = values["arms"].shape[0]
    require(values["m"] < num_arms, f"m must be below the {num_arms} arms, got {values['m']}")
    theta_norm_known(values, radius.NEED_THETA_NORM)


@constructor(
    requires=_consistent,
    m=size(),
    delta=probability,
    epsilon=nonnegative,
    noise_var=positive,
    theta_norm=nonnegative,
    v0=positive,
    selection=choice("greedy"),
    threshold=choice(*radius.THRESHOLDS),
)
def m_lingape(
    arms,
    *,
    m,
    delta=0.05,
    epsilon=0.0,
    noise_var=1.0,
    theta_norm=None,
    v0=None,
    selection="greedy",
    threshold="self_normalised_det",
):
    """m-LinGapE (Reda, Kaufmann, Delahaye-Duriez, 2021), paired indices, greedy selection.

    `B[i, j] = mu_i - mu_j + C sigma ||x_i - x_j||_{V^-1}`; J holds the m largest estimates;
    `b = argmax_{j in J} max_{i not in J} B[i, j]`, `c = argmax_{i not in J} B[i, b]`; stop when
    `B[c, b] <= epsilon`, else draw `argmax_a (G_ba - G_ca)^2 / (1 + G_aa)`. Each arm is drawn
    once first.

    Args:
      arms: `[K, d]` features.
      m: number of arms to return, below K (static).
      delta: error probability, in (0, 1).
      epsilon: members within epsilon of the m-th best are good enough.
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge; the paper's lambda = sigma/20 by default.
      selection: "greedy".
      threshold: the radius C, a name in `kernels.radius.THRESHOLDS`.
    Returns:
      An `Algorithm` whose answer is a mask `bool [K]` with m true entries.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The stopping test comes before the draw with the pair recomputed, as the paper states it;
      the published program tests an old pair after the draw and errs more often. The
      self-normalised threshold is written for V = v0 I + .. alone; the paper mixes two
      conventions. Ties are broken by a random order drawn once a replication.
    Reference:
      C. Reda, E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits",
      AISTATS 2021, Algorithm 1 and Table 1. https://arxiv.org/abs/2103.10070
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.classic_top_m(4, 2, angle=1.0)
      >>> algorithm = partial(jb.m_lingape, m=2, threshold="heuristic")
      >>> runs = jb.simulate(instance, algorithm, replications=20)
      >>> runs.answer.shape, int(runs.answer.sum(1).max())
      ((20, 4), 2)
    """
    num_arms, _ = arms.shape
    sigma = jnp.sqrt(noise_var)
    v0 = sigma / 20.0 if v0 is None else v0
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)

    def init(key):
        stats = ledger.ridge(arms, v0, arm_space=True)
        return State(stats, pick.tie_order(key, num_arms), jnp.zeros((), int))

    def ask(key, state):
        stats, draws = state.stats, state.draws
        gram, means = stats.core, stats.means
        top = pick.top(means, state.order, m)
        width = sigma * radius.THRESHOLDS[threshold](facts, jnp.maximum(draws, 1), stats.logdet)
        spread = stats.variances[:, None] + stats.variances[None, :] - 2.0 * gram
        bounds = means[:, None] - means[None, :] + width * jnp.sqrt(jnp.maximum(0.0, spread))
        bounds = jnp.where(~top[:, None] & top[None, :], bounds, -jnp.inf)
        weakest = pick.argmax(bounds.max(0), state.order)  # b
        challenger = pick.argmax(bounds[:, weakest], state.order)  # c
        between = gram[weakest] - gram[challenger]
        greedy = pick.argmax(between**2 / (1.0 + stats.variances), state.order)
        first = draws < num_arms
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), greedy),
            count=None,
            done=~first & (bounds[challenger, weakest] <= epsilon),
            answer=top,
        )

    def tell(state, move, total):
        stats = ledger.observe(state.stats, arms, move.arm, total, arm_space=True)
        return State(stats, state.order, state.draws + 1)

    return Algorithm(init, ask, tell)
