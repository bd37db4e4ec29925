"""RAGE: transductive best-arm identification in linear bandits."""

from functools import partial
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...conditions import rounding_epsilon_in_range
from ...core import Algorithm, Move
from ...kernels import sampling
from ...kernels.allocate.rounding_by_name import LARGEST, ROUNDINGS
from ...kernels.confidence import radius
from ...kernels.design import directions
from ...kernels.design.d_optimal import Design
from ...kernels.design.xy.by_name import DESIGNS, cut
from ...kernels.estimate import of_differences
from ...kernels.linalg import pairwise
from ...kernels.shared_call import once_for_equal
from ...parameters import Nonnegative, Positive, Probability, Variance, choice, constructor
from ...types import Arms, Key, Targets
from ..loops.single import only_answer

MOST: float = 2.0**62  # draws of a phase; `max_pulls` is no more, so such a run is cut short


class State(NamedTuple):
    """What RAGE remembers between phases."""

    alive: Bool[Array, " M"]
    phase: Int[Array, ""]  # from 1
    answer: Int[Array, ""]  # empirical best of the last phase, at first a target at random
    unsolved: Int[Array, ""]  # phases whose design or rounding missed its accuracy
    doubt: Float[Array, ""]  # how much better than the answer another target may be


@constructor(
    spans=True,
    scale_free=True,
    requires=partial(rounding_epsilon_in_range, largest=LARGEST),
    revisions=(
        "noise_var other than 1: phases are for gaps in units of the standard deviation of a "
        "reward, where they were for gaps of at most 2 in the unit of the rewards",
        "small weights of a design are cut, as in the paper: a phase has fewer draws where its "
        "least number decides, which counted all arms; after a phase that was cut short and whose "
        "arms do not span, the answer stays or is the best by what its arms tell",
    ),
)
def rage(
    arms: Arms,
    targets: Targets | None = None,
    *,
    delta: Probability = 0.05,
    epsilon: Nonnegative = 0.0,
    noise_var: Variance = 1.0,
    design: Annotated[str, choice(*DESIGNS)] = "interior_point",
    rounding: Annotated[str, choice(*ROUNDINGS)] = "efficient",
    rounding_epsilon: Positive = 0.1,
    log_factor: Positive = 2.0,
    tol: Positive | None = None,
) -> Algorithm:
    """RAGE (Fiez, Jain, Jamieson, Ratliff, 2019).

    Phase t takes the design w that minimises `rho = max of ||z - z'||^2_{A(w)^-1}` over pairs of
    targets alive, cuts its smallest weights, and makes
    `N_t = max(ceil(2 4^t rho (1 + eps) log(c M^2 t^2 / delta)), r(eps))` draws by it. It drops z if
    some z' alive has
    `||z' - z||_{A(n)^-1} sigma sqrt(2 log(c M^2 t^2 / delta)) < (z' - z)^T theta_hat`, with
    theta_hat from this phase alone. The arms of a design need not span: differences of targets
    alive lie in their span, and nothing else is used.

    With `epsilon` above 0 it also ends once no target alive can be better by more than epsilon than
    the empirical best z, by these intervals:
    `(z' - z)^T theta_hat + ||z' - z||_{A(n)^-1} sigma sqrt(2 log(c M^2 t^2 / delta)) <= epsilon`
    for every z' alive. That is so after the first phase t with `2^-t sigma <= epsilon` or before.

    Args:
      arms: `[K, d]` features that can be measured; they must span. The units of a column change
        nothing.
      targets: `[M, d]` features to choose among, the arms by default.
      delta: error probability, in (0, 1).
      epsilon: an answer within epsilon of the best is good enough; in units of a reward. 0, the
        default, asks for the best.
      noise_var: sub-Gaussian variance of a reward, sigma^2.
      design: "interior_point", certified, or "frank_wolfe", the paper's own.
      rounding: "efficient" with `r = 2 p / min(eps, 1)` for p supported arms, or "regret"
        (Allen-Zhu et al., 2017) with `r = 36 d / eps^2`.
      rounding_epsilon: eps, the relative loss that rounding may cause; at most 1/3 for "regret".
      log_factor: c. The paper prints 1, which guarantees only level 1.6 delta; its program and
        the default here use 2.
      tol: relative accuracy to which every design is certified, 1e-3 by default; Frank-Wolfe ends
        with a step of this size, 0.01 by default.
    Returns:
      An `Algorithm` that asks for an allocation each phase and answers the index of a target.
      `info`: `phases`, their number, and `unsolved`, the number of those whose design or rounding
      missed its accuracy.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      `log_factor` 2. The paper has sigma = 1: here phase t is for gaps of 2^-t sigma, so that the
      unit of rewards changes no draw. Designs come from an interior-point method with a certificate
      unless asked otherwise, and rho is that of the design used, where the paper's program takes
      one from the step before. The paper sets weights below 1e-5 to 0; here this is done where the
      arms that are left measure all differences of targets alive, and rho stays within its
      tolerance. Weights of an interior-point design are first cut at `tol / 10`, because arms that
      no optimum needs keep about `tol / K`. `r` is 36 instead of 180 d / eps^2, as arms may repeat.
      Of equal targets only the first takes part, since no number of draws can tell them apart.
      Norms are squared throughout, where the paper's box drops the square. For an early exit with
      an epsilon-good target the paper gives no rule.
    Setting:
      best arm, fixed confidence, transductive.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong, or with epsilon more than epsilon below the best, with probability at most delta; draws
      at most `jaxbandits.theory.rage_pull_bound` with probability 1 - delta.
    Cost:
      a phase: a design. A Newton step of it takes K^3 + P K^2 at most for P differences of targets,
      or (K + P) d^4 where arms are many; with more than some 10,000 differences, d^6 for about d^2
      of them at a time, and M^2 d at most to find these.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, Algorithm 1. https://arxiv.org/abs/1906.08399
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.rage, delta=0.05)
      >>> runs = jb.simulate(jb.instances.transductive(4, angle=0.5), algorithm, replications=10)
      >>> int(runs.correct.sum())
      10
    """
    num_arms, dim = arms.shape
    targets = arms if targets is None else targets
    num_targets = targets.shape[0]
    if num_targets == 1:
        return only_answer(num_arms, unsolved=0, phases=0)
    solve, rule = cut(design, tol), ROUNDINGS[rounding]
    rounded = once_for_equal(partial(rule.counts, arms))

    @once_for_equal
    def design_for(alive: Array) -> Design:
        return solve(arms, targets, alive)

    @once_for_equal
    def told_by(counts: Array, alive: Array) -> tuple[Array, Array]:
        return of_differences.inverse(arms, counts, targets, alive)

    def init(key: Key) -> State:
        zero = jnp.zeros((), int)
        answer = sampling.index(key, num_targets)
        doubt = jnp.full((), jnp.inf, arms.dtype)
        return State(directions.distinct(targets), zero + 1, answer, zero, doubt)

    def ask(key: Key, state: State) -> Move:
        alive, phase = state.alive, state.phase
        alone = alive.sum() <= 1
        done = alone | ((epsilon > 0) & (state.doubt <= epsilon))
        optimal = design_for(alive & ~done)
        log_term = jnp.log(log_factor * num_targets**2 * phase**2 / delta)
        wanted = 2.0 * 4.0**phase * optimal.value * (1.0 + rounding_epsilon) * log_term
        least = rule.least((optimal.weights > 0).sum(), dim, rounding_epsilon)
        draws = jnp.minimum(jnp.ceil(jnp.maximum(wanted, least)), MOST).astype(int)
        allocation = rounded(optimal.weights, jnp.where(done, 0, draws))
        solved = done | (optimal.converged & allocation.certified)
        return Move(
            arm=jnp.arange(num_arms),
            count=allocation.counts,
            done=done,
            answer=jnp.where(alone, jnp.argmax(alive), state.answer),
            info={"unsolved": state.unsolved + ~solved, "phases": phase - 1},
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        inverse, known = told_by(move.count, state.alive)
        scores = targets @ (inverse @ (arms.T @ total))
        width = radius.static(delta, state.phase, num_targets**2, log_factor)
        width = jnp.sqrt(noise_var) * width
        alive = state.alive & ~pairwise.beaten(targets, state.alive, scores, inverse, width)
        best = jnp.argmax(jnp.where(state.alive, scores, -jnp.inf))
        apart = targets - targets[best]
        sqdist = jnp.maximum(0.0, ((apart @ inverse) * apart).sum(1))
        ahead = jnp.where(alive, scores - scores[best] + width * jnp.sqrt(sqdist), -jnp.inf)
        return State(
            alive=alive,
            phase=state.phase + 1,
            answer=jnp.where(known, best, state.answer),
            unsolved=move.info["unsolved"],
            doubt=jnp.where(known, ahead.max(), jnp.inf),
        )

    return Algorithm(init, ask, tell)
