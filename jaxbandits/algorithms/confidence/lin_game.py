"""LinGame: identification of the best arm, or the m best, as a game of a learner and nature."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...conditions import fewer_than_arms, ridge_in_range, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import tracking
from ...kernels.confidence import glr, radius
from ...kernels.estimate import least_squares
from ...kernels.games import hedge, subsets
from ...kernels.games.identification import current_answer
from ...parameters import (
    Nonnegative,
    Positive,
    Probability,
    Size,
    Values,
    Variance,
    choice,
    constructor,
)
from ...types import Arms, Key


class State(NamedTuple):
    """What LinGame remembers."""

    stats: least_squares.Ledger
    learners: hedge.Many  # one for each answer
    wanted: Float[Array, " K"]  # sum of the weights of all rounds
    counts: Int[Array, " K"]
    order: Int[Array, " K"]  # priorities that break ties


class RoundInfo(NamedTuple):
    """What `tell` needs besides the reward."""

    slot: Int[Array, ""]  # of the learner whose answer it was
    owner: Bool[Array, " K"] | None  # that answer, if it is a set
    learner: hedge.Hedge  # after the losses of the round, which do not depend on the reward
    wanted: Float[Array, " K"]  # as in the state, this round included


def _consistent(values: Values) -> None:
    theta_norm_known(values, radius.NEED_THETA_NORM)
    if values["m"] is not None:
        fewer_than_arms(values)
    ridge_in_range(values)


@constructor(requires=_consistent)
def lin_game(
    arms: Arms,
    *,
    m: Size | None = None,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    threshold: Annotated[str, choice(*radius.USUAL)] = "self_normalised_det",
) -> Algorithm:
    """LinGame (Degenne, Menard, Shang, Valko, 2020).

    The leader `i = argmax mu` has a learner, AdaHedge, which proposes weights w of the arms. Nature
    answers with the closest lambda under which some j is as good as i: `min over j of
    (mu_i - mu_j)^2 / ||x_i - x_j||^2` in `V_w^-1`. The learner gains
    `U_a = min((|x_a^T (theta - lambda)| / sigma + sqrt(2 h ||x_a||^2_{V^-1}))^2 / 2, h)`,
    `h = log t`. Each arm is drawn once first, then `argmax_a of (sum of w_a so far) - N_a`. Stop
    when `mu_i - mu_j >= C sigma ||x_i - x_j||_{V^-1}` for every j. With the option m, i is any of
    the m arms with the largest estimates, j is any other arm, and each set has a learner.

    Args:
      arms: `[K, d]` features. Their units matter: the effect of the ridge depends on them.
      m: number of arms to return, below K (static); None for the best arm.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge, the paper's eta.
      threshold: the radius C: "self_normalised_det", "self_normalised", "pairwise", "lucb1" or
        "heuristic"; the last two have no proof here. The paper proves its claims for
        "self_normalised" and uses "heuristic" in its experiments. See the page "Thresholds and
        what delta promises".
    Returns:
      An `Algorithm` that draws an arm a round; its answer is an index, with m a mask `bool [K]`.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The default threshold has the exact determinant instead of its bound. Quadratic forms are
      divided by `noise_var`, 1 in the paper. 1e-9 of the longest squared length is added to V_w,
      which is singular near a vertex. Ties of the draw are broken by a random order. Sets are this
      package's extension; of more than 256 sets some share a learner, which begins anew whenever
      the set changes. In published programs nature answers to N instead of w, the draws track
      t w, or U has the root of the norm.
    Setting:
      best arm or m best arms, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, for the default and the other self-normalised
      thresholds; for the best arm the paper bounds the draws, optimally as delta tends to 0.
      Needs a bound on the norm of theta.
    Cost:
      a round K d^2 + d^3, and 3 K exponentials; the learners take K^2 numbers. With m a round K^2 d
      + K d^2.
    Reference:
      R. Degenne, P. Menard, X. Shang, M. Valko, "Gamification of pure exploration for linear
      bandits", ICML 2020, Algorithm 1. https://arxiv.org/abs/2007.00953
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.lin_game, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, _ = arms.shape
    arm_space = least_squares.prefers_arm_space(arms)
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    width, sigma = radius.width(threshold, facts), jnp.sqrt(noise_var)
    num_slots, shared = (num_arms, False) if m is None else subsets.num_slots(num_arms, m)

    def init(key: Key) -> State:
        return State(
            stats=least_squares.ridge(arms, v0, arm_space=arm_space),
            learners=hedge.many(num_slots, num_arms, shared=shared),
            wanted=jnp.zeros(num_arms),
            counts=jnp.zeros(num_arms, int),
            order=selection.tie_order(key, num_arms),
        )

    def ask(key: Key, state: State) -> Move:
        stats, draws = state.stats, state.counts.sum()
        first, later = draws < num_arms, jnp.maximum(draws, 1)
        answer, evidence, slot, owner, respond = current_answer(
            stats, arms, state.order, m, arm_space=arm_space
        )
        learner = hedge.at(state.learners, slot, owner)
        weights = hedge.weights(learner)
        h, changes = jnp.log(later), jnp.abs(respond(weights)) / sigma
        gains = 0.5 * (changes + jnp.sqrt(2.0 * h * stats.variances)) ** 2
        losses = jnp.where(first, 0.0, -jnp.minimum(gains, h))
        wanted = state.wanted + jnp.where(first, tracking.drawn(num_arms, draws), weights)
        return Move(
            arm=tracking.by_sum(state.counts, wanted, state.order),
            count=None,
            done=~first & glr.certain(evidence, width(later, stats.logdet)),
            answer=answer,
            info=RoundInfo(slot, owner, hedge.learn(learner, weights, losses), wanted),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        info: RoundInfo = move.info
        return State(
            stats=least_squares.observe(state.stats, arms, move.arm, total, arm_space=arm_space),
            learners=hedge.put(state.learners, info.slot, info.learner, info.owner),
            wanted=info.wanted,
            counts=state.counts + tracking.drawn(num_arms, move.arm),
            order=state.order,
        )

    return Algorithm(init, ask, tell)
