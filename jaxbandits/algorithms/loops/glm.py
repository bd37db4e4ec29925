"""Regret in generalised linear models: first arms, then a fit each round and a rule that uses it.

What one algorithm does otherwise than another is its `Rules`. The cost of a round does not grow
with the rounds: a fit needs counts and sums alone, and begins where the last one ended.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from ...core import Algorithm, Move
from ...feature_tables import is_concrete, require
from ...kernels import selection
from ...kernels.confidence import glm_radius
from ...kernels.estimate import irls, least_squares
from ...parameters import choice

TOL = 1e-6  # Newton decrement of a fit
MOST_STEPS = 60  # of a fit to perturbed rewards, which can put the minimum far from where it begins
BEGIN = ("basis", "pivot", "every")
NAMED = ("informal", "theory")  # choices of a width or scale: the papers' practical one, the proved
Begin: TypeAlias = Annotated[str, choice(*BEGIN)]


class Learnt(NamedTuple):
    """What is remembered."""

    counts: Array  # int [K]
    sums: Array  # float [K]
    fit: irls.Fit | irls.Estimate  # to the rewards so far; its theta is the next warm start
    missed: irls.Missed
    order: Array  # int [K] priorities that break ties
    memory: Any  # of the rules


class Choice(NamedTuple):
    """An arm, and the fit that a rule needed besides that to the rewards, or None."""

    arm: Array  # int []
    fit: irls.Fit | irls.Estimate | None = None
    theta: Array | None = None  # float [d] the random parameter whose best arm it is


class Told(NamedTuple):
    """What a move says to `tell`, and to who looks on."""

    certificate: tuple | None  # (status, decrement) of the rule's own fit
    theta: Array | None  # that of the `Choice`


class Rules(NamedTuple):
    """What an algorithm does besides the first arms and the fits."""

    choose: Callable  # (key, learnt) -> Choice
    answer: Callable  # (learnt) -> int []
    begin: Callable = lambda: ()  # memory before the first draw
    learn: Callable = lambda memory, arm: memory  # memory after a draw
    factored: bool = False  # whether the fit has to come with its Hessian's factor


def theory_known(name):
    """A check that the option `name` has what it takes where it is a word other than "informal".

    That is a horizon, and slopes of the mean function of which the least is below the largest.
    """

    def known(values):
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
    with jax.ensure_compile_time_eval():
        least, largest = map(float, glm_radius.slopes(family, kappa, lipschitz))
    require(least <= largest, f"kappa must be at most lipschitz, {largest:.3g}, got {least:.3g}")


def most_likely(arms):
    """The arm of the largest estimate, as an `answer`."""
    return lambda learnt: selection.argmax(selection.fine(arms @ learnt.fit.theta), learnt.order)


def refitted(arms, counts, sums, near: irls.Fit | irls.Estimate, *, family, ridge) -> irls.Estimate:
    """A fit to other counts and sums, by steps that begin at one `near` it."""
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


def first_arms(arms, begin):
    """What is drawn once at first, int [.], and how many of those entries count, int []."""
    num_arms = arms.shape[0]
    if begin == "every":
        return jnp.arange(num_arms), jnp.full((), num_arms)
    sequence = (selection.first_basis if begin == "basis" else selection.pivoted_basis)(arms)
    # A basis of a smaller space ends in repetitions of its last arm.
    return sequence, 1 + (sequence[1:] != sequence[:-1]).sum()


def glm_regret(arms, rules: Rules, *, family, ridge, begin="basis") -> Algorithm:
    """The loop, never done; `info` counts the fits that missed their tolerance, see `irls.Missed`.

    Args:
      begin: what is drawn once at first: "basis", the first linearly independent arms; "pivot",
        independent arms each of which is farthest from the span of those before it; "every" arm.
    """
    num_arms, dim = arms.shape
    sequence, first = first_arms(arms, begin)
    nothing = irls.without_data if rules.factored else irls.estimate_without_data
    solve = irls.fit if rules.factored else irls.estimate

    def init(key):
        counts, sums = jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype)
        fit, missed = nothing(dim, ridge, arms.dtype), irls.none_missed(arms.dtype)
        return Learnt(counts, sums, fit, missed, selection.tie_order(key, num_arms), rules.begin())

    def ask(key, learnt):
        draws = learnt.counts.sum()
        chosen = rules.choose(key, learnt)
        begun = selection.at(sequence, jnp.minimum(draws, sequence.size - 1))
        return Move(
            arm=jnp.where(draws < first, begun, chosen.arm),
            count=None,
            done=jnp.array(False),
            answer=rules.answer(learnt),
            info=(learnt.missed.report(), Told(_certificate(chosen.fit), chosen.theta)),
        )

    def tell(learnt, move, total):
        here, begun = jnp.arange(num_arms) == move.arm, learnt.counts.sum() < first
        counts, sums = learnt.counts + here, learnt.sums + jnp.where(here, total, 0.0)
        # While arms are drawn for the first time all fits begin at 0: that of an arm would go
        # further the earlier it is drawn, and equal rewards would not tie.
        known = learnt.fit.converged & ~begun
        near = learnt.fit._replace(theta=jnp.where(known, learnt.fit.theta, 0.0), converged=known)
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
            # Nobody asks for an estimate before the first arms are drawn: one step will do.
            tol=jnp.where(counts.sum() < first, jnp.inf, TOL),
        )
        missed = learnt.missed.and_of(fit.status, fit.decrement)
        certificate = move.info[1].certificate
        if certificate is not None:
            missed = missed.and_of(*certificate, unless=begun)
        memory = rules.learn(learnt.memory, move.arm)
        return Learnt(counts, sums, fit, missed, learnt.order, memory)

    return Algorithm(init, ask, tell)


def _certificate(fit):
    return None if fit is None else (fit.status, fit.decrement)


def optimistic(arms, ridge, index) -> Rules:
    """Draw the arm of the largest `index(predictors, widths, draws)`, answer that drawn most.

    `widths` are `||x||` in the inverse of `ridge I + sum of x x^T`.
    """
    form = {"arm_space": least_squares.prefers_arm_space(arms)}

    def choose(key, learnt):
        widths = jnp.sqrt(jnp.maximum(learnt.memory.variances, 0.0))
        values = index(arms @ learnt.fit.theta, widths, learnt.counts.sum())
        return Choice(selection.argmax(selection.fine(values), learnt.order))

    def learn(stats, arm):
        return least_squares.observe(stats, arms, arm, 0.0, **form)

    def answer(learnt):
        return selection.most_drawn(
            learnt.counts, selection.fine(arms @ learnt.fit.theta), learnt.order
        )

    return Rules(choose, answer, lambda: least_squares.ridge(arms, ridge, **form), learn)
