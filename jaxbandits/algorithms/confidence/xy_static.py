"""XY-static: the fixed allocation that measures all differences of targets best."""

from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array

from ...core import Algorithm, Move
from ...feature_tables import check_spans, is_concrete
from ...kernels import sampling, selection
from ...kernels.allocate import geometric_batches
from ...kernels.confidence import radius
from ...kernels.design import greedy_xy
from ...kernels.design.xy.by_name import DESIGNS, named
from ...kernels.linalg import spd
from ...kernels.shared_call import once_for_equal
from ...parameters import Nonnegative, Positive, Probability, Values, Variance, choice, constructor
from ...types import Arms, Key, Scalar, Targets
from ..loops.single import only_answer


def _without_ridge(values: Values) -> bool:
    no_ridge = is_concrete(values["v0"]) and values["v0"] == 0
    return values["variant"] == "rage" or bool(no_ridge)


def _spans(values: Values) -> None:
    if _without_ridge(values):
        check_spans(values["arms"])


@constructor(requires=_spans, scale_free=_without_ridge)
def xy_static(
    arms: Arms,
    targets: Targets | None = None,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    variant: Annotated[str, choice("rage", "soare")] = "rage",
    v0: Nonnegative = 0.0,
    growth: Positive = 1.35,
    powers: Annotated[str, choice(*geometric_batches.POWERS)] = "all",
    allocation: Annotated[str, choice(*geometric_batches.ALLOCATIONS)] = "iid",
    singular: Annotated[str, choice(*geometric_batches.SINGULAR)] = "wait",
    design: Annotated[str, choice(*DESIGNS)] = "interior_point",
    tol: Positive | None = None,
) -> Algorithm:
    """XY-static (Soare, Lazaric, Munos, 2014).

    The draws make the largest `||z - z'||^2_{A^-1}` small; they do not depend on the rewards.
    "rage" (Fiez et al., 2019): batches of `ceil(growth^t)` draws from the design w that minimises
    it, t = 1, 2, ..; stop with the empirical best z when for all others
    `||z - z'||_{A^-1} sqrt(2 log(2 M^2 t^2 / delta)) < (z - z')^T theta_hat`.
    "soare" (Xu et al., 2018): each arm is drawn once, then each time the arm whose draw makes it
    smallest, until for all others
    `2 sqrt(2) ||z - z'||_{A^-1} sqrt(log(6 n^2 M^2 / (pi^2 delta))) <= (z - z')^T theta_hat`.

    Args:
      arms: `[K, d]` features that can be drawn; they must span unless v0 is above 0. The units of a
        column change nothing unless v0 is above 0.
      targets: `[M, d]` features to choose among, the arms by default.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      variant: "rage" or "soare", the experiments from which it is taken.
      v0: ridge of "soare", which begins with A = v0 I; 0.01 in the experiment on the click log.
        Nothing is proved with one, for the width ignores its bias.
      growth: of the batches of "rage", for which all options below are.
      powers: "all" t, or "odd" as in the published program, which counts each batch twice.
      allocation: "iid" draws from w, or "rounded" efficiently, so that each arm of the support
        is drawn from the start.
      singular: "wait" with the test until the draws span, or "ignore" as in the published
        program, which takes a direction that is not measured yet for a certain one.
      design: "interior_point", certified, or "frank_wolfe", that of the RAGE experiments.
      tol: relative accuracy of w, 1e-3 by default; Frank-Wolfe ends with a step of this size, 0.01
        by default.
    Returns:
      An `Algorithm` that asks for a batch or for one arm, and answers the index of a target. `info`
      of "rage": 1 where the design is `unsolved` to `tol`, 1 where the draws are `unspanned`.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      "rage": "all", "wait" and "interior_point" by default, see above. The published program
      counts d draws that it does not make.
      "soare": the constant is for bounded noise; for sub-Gaussian noise half of it is enough. Arms
      that tie (relative difference of scores below 1e-12) are drawn in a random order that is new
      for each draw, but the same in all replications.
    Setting:
      best arm, fixed confidence, transductive.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, with v0 = 0 and singular = "wait" (defaults).
    Cost:
      once a design as in `rage`; a batch K d^2 + M d^2 + d^3. With variant = "soare" a draw takes
      (K + M)^2, and K M^2 at most for the score of each arm.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014.
      https://arxiv.org/abs/1409.6110
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.xy_static, delta=0.05)
      >>> runs = jb.simulate(jb.instances.transductive(4, angle=0.5), algorithm, replications=10)
      >>> int(runs.correct.sum())
      10
    """
    targets = arms if targets is None else targets
    if targets.shape[0] == 1:
        return only_answer(arms.shape[0])
    if variant == "soare":
        return _draw_by_draw(arms, targets, delta, noise_var, v0)
    num_targets = targets.shape[0]
    solve, every_arm = named(design, tol), jnp.arange(arms.shape[0])

    @once_for_equal
    def optimal_design() -> tuple[Array, Array]:
        found = solve.between(arms, targets, jnp.ones(num_targets, bool))
        return found.weights, found.converged

    def init(key: Key) -> geometric_batches.State:
        begun = geometric_batches.begin(arms, *optimal_design())
        return begun._replace(answer=sampling.index(key, num_targets))

    def ask(key: Key, state: geometric_batches.State) -> Move:
        counts = geometric_batches.batch(key, state, growth, powers, allocation)
        return Move(every_arm, counts, state.done, state.answer, state.report())

    def tell(state: geometric_batches.State, move: Move, total: Array) -> geometric_batches.State:
        assert move.count is not None  # `ask` gives counts
        totals = geometric_batches.added(state.totals, move.count, total)
        found = geometric_batches.estimate(arms, totals, singular)
        best = selection.best(targets @ found.theta).arm
        differences = selection.at(targets, best) - targets
        width = radius.static(
            delta, geometric_batches.power(totals.batches, powers), num_targets**2, 2.0
        )
        lengths = jnp.sqrt(noise_var * spd.quadratic(differences, found.inverse))
        sure = lengths * width < differences @ found.theta
        done = (sure | (jnp.arange(num_targets) == best)).all() & found.settled
        unspanned = 1 - found.settled.astype(int)
        return state._replace(totals=totals, done=done, answer=best, unspanned=unspanned)

    return Algorithm(init, ask, tell)


def _draw_by_draw(
    arms: Arms, targets: Targets, delta: Scalar, noise_var: Scalar, v0: Scalar
) -> Algorithm:
    """Draw each arm once, then the arm of the greedy choice."""
    num_arms, num_targets = arms.shape[0], targets.shape[0]
    points = jnp.concatenate([arms, targets])

    def ask(key: Key, state: greedy_xy.Draws) -> Move:
        found = greedy_xy.contest(state, num_arms)
        width = radius.soare(delta, jnp.maximum(state.draws, 1), num_targets**2)
        sure = jnp.sqrt(noise_var * found.sqdist) * width <= found.leads
        done = (state.draws >= num_arms) & (sure | ~found.others).all()
        return Move(greedy_xy.next_arm(state, num_arms), None, done=done, answer=found.best)

    return Algorithm(
        init=lambda key: greedy_xy.begin(points, num_arms, v0),
        ask=ask,
        tell=lambda state, move, total: greedy_xy.drawn(state, points, num_arms, move.arm, total),
    )
