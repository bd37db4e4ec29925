"""XY-adaptive: best-arm identification in linear bandits by phases of greedy XY designs."""

import math
import warnings
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...core import Algorithm, Move
from ...feature_tables import is_concrete
from ...kernels import sampling, selection
from ...kernels.confidence import radius
from ...kernels.design import directions, greedy
from ...kernels.estimate import least_squares
from ...kernels.shared_call import once_for_equal
from ...parameters import (
    Count,
    Flag,
    Nonnegative,
    Probability,
    Values,
    Variance,
    choice,
    constructor,
)
from ...types import Arms, Key
from ..loops.single import only_answer

BEGINS: dict[str, str] = {"rage": "ridge", "soare": "every"}  # `begin` by variant


class State(NamedTuple):
    """What XY-adaptive remembers between phases."""

    alive: Bool[Array, " K"]
    phase: Int[Array, ""]  # from 1
    widest: Float[Array, ""]  # rho' of the last phase
    drawn: Int[Array, ""]  # n', the draws counted in it
    answer: Int[Array, ""]  # empirical best of the last phase, at first an arm at random
    capped: Int[Array, ""]  # phases that `max_draws` ended


def _begins_with_ridge(values: Values) -> bool:
    return (values["begin"] or BEGINS[values["variant"]]) == "ridge"


def _warn_of_bias(values: Values) -> None:
    """Warn where the bias of the ridge may be more than twice the width of the first phase."""
    numbers = [values[name] for name in ("theta_norm", "noise_var", "delta")]
    num_arms = values["arms"].shape[0]
    known = values["theta_norm"] is not None and all(map(is_concrete, numbers))
    if not (known and _begins_with_ridge(values) and num_arms > 1):
        return
    norm, noise_var, delta = map(float, numbers)
    # The width of `tell` for t = 1, or n = 1, without a kernel that would have to be compiled.
    if values["variant"] == "rage":
        radius_of_one = math.sqrt(2.0 * math.log(math.pi**2 * num_arms**2 / (3.0 * delta)))
    else:
        radius_of_one = 2.0 * math.sqrt(2.0 * math.log(6.0 * num_arms**2 / (math.pi**2 * delta)))
    width = math.sqrt(noise_var) * radius_of_one
    if norm > 2.0 * width:
        warnings.warn(
            "xy_adaptive: most answers may be wrong, because the bias of the ridge may be as large "
            f"as theta_norm = {norm:.3g}, and the width, which ignores it, is sigma C = "
            f"{width:.3g} in the first phase, in the same units; begin='basis' has no such bias",
            RuntimeWarning,
            stacklevel=2,
        )


@constructor(
    spans=True, scale_free=lambda values: not _begins_with_ridge(values), requires=_warn_of_bias
)
def xy_adaptive(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    alpha: Probability = 0.1,
    variant: Annotated[str, choice("rage", "soare")] = "rage",
    begin: Annotated[str, choice("ridge", "basis", "every")] | None = None,
    retest: Flag | None = None,
    max_draws: Count = 10**9,
) -> Algorithm:
    """XY-adaptive (Soare, Lazaric, Munos, 2014).

    Phase t draws greedily: each time the arm that makes `rho = max ||y||^2_{A^-1}` smallest, over
    the differences y of arms alive, until `rho / n < alpha rho' / n'` ("rage") or
    `rho <= alpha rho'` ("soare"). Here n counts the draws of the phase; rho' and n' are those of
    the phase before. Then theta_hat comes from this phase alone, and x is dropped if some x' has
    `(x' - x)^T theta_hat > sigma ||x' - x||_{A^-1} C`, where C is
    `sqrt(2 log(pi^2 K^2 t^2 / (3 delta)))` or `2 sqrt(2 log(6 K^2 n^2 / (pi^2 delta)))`.

    Args:
      arms: `[K, d]` features; they must span. The units of a column change nothing but the A = I of
        "ridge": there the features must not be small, because the norm of theta, and with it the
        bias, is then large.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance sigma^2 of a reward.
      theta_norm: a bound on the norm of theta, or None, unknown. It changes no result: with "ridge"
        a `RuntimeWarning` says where it is above 2 sigma C, C of the first phase.
      alpha: how small the measure rho / n, or rho, has to become in a phase, relative to that of
        the phase before.
      variant: "rage", as in the experiments of Fiez et al. (2019), where a phase is about
        1 / sqrt(alpha) times as long as the one before; "soare", as in those of Xu et al. (2018).
      begin: what a phase begins with. "ridge" (of "rage"): A = I, which stands for d draws that
        are in n but not made. The estimate is biased, and the width ignores it: what is proved is
        that the width with `sigma C + ||theta||` instead of `sigma C` holds.
        "basis": one draw of each of the d first independent arms. "every" (of "soare"): one draw
        of each arm.
      retest: whether arms that were dropped are tested again and may come back, as in "soare".
      max_draws: the most draws of a phase, which then ends whatever its measure. A whole phase is
        computed, in about a microsecond per draw for six arms, before `max_pulls` can end a run.
    Returns:
      An `Algorithm` that asks for an allocation each phase and answers the index of an arm.
      `info`: `phases`, their number, and `capped`, the number of those that `max_draws` ended.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      Arms that tie (relative difference of scores below 1e-12) are drawn in a random order that is
      new for each draw, but the same in all phases and replications, so that equal histories share
      one computation. With a fixed order one arm might be drawn for ever. Only draws that are made
      are counted: with "ridge", published figures are d higher for each phase. Of equal arms only
      the first takes part, since no number of draws can tell them apart. Soare et al. drop arms
      for good.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      none for the default, "rage", whose estimate has a ridge that the width ignores; wrong with
      probability at most delta with begin = "basis".
    Cost:
      each draw of a phase is computed: K^2, and for the score of each arm K^3 at most.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014,
      Section 5. https://arxiv.org/abs/1409.6110
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.xy_adaptive, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> int(runs.correct.sum())
      10
    """
    num_arms, dim = arms.shape
    if num_arms == 1:
        return only_answer(num_arms, phases=0, capped=0)
    rage = variant == "rage"
    begin = BEGINS[variant] if begin is None else begin
    retest = (not rage) if retest is None else retest
    v0, unmade = (1.0, dim) if begin == "ridge" else (0.0, 0)
    every_arm = jnp.arange(num_arms)

    def first_counts() -> Array:
        if begin == "basis":
            return (selection.first_basis(arms)[:, None] == every_arm).any(0).astype(int)
        return jnp.full(num_arms, int(begin == "every"))

    @once_for_equal
    def counts_for(alive: Array, goal: Array) -> Array:
        def limit(draws: Array) -> Array:
            return goal * (draws + unmade) if rage else goal

        return greedy.min_max(arms, alive, first_counts(), limit, v0=v0, most=max_draws)

    def init(key: Key) -> State:
        zero = jnp.zeros((), int)
        return State(
            alive=directions.distinct(arms),
            phase=zero + 1,
            widest=jnp.ones((), arms.dtype),
            drawn=zero + dim * (dim + 1) + 1,
            answer=sampling.index(key, num_arms),
            capped=zero,
        )

    def ask(key: Key, state: State) -> Move:
        goal = alpha * state.widest / (state.drawn if rage else 1)
        return Move(
            arm=every_arm,
            count=counts_for(state.alive, goal),
            done=state.alive.sum() <= 1,
            answer=state.answer,
            info={"phases": state.phase - 1, "capped": state.capped},
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        draws, alive = move.count.sum(), state.alive
        inverse, theta, _ = least_squares.batch(arms, move.count, total, v0)
        scores, sqdist = arms @ theta, directions.sqdist(arms, inverse)
        if rage:
            width = radius.static(delta, state.phase, num_arms**2, jnp.pi**2 / 3.0)
        else:
            width = radius.soare(delta, 1.0 * draws, num_arms**2)
        # beaten[x, x']: x' is better than x, with confidence
        beaten = jnp.sqrt(noise_var * sqdist) * width < scores[None, :] - scores[:, None]
        tested = directions.distinct(arms) if retest else alive
        left = tested & ~(beaten & tested[None, :]).any(1)
        left = jnp.where(move.done, alive, left)  # a run that has ended stays cheap in a batch
        return State(
            alive=left,
            phase=state.phase + 1,
            widest=jnp.where(alive[:, None] & alive[None, :], sqdist, 0.0).max(),
            drawn=draws + unmade,
            answer=jnp.argmax(jnp.where(left, scores, -jnp.inf)),
            capped=state.capped + (draws >= max_draws),
        )

    return Algorithm(init, ask, tell)
