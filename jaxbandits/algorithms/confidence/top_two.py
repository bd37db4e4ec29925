"""A top-two algorithm with information-directed selection, for linear bandits."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import ridge_in_range, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection as pick
from ...kernels.allocate import tracking
from ...kernels.confidence import glr, radius
from ...kernels.estimate import least_squares
from ...parameters import Nonnegative, Positive, Probability, Values, Variance, choice, constructor
from ...types import Arms, Key

LEAST_KNOWN: float = 2.0  # the largest `||x_a||^2 sqrt(t)` in V^-1 of an arm that is known enough


class State(NamedTuple):
    """What the top-two algorithm remembers."""

    stats: least_squares.Ledger
    counts: Int[Array, " K"]
    wanted: Float[Array, " K"] | None  # sum of the probabilities of all rounds, for "tracked"
    order: Int[Array, " K"]  # priorities that break ties


class RoundInfo(NamedTuple):
    """What `tell` needs besides the reward."""

    wanted: Float[Array, " K"] | None  # as in the state, this round included


def _consistent(values: Values) -> None:
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ridge_in_range(values)


@constructor(requires=_consistent)
def top_two(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    selection: Annotated[str, choice("sampled", "tracked")] = "sampled",
    threshold: Annotated[str, choice(*radius.USUAL)] = "self_normalised_det",
) -> Algorithm:
    """Top two with information-directed selection (after Qin & You, 2023).

    Leader `i = argmax mu`; challenger `j = argmin of (mu_i - mu_j)^2 / ||y||^2`, `y = x_i - x_j` in
    V^-1. Arm a is drawn with probability `h_a` proportional to `N_a (x_a^T V^-1 y)^2`, its share of
    the information that the draws so far give about the pair: with `f = gap^2 / (2 ||y||^2)` in
    V(N)^-1, `h_a` is `N_a / f` times the derivative of f by `N_a`. The `h_a` sum to 1 because f is
    homogeneous. Each arm is drawn once first. While some `||x_a||^2 > 2 / sqrt(t)` in V^-1 after t
    draws, the arm of the largest is drawn instead. Stop when
    `mu_i - mu_j >= C sigma ||x_i - x_j||_{V^-1}` for every j.

    Args:
      arms: `[K, d]` features. Their units matter: the effect of the ridge depends on them.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge.
      selection: "sampled" draws an arm with these probabilities; "tracked" draws the arm whose
        count is furthest behind the sum of its probabilities.
      threshold: the radius C: "self_normalised_det", "self_normalised", "pairwise", "lucb1" or
        "heuristic"; the last two have no proof here. See the page "Thresholds and what delta
        promises".
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The paper proves its claims for arms without structure. The rule for linear bandits applies
      its principle, an arm's share of the information. Leader and challenger come from the
      estimate, not from posterior samples. "tracked" is this package's. This package also adds the
      rule that draws the arm of the largest `||x_a||^2` in V^-1, while that is above `2 / sqrt(t)`.
      So after t draws each mean is known about as precisely as from `sqrt(t) / 2` draws of that
      arm alone. Without this rule, two equally good arms that lead after unlucky rewards would be
      drawn for ever (one run in 20,000 on Soare's instance). The estimate has a ridge. The
      guarantee of the answer comes from the threshold and holds for any sampling rule.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, for the default and the other self-normalised
      thresholds, whatever arms are drawn; nothing is proved about the number of draws in the linear
      model. Needs a bound on the norm of theta.
    Cost:
      a round K d + d^2, or K^2 where K is at most 2 d.
    Reference:
      C. Qin, W. You, "Dual-directed algorithm design for efficient pure exploration", Operations
      Research 2025. https://arxiv.org/abs/2310.19319
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.top_two, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, _ = arms.shape
    arm_space = least_squares.prefers_arm_space(arms)
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    width, tracked = radius.width(threshold, facts), selection == "tracked"

    def init(key: Key) -> State:
        return State(
            stats=least_squares.ridge(arms, v0, arm_space=arm_space),
            counts=jnp.zeros(num_arms, int),
            wanted=jnp.zeros(num_arms) if tracked else None,
            order=pick.tie_order(key, num_arms),
        )

    def ask(key: Key, state: State) -> Move:
        stats, draws = state.stats, state.counts.sum()
        first = draws < num_arms
        found = glr.evidence(stats, arms, arm_space=arm_space)
        sigma_c = width(jnp.maximum(draws, 1), stats.logdet)
        from_rival = least_squares.row(stats, arms, found.rival, arm_space=arm_space)
        between = found.from_leader - from_rival
        shares = state.counts * between**2
        least_known = pick.argmax(stats.variances, state.order)
        unknown = pick.at(stats.variances, least_known) * jnp.sqrt(draws) > LEAST_KNOWN
        shares = jnp.where(unknown, tracking.drawn(num_arms, least_known), shares)
        if state.wanted is None:
            wanted, arm = None, jnp.where(first, draws, pick.sample(key, shares))
        else:
            chances = shares / jnp.where(shares.sum() > 0, shares.sum(), 1.0)
            wanted = state.wanted + jnp.where(first, tracking.drawn(num_arms, draws), chances)
            arm = tracking.by_sum(state.counts, wanted, state.order)
        return Move(
            arm=arm,
            count=None,
            done=~first & glr.certain(found, sigma_c),
            answer=found.leader,
            info=RoundInfo(wanted),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        return State(
            stats=least_squares.observe(state.stats, arms, move.arm, total, arm_space=arm_space),
            counts=state.counts + tracking.drawn(num_arms, move.arm),
            wanted=move.info.wanted,
            order=state.order,
        )

    return Algorithm(init, ask, tell)
