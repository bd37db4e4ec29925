"""Frank-Wolfe sampling: one step towards the optimal design in each round."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ...conditions import ridge_in_range, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import tracking
from ...kernels.confidence import glr, radius
from ...kernels.estimate import least_squares
from ...kernels.games import matrix_game
from ...parameters import Nonnegative, Positive, Probability, Values, Variance, choice, constructor
from ...types import Arms, Key


class State(NamedTuple):
    """What Frank-Wolfe sampling remembers."""

    stats: least_squares.Ledger
    counts: Int[Array, " K"]
    target: Float[Array, " K"]  # t x(t), which the counts follow
    measured: least_squares.Ledger  # of the target: A(t x), without rewards or ridge
    leader: Int[Array, ""]
    ratio: Float[Array, ""]  # the least gap^2 / ||x_i - x_j||^2
    order: Int[Array, " K"]  # priorities that break ties
    unsolved: Int[Array, ""]  # games whose solution did not converge


def _consistent(values: Values) -> None:
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ridge_in_range(values)


@constructor(spans=True, requires=_consistent)
def frank_wolfe_sampling(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    threshold: Annotated[str, choice(*radius.USUAL)] = "self_normalised_det",
) -> Algorithm:
    """Frank-Wolfe sampling (Wang, Tzeng & Proutiere, 2021).

    `F = min_j f_j`, `f_j(w) = (mu_i - mu_j)^2 / (2 sigma^2 ||x_i - x_j||^2)` in A(w)^-1, for
    leader i. In round t, `x(t) = ((t - 1) x(t - 1) + z) / t`, where z in the simplex maximises
    `min <z - x, grad f_j(x)>` over the j with `f_j(x) < F(x) + t^-0.9 / K`: z is the arm of the
    steepest slope where there is one such j, else the solution of a matrix game. z is uniform
    where `floor(t / K)` is a square, or where two arms share the lead. Each arm is drawn once
    first, then `argmax_k x_k(t) / N_k`. Stop when `mu_i - mu_j >= C sigma ||x_i - x_j||_{V^-1}`
    for every j.

    Args:
      arms: `[K, d]` features; they must span. Their units matter: the effect of the ridge depends
        on them.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      theta_norm: a bound on the norm of theta; the proved thresholds need it.
      v0: ridge of the estimate.
      threshold: the radius C: "self_normalised_det", "self_normalised", "pairwise", "lucb1" or
        "heuristic" (the paper's); the last two have no proof here. See the page "Thresholds and
        what delta promises".
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
      `info`: `unsolved`, the number of games whose solution did not converge.
    Raises:
      ValueError: a bad option, arms that do not span, or an unknown `theta_norm`.
    Deviations:
      A ridge estimate, as in the paper's program, and a threshold proved for it. Ties are broken
      by a random order. The program updates the inverse of A(x) with other weights than x.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, for the default and the other self-normalised
      thresholds; in the paper the mean number of draws is optimal as delta tends to 0.
      Needs a bound on the norm of theta.
    Cost:
      a round K d + d^2, or K^2 where K is at most 2 d; where several rivals are near, a game
      besides: K^2 d, K d^2 + d^3 and pivots of K^2.
    Reference:
      P.-A. Wang, R.-C. Tzeng, A. Proutiere, "Fast pure exploration via Frank-Wolfe", NeurIPS
      2021, Algorithm 1. https://arxiv.org/abs/2110.15038
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.frank_wolfe_sampling, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    num_arms = arms.shape[0]
    arm_space = least_squares.prefers_arm_space(arms)
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    sigma, ones = jnp.sqrt(noise_var), jnp.ones(num_arms)

    def init(key: Key) -> State:
        zero, counts = jnp.zeros((), int), jnp.zeros(num_arms, int)
        return State(
            stats=least_squares.ridge(arms, v0, arm_space=arm_space),
            counts=counts,
            target=ones,
            measured=least_squares.foreseen(arms, ones, arm_space=arm_space),
            leader=zero,
            ratio=jnp.zeros(()),
            order=selection.tie_order(key, num_arms),
            unsolved=zero,
        )

    def ask(key: Key, state: State) -> Move:
        draws, logdet = state.counts.sum(), state.stats.logdet
        first = draws < num_arms
        width = sigma * radius.THRESHOLDS[threshold](facts, jnp.maximum(draws, 1), logdet)
        tracked = tracking.by_ratio(jnp.maximum(state.counts, 1), state.target, state.order)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), tracked),
            count=None,
            done=~first & (state.ratio >= width**2),
            answer=state.leader,
            info={"unsolved": state.unsolved},
        )

    def step(
        state: State, found: glr.Evidence, draws: Array
    ) -> tuple[Array, least_squares.Ledger, Array]:
        """The target of round `draws + 1`, its ledger, and whether a game was not solved."""
        target, measured, leader = state.target, state.measured, found.leader
        first, unit = draws < num_arms, 2.0 * noise_var
        from_leader = least_squares.row(measured, arms, leader, arm_space=arm_space)
        sqdist = least_squares.sqdist(measured, from_leader, leader)
        ratios = glr.ratios_of(found.gaps, sqdist, leader) / unit  # t f_j(x)
        closest = selection.best(-ratios)
        near = ratios / draws < -closest.value / draws + (draws + 1.0) ** -0.9 / num_arms
        root = jnp.sqrt((draws + 1) // num_arms)
        forced = (root == jnp.floor(root)) | (found.ratio <= 0)
        single = first | (~forced & (near.sum() == 1))

        def to_steepest() -> tuple[Array, least_squares.Ledger, Array]:
            from_rival = least_squares.row(measured, arms, closest.arm, arm_space=arm_space)
            arm = selection.best((from_leader - from_rival) ** 2).arm
            # The target holds each arm once from the start.
            after = least_squares.observe(
                measured, arms, arm, 0.0, arm_space=arm_space, known=first
            )
            return target + jnp.where(first, 0, tracking.drawn(num_arms, arm)), after, ~single

        def by_game() -> tuple[Array, least_squares.Ledger, Array]:
            products = least_squares.rows(measured, arms, arm_space=arm_space)
            slopes = (from_leader[:, None] - products) ** 2 * (ratios / sqdist)
            payoffs = jnp.where(near, slopes - ratios / draws, 0.0)
            game = matrix_game.solve(payoffs, near & ~forced)
            after = target + jnp.where(forced, 1.0 / num_arms, game.weights)
            ledger = least_squares.foreseen(arms, after, arm_space=arm_space)
            return after, ledger, ~(forced | game.converged)

        return lax.cond(single, to_steepest, by_game)

    def tell(state: State, move: Move, total: Array) -> State:
        stats = least_squares.observe(state.stats, arms, move.arm, total, arm_space=arm_space)
        found = glr.evidence(stats, arms, arm_space=arm_space)
        target, measured, missed = step(state, found, state.counts.sum() + 1)
        return state._replace(
            stats=stats,
            counts=state.counts + tracking.drawn(num_arms, move.arm),
            target=target,
            measured=measured,
            leader=found.leader,
            ratio=found.ratio,
            unsolved=state.unsolved + missed,
        )

    return Algorithm(init, ask, tell)
