"""A top-two algorithm with information-directed selection, for linear bandits."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import ridge_in_reach, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection as pick
from ...kernels.allocate import tracking
from ...kernels.confidence import glr, radius
from ...kernels.estimate import least_squares
from ...parameters import Nonnegative, Positive, Probability, choice, constructor
from ...types import Arms

LEAST_KNOWN = 2.0  # squared length in V^-1 times the root of the draws


class State(NamedTuple):
    """What the top-two algorithm remembers."""

    stats: least_squares.Ledger
    counts: jax.Array  # int [K]
    wanted: jax.Array  # float [K] sum of the chances of all rounds, () where arms are sampled
    order: jax.Array  # int [K] priorities that break ties


def _consistent(values):
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ridge_in_reach(values)


@constructor(requires=_consistent)
def top_two(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Positive = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    selection: Annotated[str, choice("sampled", "tracked")] = "sampled",
    threshold: Annotated[str, choice(*radius.USUAL)] = "self_normalised_det",
) -> Algorithm:
    """Top two with information-directed selection (after Qin & You, 2023).

    Leader `i = argmax mu`; challenger `j = argmin of (mu_i - mu_j)^2 / ||y||^2`, `y = x_i - x_j`
    in V^-1. Arm a is drawn with chance `h_a` proportional to `N_a (x_a^T V^-1 y)^2`, its share
    in what the draws so far tell about the pair: with `f = gap^2 / (2 ||y||^2)` in V(N)^-1,
    `h_a = N_a (df / dN_a) / f`, which sums to 1 because f is homogeneous. Each arm is drawn once
    first; after t draws, while some `||x_a||^2 > 2 / sqrt(t)` in V^-1, the largest of them is
    drawn instead. Stop when `mu_i - mu_j >= C sigma ||x_i - x_j||_{V^-1}` for every j.

    Args:
      arms: `[K, d]` features. Their units matter: the ridge is in them.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge.
      selection: "sampled" draws an arm with these chances; "tracked" the arm whose count is
        furthest behind the sum of its chances.
      threshold: the radius C, a name in `kernels.radius.USUAL`.
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the threshold needs it.
    Deviations:
      The paper proves its claims for arms without structure; the rule for linear ones is its
      principle, an arm's share of the information, written out. Leader and challenger come from
      the estimate, not from posterior samples. "tracked" is ours, and so is that every arm is
      known as well as by `sqrt(t) / 2` draws of its own: else two arms as good as each other that
      lead after unlucky rewards (one run in 20,000 on Soare's instance) are all that is ever
      drawn. The estimate has a ridge. That the answer is right holds by the threshold, for any
      rule of drawing.
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
    in_arms = {"arm_space": least_squares.prefers_arm_space(arms)}
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    width, tracked = radius.width(threshold, facts), selection == "tracked"

    def init(key):
        return State(
            stats=least_squares.ridge(arms, v0, **in_arms),
            counts=jnp.zeros(num_arms, int),
            wanted=jnp.zeros(num_arms) if tracked else (),
            order=pick.tie_order(key, num_arms),
        )

    def ask(key, state):
        stats, draws = state.stats, state.counts.sum()
        first = draws < num_arms
        found = glr.evidence(stats, arms, **in_arms)
        wide = width(jnp.maximum(draws, 1), stats.logdet)
        between = found.from_leader - least_squares.row(stats, arms, found.rival, **in_arms)
        shares = state.counts * between**2
        least_known = pick.argmax(stats.variances, state.order)
        unknown = pick.at(stats.variances, least_known) * jnp.sqrt(draws) > LEAST_KNOWN
        shares = jnp.where(unknown, tracking.drawn(num_arms, least_known), shares)
        wanted = ()
        if tracked:
            chances = shares / jnp.where(shares.sum() > 0, shares.sum(), 1.0)
            wanted = state.wanted + jnp.where(first, tracking.drawn(num_arms, draws), chances)
            arm = tracking.by_sum(state.counts, wanted, state.order)
        else:
            arm = jnp.where(first, draws, pick.sample(key, shares))
        return Move(
            arm=arm,
            count=None,
            done=~first & glr.certain(found, wide),
            answer=found.leader,
            info=(wanted,),
        )

    def tell(state, move, total):
        return State(
            stats=least_squares.observe(state.stats, arms, move.arm, total, **in_arms),
            counts=state.counts + tracking.drawn(num_arms, move.arm),
            wanted=move.info[0],
            order=state.order,
        )

    return Algorithm(init, ask, tell)
