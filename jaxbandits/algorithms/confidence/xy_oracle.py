"""XY-oracle: the optimal allocation for a known theta, a reference in experiments."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import theta_fits
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import geometric_batches
from ...kernels.confidence import radius
from ...kernels.design.oracle import oracle
from ...kernels.design.xy.by_name import DESIGNS, named
from ...kernels.estimate import least_squares
from ...kernels.linalg import spd
from ...kernels.shared_call import once_for_equal
from ...parameters import Positive, Probability, Variance, array, choice, constructor
from ...types import Arms, Key, Targets
from ..loops.single import only_answer


class State(NamedTuple):
    """What "soare" remembers; the state of "rage" is a `geometric_batches.State`."""

    stats: least_squares.Ledger
    counts: Int[Array, " K"]
    weights: Float[Array, " K"]  # the design


@constructor(
    spans=True,
    scale_free=lambda values: values["variant"] == "rage",
    requires=theta_fits,
)
def xy_oracle(
    arms: Arms,
    targets: Targets | None = None,
    *,
    theta: Annotated[Float[Array, " d"], array("d")],
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    variant: Annotated[str, choice("rage", "soare")] = "rage",
    growth: Positive = 1.1,
    powers: Annotated[str, choice(*geometric_batches.POWERS)] = "all",
    allocation: Annotated[str, choice(*geometric_batches.ALLOCATIONS)] = "iid",
    singular: Annotated[str, choice(*geometric_batches.SINGULAR)] = "wait",
    design: Annotated[str, choice(*DESIGNS)] = "interior_point",
    tol: Positive | None = None,
) -> Algorithm:
    """XY-oracle (Soare, Lazaric, Munos, 2014), which knows theta.

    The design w minimises the largest `||z* - z||^2 / gap_z^2` in A(w)^-1, where z* is the best.
    "rage" (Fiez et al., 2019): batches of `ceil(growth^t)` draws from w, t = 1, 2, ..; stop
    when for all z `||z* - z||_{A(n)^-1} sqrt(2 log(2 M t^2 / delta)) < (z* - z)^T theta_hat`.
    "soare" (Xu et al., 2018): from A = I, each arm is drawn once, then the arm
    `argmin_a (T_a + 1) / w_a`; stop when the true gaps of all arms are at least
    `2 sqrt(2) ||x* - x||_{A^-1} sqrt(log(6 n^2 K / (pi^2 delta)))`. Nothing in it is random.

    Args:
      arms, targets: `[K, d]` features that can be drawn, and `[M, d]` features to choose among, the
        arms by default. The arms must span. The units of a column change nothing but the A = I of
        "soare".
      theta: `[d]` the true parameter; a simulation supplies it, or the estimate of an instance that
        has estimated it, such as `boolean_network`.
      delta: error probability of the width, in (0, 1). The answer is always z*.
      noise_var: sub-Gaussian variance of a reward.
      variant: "rage" or "soare", the experiments from which it is taken.
      growth, powers, allocation, singular: of the batches of "rage", see `xy_static`.
      design: "interior_point", certified, or "frank_wolfe", that of the RAGE experiments.
      tol: relative accuracy of w, 1e-6 by default; Frank-Wolfe ends with a step of this size, 0.01
        by default.
    Returns:
      An `Algorithm` that asks for a batch or for one arm, and answers the index of z*. `info` of
      "rage" is that of `xy_static`.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      "rage": "all", "wait" and "interior_point" by default. The optimal design takes more draws
      than that of the published program, which ends early: at the optimum all comparisons are tight
      at once. "soare": the constant is for bounded noise; for sub-Gaussian noise half of it is
      enough.
    Setting:
      best arm, fixed confidence, transductive.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      the answer is always right, because theta is known; delta decides the number of draws only.
    Cost:
      once a design for K - 1 directions, then K d^2 + d^3 a batch.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014.
      https://arxiv.org/abs/1409.6110
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.xy_oracle, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> int(runs.correct.sum())
      10
    """
    targets = arms if targets is None else targets
    num_targets = targets.shape[0]
    if num_targets == 1:
        return only_answer(arms.shape[0])
    best = selection.best(targets @ theta).arm
    differences = selection.at(targets, best) - targets
    others = jnp.arange(num_targets) != best
    every_arm = jnp.arange(arms.shape[0])
    solve = named(design, 1e-6 if tol is None and design == "interior_point" else tol)

    @once_for_equal
    def optimal_design() -> tuple[Array, Array]:
        found = oracle(arms, targets, targets @ theta, solve)
        return found.weights, found.converged

    def lengths(inverse: Array) -> Array:
        return jnp.sqrt(noise_var * spd.quadratic(differences, inverse))

    def is_sure(inverse: Array, draws: Array) -> Array:
        sure = lengths(inverse) * radius.soare(delta, draws, num_targets) <= differences @ theta
        return (sure | ~others).all()

    if variant == "soare":
        return _draw_by_draw(arms, optimal_design, best, is_sure)

    def init(key: Key) -> geometric_batches.State:
        return geometric_batches.begin(arms, *optimal_design())

    def ask(key: Key, state: geometric_batches.State) -> Move:
        counts = geometric_batches.batch(key, state, growth, powers, allocation)
        return Move(every_arm, counts, state.done, best, state.report())

    def tell(state: geometric_batches.State, move: Move, total: Array) -> geometric_batches.State:
        assert move.count is not None  # `ask` gives counts
        totals = geometric_batches.added(state.totals, move.count, total)
        found = geometric_batches.estimate(arms, totals, singular)
        width = radius.static(
            delta, geometric_batches.power(totals.batches, powers), num_targets, 2.0
        )
        sure = lengths(found.inverse) * width < differences @ found.theta
        done = (sure | ~others).all() & found.settled
        return state._replace(totals=totals, done=done, unspanned=1 - found.settled.astype(int))

    return Algorithm(init, ask, tell)


def _draw_by_draw(
    arms: Arms,
    optimal_design: Callable[[], tuple[Array, Array]],
    best: Array,
    is_sure: Callable[[Array, Array], Array],
) -> Algorithm:
    """Draw each arm once, then the arm furthest behind the design, until `is_sure(V^-1, draws)`."""
    num_arms, _ = arms.shape

    def init(key: Key) -> State:
        stats = least_squares.ridge(arms, 1.0, arm_space=False)
        return State(stats, jnp.zeros(num_arms, int), optimal_design()[0])

    def ask(key: Key, state: State) -> Move:
        draws = state.counts.sum()
        first = draws < num_arms
        behind = selection.furthest_behind(state.counts + 1, state.weights)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), behind),
            count=None,
            done=~first & is_sure(state.stats.core, jnp.maximum(draws, 1)),
            answer=best,
        )

    def tell(state: State, move: Move, total: Array) -> State:
        stats = least_squares.observe(state.stats, arms, move.arm, total, arm_space=False)
        here = jnp.arange(num_arms) == move.arm
        return state._replace(stats=stats, counts=state.counts + here)

    return Algorithm(init, ask, tell)
