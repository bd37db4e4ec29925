"""ALBA: best-arm identification in linear bandits, by elimination with random draws."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...conditions import theta_norm_given
from ...core import Algorithm, Move
from ...kernels import sampling, selection
from ...kernels.confidence import radius
from ...kernels.design import d_optimal as designs
from ...kernels.design import frank_wolfe
from ...kernels.estimate import least_squares
from ...kernels.linalg import scaling, subspace
from ...kernels.shared_call import once_for_equal
from ...parameters import Nonnegative, Positive, Probability, Variance, choice, constructor
from ...types import Arms, Key


class BatchDesign(NamedTuple):
    """The design from which the arms of a batch are drawn."""

    weights: Float[Array, " K"]
    inverse: Float[Array, "d d"]  # of A(weights), generalised, on the span of the arms alive
    solved: Bool[Array, ""]  # whether the design met its tolerance


class State(NamedTuple):
    """What ALBA remembers between batches."""

    alive: Bool[Array, " K"]
    batch: Int[Array, ""]  # its number, from 1 in every stage
    size: Int[Array, ""]  # arms alive when the stage began
    phases: Int[Array, ""]  # batches of all stages so far
    answer: Int[Array, ""]  # empirical best of the last batch, at first an arm at random
    unsolved: Int[Array, ""]  # batches whose design missed its tolerance, or that were cut


@constructor(conditioned=True, requires=theta_norm_given)
def alba(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    design: Annotated[str, choice("d_opt", "frank_wolfe")] = "d_opt",
    tol: Positive = 1e-3,
) -> Algorithm:
    """ALBA with Y-ElimTil (Tao, Blanco, Zhou, 2018).

    Stage r = 0, 1, ... begins with m arms and ends with at most `floor(d / 2^r)`. In its batch
    s = 1, 2, ... there are `N = ceil(l log(5 m^2 / (2 delta_s)))` independent draws from the
    G-optimal design w of the arms in the span of those alive. The estimate is
    `theta_hat = A(w)^- X^T rewards / N`, and b is the best arm alive by it. An arm x is dropped if
    `(x_b - x)^T theta_hat` exceeds the lesser of the widths `radius.alba_worst_case` and
    `radius.alba_empirical` of `x_b - x`. With `u = 4 / 1.1^s` and L = `theta_norm`:
    `l = 4 max(4 L^2, 3) (2 + (6 + u) d) / u^2`, `delta_s = 36 delta / (pi^4 (r + 1)^2 s^2)`.

    Args:
      arms: `[K, d]` features; they need not span. Their units matter for `theta_norm` alone.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward; rewards and L are taken in units of its root.
      theta_norm: L, a bound on the norm of theta; times the largest length where that exceeds 1.
      design: "d_opt" (by vertex exchange), or "frank_wolfe" as in the published program, which
        takes a step before its first test: where the uniform design is optimal, it ends with one
        that is a third as good.
      tol: of "d_opt": `max ||x||^2 <= (1 + tol)` rank. At 0.01 the weights of nearly equal arms
        are arbitrary, which was measured to cost a tenth more draws.
    Returns:
      An `Algorithm` that asks for an allocation each batch and answers the index of an arm.
      `info`: `phases`, the number of batches, and `unsolved`, the number of those whose design
      missed its tolerance, or whose draws were cut to 2^53.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm`.
    Deviations:
      The constants and the two accuracies, u in the sizes and 2^-s in the width, are those of the
      program that Fiez et al. (2019) published, which also knows the norm of theta. The default
      design is certified against the rank. "frank_wolfe" aims, as published, at the lesser of d
      and the number of arms alive; ties, which rounding decided there, go to the lowest index.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta in the paper; the constants here are those of the program
      of Fiez et al. (2019). Needs a bound on the norm of theta.
    Cost:
      a phase: a design, of which an exchange takes K d, and K d^2 + d^3.
    Reference:
      C. Tao, S. Blanco, Y. Zhou, "Best arm identification in linear bandits with linear dimension
      dependency", ICML 2018, ALBA and Y-ElimTil. https://proceedings.mlr.press/v80/tao18a.html
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.alba, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> int(runs.correct.sum())
      10
    """
    num_arms, dim = arms.shape
    given, (arms,) = arms, scaling.equilibrated(arms)  # theta_norm is about the arms as given
    assert theta_norm is not None  # `theta_norm_given` has checked it
    norm = theta_norm / jnp.sqrt(noise_var)
    most_arms = jnp.array([dim >> r for r in range(dim.bit_length())])  # at the end of stage r

    @once_for_equal
    def design_for(alive: Array) -> BatchDesign:
        space = subspace.of(arms, alive)
        candidates = subspace.within(space, arms)
        if design == "d_opt":
            found = designs.d_optimal(arms, candidates, tol=tol)
        else:
            found = frank_wolfe.g_optimal(arms, candidates, jnp.minimum(dim, alive.sum()))
        inverse = subspace.inverse(space, least_squares.gram(arms, found.weights)).matrix
        return BatchDesign(found.weights, inverse, found.converged)

    def stage_of(alive: Array) -> Array:
        return (most_arms >= alive.sum()).sum()

    def sample_size(batch: Array) -> Array:
        """`l`: the draws of a batch, divided by the logarithm."""
        accuracy = 4.0 / 1.1**batch
        return 4.0 * jnp.maximum(4.0 * norm**2, 3.0) * (2.0 + (6.0 + accuracy) * dim) / accuracy**2

    def widths(state: State, design: BatchDesign, theta: Array, leader: Array) -> Array:
        """Of `x_b - x` for every arm x."""
        towards, lengths = selection.at(arms, leader) - arms, selection.at(given, leader) - given
        draws, accuracy = sample_size(state.batch), 0.5**state.batch
        moved = towards @ design.inverse
        norms = jnp.sqrt(jnp.maximum(0.0, (moved * towards).sum(1)))
        second = design.weights * (jnp.abs(arms @ theta) + accuracy / 2.0) ** 2
        moments = jnp.maximum(0.0, ((moved @ least_squares.gram(arms, second)) * moved).sum(1))
        facts = draws, norms, norm, dim
        worst = radius.alba_worst_case(*facts, jnp.sqrt((lengths**2).sum(1)))
        return jnp.minimum(worst, radius.alba_empirical(*facts, moments, towards @ theta, accuracy))

    def init(key: Key) -> State:
        alive, zero = jnp.ones(num_arms, bool), jnp.zeros((), int)
        return State(
            alive=alive,
            batch=zero + 1,
            size=zero + num_arms,
            phases=zero,
            answer=sampling.index(key, num_arms),
            unsolved=zero,
        )

    def ask(key: Key, state: State) -> Move:
        level = 36.0 * delta / (jnp.pi**4 * ((stage_of(state.alive) + 1) * state.batch) ** 2)
        total = jnp.ceil(sample_size(state.batch) * jnp.log(2.5 * state.size**2 / level))
        done, found = state.alive.sum() <= 1, design_for(state.alive)
        exact = total <= sampling.exact(total.dtype)
        unsolved = state.unsolved + ~((found.solved & exact) | done)
        return Move(
            arm=jnp.arange(num_arms),
            count=sampling.multinomial(key, total.astype(int), found.weights),
            done=done,
            answer=jnp.where(done, jnp.argmax(state.alive), state.answer),
            info=({"phases": state.phases, "unsolved": unsolved}, found),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        info, found = move.info
        theta = found.inverse @ (arms.T @ total) / (move.count.sum() * jnp.sqrt(noise_var))
        scores = arms @ theta
        leader, highest = selection.best(jnp.where(state.alive, scores, -jnp.inf))
        beaten = widths(state, found, theta, leader) < highest - scores
        alive = state.alive & ~beaten
        same = stage_of(alive) == stage_of(state.alive)
        return State(
            alive=alive,
            batch=jnp.where(same, state.batch + 1, 1),
            size=jnp.where(same, state.size, alive.sum()),
            phases=state.phases + 1,
            answer=leader,
            unsolved=info["unsolved"],
        )

    return Algorithm(init, ask, tell)
