"""RAGE-GLM: transductive best-arm identification in logistic bandits."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...conditions import rounding_epsilon_in_range, theta_norm_given
from ...core import Algorithm, Move
from ...feature_tables import require
from ...kernels import sampling
from ...kernels.allocate.rounding_by_name import LARGEST, ROUNDINGS
from ...kernels.confidence import logistic, radius
from ...kernels.design import directions
from ...kernels.design.xy.by_name import DESIGNS, named
from ...kernels.linalg import pairwise, scaling
from ...kernels.shared_call import once_for_equal
from ...parameters import Nonnegative, Positive, Probability, Values, choice, constructor
from ...types import Arms, Key, Targets
from ..loops.single import only_answer


class State(NamedTuple):
    """What RAGE-GLM remembers between phases."""

    alive: Bool[Array, " M"]
    phase: Int[Array, ""]  # 0 is the burn-in
    floors: Float[Array, " K"]  # lower bounds of the variance of each arm's reward
    answer: Int[Array, ""]  # empirical best of the last phase, at first a target at random
    unsolved: Int[Array, ""]  # phases whose design or rounding missed its accuracy
    unfitted: Int[Array, ""]  # phases without a maximum likelihood estimate


def _consistent(values: Values) -> None:
    theta_norm_given(values)
    family = values["family"]
    require(family == "logistic", "family must be 'logistic'", family)
    rounding_epsilon_in_range(values, LARGEST)


@constructor(
    spans=True,
    conditioned=True,
    requires=_consistent,
    revisions=(
        "designs for more than 8,000 directions, as of 126 arms, are found by small problems: it "
        "takes a quarter of the time, and designs differ within their tolerance",
    ),
)
def rage_glm(
    arms: Arms,
    targets: Targets | None = None,
    *,
    delta: Probability = 0.05,
    family: str = "logistic",
    theta_norm: Nonnegative | None = None,
    design: Annotated[str, choice(*DESIGNS)] = "interior_point",
    rounding: Annotated[str, choice(*ROUNDINGS)] = "efficient",
    rounding_epsilon: Positive = 0.1,
    tol: Positive | None = None,
) -> Algorithm:
    """RAGE-GLM, after Jun, Jain, Mason and Nassif (2021), with a confidence width of its own.

    Rewards are Bernoulli with means `mu(x^T theta)`; f_x is a lower bound of `mu'(x^T theta)`, at
    first `mu'(||x|| theta_norm)`; `F(n) = sum of n_x f_x x x^T`. Phase t = 0 (burn-in), 1, ...
    makes the fewest draws n, by an optimal design, with `||x||_{F^-1} <= reach` for every arm
    and, from t = 1 on, `C ||z - z'||_{F^-1} <= 2^-t` for all targets alive. It drops z if
    some alive z' has `C ||z' - z||_{F^-1} < (z' - z)^T theta_hat`, where theta_hat is the maximum
    likelihood estimate from this phase alone. Then it raises f_x to the least `mu'(u)` with
    `|u - x^T theta_hat| <= C ||x||_{F^-1}`. C and reach are `radius.logistic` and
    `logistic_reach` at level `sqrt(2 log((2 K + M (M - 1) + 1) (pi^2 / 6) (t + 1)^2 / delta))`.
    The page "Thresholds and what delta promises" has the theorem and its proof.

    Args:
      arms: `[K, d]` features that can be measured; they must span. Their units matter for
        `theta_norm` alone.
      targets: `[M, d]` features to choose among, the arms by default.
      delta: error probability, in (0, 1).
      family: "logistic".
      theta_norm: a bound on the norm of theta. The burn-in grows like `exp(theta_norm ||x||)`.
      design, rounding, rounding_epsilon, tol: as in `rage`.
    Returns:
      An `Algorithm` that asks for an allocation each phase and answers the index of a target.
      `info`: `phases`, their number with the burn-in; `unsolved`, the number of those whose
      design or rounding missed its accuracy; `unfitted`, the number of those without a finite
      estimate, from which nothing is learnt (the probability of one is below delta).
    Raises:
      ValueError: a bad option, another family, an unknown `theta_norm`, arms that do not span.
    Deviations:
      The structure is the paper's: a G-optimal burn-in, then phases whose designs measure
      differences in the norm of `H^-1` and keep `||x||_{H^-1}` small for every arm. The constants
      are not: the paper has `3.5 sqrt(log)` if `||x||^2_{H^-1} <= 1 / (d + log)`; here C, reach and
      all sizes come from the theorem at `radius.logistic`. F bounds H from below, where the paper
      takes H at the last estimate and a factor; for the burn-in the bound is one for each arm. The
      burn-in drops targets too, and targets are dropped by widths, not by gaps above 2^-t. Of equal
      targets only the first takes part. The heuristic variant of the paper's experiments is left
      out.
    Setting:
      best arm, fixed confidence, logistic rewards.
    Assumptions:
      logistic, rewards 0 or 1. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta, by a theorem of this package; needs a bound on the norm
      of theta.
    Cost:
      a phase: a design. A Newton step of it takes K^3 + P K^2 at most for P differences of targets,
      or (K + P) d^4 where arms are many; with more than 8,000 differences, d^6 for about d^2
      of them at a time, and M^2 d at most to find these. And a fit, K d^2 + d^3 a Newton step.
    Reference:
      K.-S. Jun, L. Jain, B. Mason, H. Nassif, "Improved confidence bounds for the linear logistic
      model and applications to bandits", ICML 2021, RAGE-GLM. https://arxiv.org/abs/2011.11222
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.glm(jb.instances.soare(3, angle=0.5).arms, [1.0, 0.0, 0.0])
      >>> algorithm = partial(jb.rage_glm, delta=0.05)
      >>> int(jb.simulate(instance, algorithm, replications=10).correct.sum())
      10
    """
    num_arms, dim = arms.shape
    lengths = jnp.sqrt((arms**2).sum(1))
    # theta_norm is about the lengths as given; apart from them the units of columns change nothing.
    arms, targets = scaling.equilibrated(arms, arms if targets is None else targets)
    if targets.shape[0] == 1:
        return only_answer(num_arms, unsolved=0, unfitted=0, phases=0)
    solve, rule = named(design, tol), ROUNDINGS[rounding]
    num_bounds = 2 * num_arms + targets.shape[0] * (targets.shape[0] - 1) + 1
    rounded = once_for_equal(rule.counts)

    def level_of(phase: Array) -> Array:
        return radius.static(delta, phase + 1, num_bounds, jnp.pi**2 / 6.0)

    @once_for_equal
    def design_for(floors: Array, alive: Array, phase: Array) -> logistic.SizedDesign:
        return logistic.sized_design(
            solve.among,
            arms,
            floors,
            targets,
            alive,
            level=level_of(phase),
            accuracy=jnp.where(phase > 0, 0.5**phase, jnp.inf),
            loss=1.0 + rounding_epsilon,
        )

    def init(key: Key) -> State:
        assert theta_norm is not None  # `theta_norm_given` has checked it
        zero, centre = jnp.zeros((), int), jnp.zeros(dim, arms.dtype)
        floors = logistic.least_variances(arms, centre, lengths * theta_norm)
        return State(
            alive=directions.distinct(targets),
            phase=zero,
            floors=floors,
            answer=sampling.index(key, targets.shape[0]),
            unsolved=zero,
            unfitted=zero,
        )

    def ask(key: Key, state: State) -> Move:
        optimal = design_for(state.floors, state.alive, state.phase)
        done = state.alive.sum() <= 1
        least = rule.least((optimal.weights > 0).sum(), dim, rounding_epsilon)
        draws = jnp.ceil(jnp.maximum(optimal.draws, least)).astype(int)
        scaled = jnp.sqrt(state.floors)[:, None] * arms
        allocation = rounded(scaled, optimal.weights, jnp.where(done, 0, draws))
        solved = done | (optimal.converged & allocation.certified)
        return Move(
            arm=jnp.arange(num_arms),
            count=allocation.counts,
            done=done,
            answer=jnp.where(done, jnp.argmax(state.alive), state.answer),
            info={
                "unsolved": state.unsolved + ~solved,
                "unfitted": state.unfitted,
                "phases": state.phase,
            },
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        learnt = logistic.learn(arms, move.count, total, state.floors, level=level_of(state.phase))
        scores = targets @ learnt.theta
        best = jnp.argmax(jnp.where(state.alive, scores, -jnp.inf))
        lost = pairwise.beaten(targets, state.alive, scores, learnt.inverse, learnt.width)
        return State(
            alive=state.alive & ~lost,
            phase=state.phase + 1,
            floors=learnt.floors,
            answer=jnp.where(learnt.fitted, best, state.answer),
            unsolved=move.info["unsolved"],
            unfitted=move.info["unfitted"] + ~learnt.fitted,
        )

    return Algorithm(init, ask, tell)
