"""Regret in generalised linear models: first arms, then a fit each round and a rule that uses it.

Algorithms differ in their `RegretRules`. The cost of a round does not grow with the number of
rounds: a fit needs counts and sums alone, and starts from the one before it.

Rewards of the family "gaussian" can be in any unit. The loop divides them by their standard
deviation: sums, fits, ridges, widths and perturbations are then in units of it.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core import Algorithm, Move
from ...feature_tables import is_concrete, require
from ...kernels import selection
from ...kernels.confidence import glm_radius
from ...kernels.estimate import irls, least_squares
from ...kernels.linalg.spd import least_eigenvalue
from ...kernels.tracing import at_once
from ...parameters import Values, choice, count_or
from ...types import Arms, Key, Pytree, Scalar

EIGENVALUE_ERROR: float = 1e-9  # relative, of `least_eigenvalue`: it asks for no draw more
TOL: float = 1e-6  # Newton decrement of a fit
MOST_STEPS: int = 60  # of a fit to perturbed rewards, whose minimum can be far from the start
BEGIN: tuple[str, ...] = ("basis", "pivot", "every")
# Choices of a width or scale: the practical one of the papers, and the one that has a proof.
NAMED: tuple[str, ...] = ("informal", "theory")
Begin: TypeAlias = Annotated[str, choice(*BEGIN)]
Exploration: TypeAlias = Annotated[Scalar | str, count_or("theory")]
BINARY_VAR: float = 0.25  # the largest variance of a reward of 0 or 1
REVISIONS: tuple[str, ...] = (
    "family 'gaussian': rewards are taken in units of their standard deviation, where their "
    "variance was taken for 1 whatever noise_var was",
)
AnyFit: TypeAlias = irls.Fit | irls.Estimate


class State(NamedTuple):
    """What is remembered between rounds."""

    counts: Int[Array, " K"]
    sums: Float[Array, " K"]  # of rewards in their `reward_unit`, as the fit is
    fit: AnyFit  # to the rewards so far; its theta is the next warm start
    missed: irls.Missed
    order: Int[Array, " K"]  # priorities that break ties
    memory: Pytree  # of the rules


class Choice(NamedTuple):
    """The arm that a rule chooses, and by what."""

    arm: Int[Array, ""]
    fit: AnyFit | None = None  # the rule's own, besides that to the rewards so far
    theta: Float[Array, " d"] | None = None  # the random parameter for which the arm is best


class Certificate(NamedTuple):
    """Whether a fit met its tolerance, see `irls.Fit`."""

    status: Int[Array, ""]
    decrement: Float[Array, ""]


class RoundInfo(NamedTuple):
    """What a move carries for `tell`, and for a wrapper that observes the algorithm."""

    certificate: Certificate | None  # of the rule's own fit
    theta: Float[Array, " d"] | None  # that of the `Choice`


class RegretRules(NamedTuple):
    """What an algorithm does besides the first arms and the fits."""

    choose: Callable[[Key, State], Choice]
    answer: Callable[[State], Array]  # -> int []
    begin: Callable[[], Pytree] = lambda: ()  # memory before the first draw
    learn: Callable[[Pytree, Array], Pytree] = lambda memory, arm: memory  # memory after a draw
    factored: bool = False  # whether the fit must come with its Hessian's factor


# (predictors [K], widths [K], draws []) -> float [K], of which the largest is drawn
Index: TypeAlias = Callable[[Array, Array, Array], Array]


def theory_known(*names: str) -> Callable[[Values], None]:
    """A check that options have what they need where they name a constant of a theorem.

    That is a horizon, and slopes of the mean function of which the least is below the largest.
    """

    def known(values: Values) -> None:
        for name in names:
            free = not isinstance(values[name], str) or values[name] == "informal"
            message = f"horizon must be given for {name} {values[name]!r}, got None (unknown)"
            require(free or values["horizon"] is not None, message)
        if "lipschitz" in values:
            _check_slopes(values["family"], values["kappa"], values["lipschitz"])

    return known


def _check_slopes(family, kappa, lipschitz):
    given = [slope for slope in (kappa, lipschitz) if slope is not None]
    if not given or not all(map(is_concrete, given)):
        return
    with at_once():
        least, largest = map(float, glm_radius.slopes(family, kappa, lipschitz))
    require(least <= largest, f"kappa must be at most lipschitz, {largest:.3g}, got {least:.3g}")


def variance_of(family: str, noise_var: Scalar | None) -> Scalar:
    """The sub-Gaussian variance of a reward: the one given, or 1 for "gaussian", else 1/4."""
    usual = 1.0 if family == "gaussian" else BINARY_VAR
    return usual if noise_var is None else noise_var


def reward_unit(family: str, noise_var: Scalar | None) -> Scalar | None:
    """The standard deviation of normal rewards; None for a family whose rewards have no unit."""
    return jnp.sqrt(variance_of(family, noise_var)) if family == "gaussian" else None


def variance_in_unit(family: str, noise_var: Scalar | None) -> Scalar:
    """The sub-Gaussian variance of a reward in its `reward_unit`."""
    return 1.0 if family == "gaussian" else variance_of(family, noise_var)


class Theory(NamedTuple):
    """What the formulas of `glm_radius` need; a check asked for a horizon where one is used."""

    horizon: Scalar | None
    dim: int
    family: str
    noise_var: Scalar | None
    kappa: Scalar | None
    lipschitz: Scalar | None

    def of(self, formula: Callable[..., Scalar]) -> Scalar:
        """A formula, for rewards in their `reward_unit`."""
        assert self.horizon is not None
        slopes = glm_radius.slopes(self.family, self.kappa, self.lipschitz)
        variance = variance_in_unit(self.family, self.noise_var)
        return formula(self.horizon, self.dim, variance, *slopes)

    def scale(self, a: Scalar | str, informal: float, formula: Callable[..., Scalar]) -> Scalar:
        """The scale of a perturbation that is given, or one of `NAMED`."""
        if not isinstance(a, str):
            return a
        return self.of(formula) if a == "theory" else informal

    def rounds(
        self, rounds: Scalar | str | None, arms: Arms, begin: str, formula: Callable[..., Scalar]
    ) -> Scalar | None:
        """Rounds of exploration: a number, or until the eigenvalue of the formula is reached."""
        return _rounds_until(self.of(formula), arms, begin) if isinstance(rounds, str) else rounds


def most_likely(arms: Arms) -> Callable[[State], Array]:
    """The arm of the largest estimate, as an `answer`."""
    return lambda state: selection.argmax(selection.fine(arms @ state.fit.theta), state.order)


def refitted(
    arms: Arms,
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    near: AnyFit,
    *,
    family: str,
    ridge: Scalar,
) -> irls.Estimate:
    """A fit to other counts and sums, by steps that start from a fit `near` it."""
    return irls.estimate(
        arms,
        counts,
        sums,
        family=family,
        ridge=ridge,
        init=near.theta,
        inverse=near.inverse,
        tol=TOL,
        max_iterations=MOST_STEPS,
    )


def first_arms(arms: Arms, begin: str) -> tuple[Int[Array, " F"], Int[Array, ""]]:
    """The arms that are drawn once at first, and how many of these entries count."""
    num_arms = arms.shape[0]
    if begin == "every":
        return jnp.arange(num_arms), jnp.full((), num_arms)
    sequence = (selection.first_basis if begin == "basis" else selection.pivoted_basis)(arms)
    # A basis of a smaller space ends in repetitions of its last arm.
    return sequence, 1 + (sequence[1:] != sequence[:-1]).sum()


def _rounds_until(eigenvalue, arms, begin):
    """Rounds that draw each first arm as often until `sum of x x^T` has this least eigenvalue."""
    sequence, number = first_arms(arms, begin)
    chosen = jnp.where((jnp.arange(sequence.size) < number)[:, None], arms[sequence], 0.0)
    once = least_eigenvalue(chosen.T @ chosen)
    draws = jnp.ceil(eigenvalue / once * (1.0 - EIGENVALUE_ERROR))
    # The integers of JAX have 32 bits outside of `enable_x64`; the half of a largest one is exact.
    most = np.iinfo(jnp.result_type(int)).max // 2
    return jnp.minimum(number * draws, most).astype(int)


def glm_regret(
    arms: Arms,
    rules: RegretRules,
    *,
    family: str,
    ridge: Scalar,
    noise_var: Scalar | None = None,
    begin: str = "basis",
    exploration: Scalar | None = None,
) -> Algorithm:
    """The loop, never done; `info` counts the fits that missed their tolerance, see `irls.Missed`.

    Args:
      arms: `[K, d]` features.
      rules: what is drawn and answered.
      family: of the rewards, see `links.FAMILIES`.
      ridge: weight of `||theta||^2 / 2` in the fits.
      noise_var: variance of a reward, for the family "gaussian".
      begin: the arms drawn at first: "basis", the first linearly independent arms; "pivot",
        independent arms each of which is farthest from the span of those before it; "every" arm.
      exploration: rounds in which they are drawn in turn, each once at least; None: each once.
    """
    num_arms, dim = arms.shape
    sequence, number = first_arms(arms, begin)
    num_first = number if exploration is None else jnp.maximum(number, exploration)
    unit = reward_unit(family, noise_var)
    per_unit = None if unit is None else 1.0 / unit
    without_data = irls.without_data if rules.factored else irls.estimate_without_data
    solve = irls.fit if rules.factored else irls.estimate

    def init(key: Key) -> State:
        counts, sums = jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype)
        fit, missed = without_data(dim, ridge, arms.dtype), irls.none_missed(arms.dtype)
        return State(counts, sums, fit, missed, selection.tie_order(key, num_arms), rules.begin())

    def ask(key: Key, state: State) -> Move:
        draws = state.counts.sum()
        chosen = rules.choose(key, state)
        # In floating point, because XLA divides whole numbers one by one.
        turn = jnp.floor(draws.astype(arms.dtype) / number).astype(int)
        first = selection.at(sequence, jnp.clip(draws - turn * number, 0, sequence.size - 1))
        return Move(
            arm=jnp.where(draws < num_first, first, chosen.arm),
            count=None,
            done=jnp.array(False),
            answer=rules.answer(state),
            info=(state.missed.report(), RoundInfo(_certificate(chosen.fit), chosen.theta)),
        )

    def tell(state: State, move: Move, total: Float[Array, ""]) -> State:
        here, is_first = jnp.arange(num_arms) == move.arm, state.counts.sum() < num_first
        total = total if per_unit is None else total * per_unit
        counts, sums = state.counts + here, state.sums + jnp.where(here, total, 0.0)
        # While the first arms are drawn, all fits start from 0. With a warm start the estimate of
        # an arm would be the larger the earlier it was drawn, and equal rewards would not tie.
        warm = state.fit.converged & ~is_first
        near = state.fit._replace(theta=jnp.where(warm, state.fit.theta, 0.0), converged=warm)
        inverse, slope = irls.after_draw(near, family, selection.at(arms, move.arm), total)
        fit = solve(
            arms,
            counts.astype(arms.dtype),
            sums,
            family=family,
            ridge=ridge,
            init=near.theta,
            inverse=inverse,
            slope=slope,
            # No estimate is used before the first arms are drawn: one step is enough.
            tol=jnp.where(counts.sum() < num_first, jnp.inf, TOL),
        )
        missed = state.missed.and_of(fit.status, fit.decrement)
        certificate = move.info[1].certificate
        if certificate is not None:
            missed = missed.and_of(*certificate, unless=is_first)
        memory = rules.learn(state.memory, move.arm)
        return State(counts, sums, fit, missed, state.order, memory)

    return Algorithm(init, ask, tell)


def _certificate(fit: AnyFit | None) -> Certificate | None:
    return None if fit is None else Certificate(fit.status, fit.decrement)


def optimistic(arms: Arms, ridge: Scalar, index: Index) -> RegretRules:
    """Draw the arm of the largest `index(predictors, widths, draws)`, answer the one drawn most.

    `widths` are `||x||` in the inverse of `ridge I + sum of x x^T`.
    """
    arm_space = least_squares.prefers_arm_space(arms)

    def begin() -> least_squares.Ledger:
        return least_squares.ridge(arms, ridge, arm_space=arm_space)

    def learn(stats, arm):
        return least_squares.observe(stats, arms, arm, 0.0, arm_space=arm_space)

    def choose(key, state):
        widths = jnp.sqrt(jnp.maximum(state.memory.variances, 0.0))
        values = index(arms @ state.fit.theta, widths, state.counts.sum())
        return Choice(selection.argmax(selection.fine(values), state.order))

    def answer(state):
        predictors = selection.fine(arms @ state.fit.theta)
        return selection.most_drawn(state.counts, predictors, state.order)

    return RegretRules(choose, answer, begin, learn)
