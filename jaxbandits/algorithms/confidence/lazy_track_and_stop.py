"""Lazy track-and-stop: follow the optimal design of the estimate, recomputed rarely."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import tracking
from ...kernels.confidence import glr, radius
from ...kernels.design import oracle
from ...kernels.design.xy.by_name import named
from ...kernels.estimate import least_squares
from ...kernels.linalg import spd
from ...parameters import Positive, Probability, Variance, constructor
from ...types import Arms, Key

CLOSE: float = 1.0 - 1e-9  # times a limit: eigenvalues that are equal to it but for rounding pass


class State(NamedTuple):
    """What lazy track-and-stop remembers."""

    stats: least_squares.Ledger  # without ridge
    matrix: Float[Array, "d d"]  # A, the sum of x x^T
    counts: Int[Array, " K"]
    weights: Float[Array, " K"]  # w, the design that is followed
    wanted: Float[Array, " K"]  # sum of the designs of all rounds, the next one included
    due: Int[Array, ""]  # draws after which the design is computed anew
    basis: Int[Array, " d"]  # A_0, arms that span
    forced: Int[Array, ""]  # draws of the basis so far
    floor: Float[Array, ""]  # c_0
    order: Int[Array, " K"]  # priorities that break ties
    unsolved: Int[Array, ""]  # designs that missed their tolerance


@constructor(spans=True, conditioned=True)
def lazy_track_and_stop(
    arms: Arms,
    *,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    laziness: Positive = 1.0,
    u: Positive = 0.1,
    tol: Positive = 1e-2,
) -> Algorithm:
    """Lazy track-and-stop (Jedra & Proutiere, 2020).

    A_0 are d arms that span, `c_0 = lambda_min(sum of x x^T over A_0) / sqrt(d)`. Where
    `lambda_min(A) < c_0 sqrt(t)`, draw the next arm of A_0 in turn; else draw
    `argmax_a of (sum of w_a so far) - N_a`, where the design w minimises
    `max_j ||x_i - x_j||^2 / (mu_i - mu_j)^2` in A(w)^-1 for the leader i and the mu of least
    squares. Stop when `A >= c I`, `c = max ||x||^2`, and for every j
    `(mu_i - mu_j)^2 / (2 ||x_i - x_j||^2)` in A^-1 is at least
    `(1 + u) sigma^2 log(det(I + A / (u c))^(1/2) / delta)`.

    Args:
      arms: `[K, d]` features; they must span. Their units matter: `c_0` and c depend on them.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      laziness: w is computed anew once the number of draws has grown by this share; 1 in the
        paper's program: each time the number has doubled.
      u: of the threshold; 0.1 in the paper's program.
      tol: relative accuracy to which every design is certified.
    Returns:
      An `Algorithm` that draws one arm a round and answers the index of the believed best arm.
      `info`: `unsolved`, the number of designs that missed `tol`, and `forced`, the number of
      draws from A_0.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      A_0 is the first basis in index order, drawn first. Designs come from an interior-point
      method with a certificate instead of 1000 Frank-Wolfe steps. Eigenvalues are compared with
      1 - 1e-9 of c_0 and c. The paper's program begins with the matrix of A_0 without drawing it,
      takes its least eigenvalue for c, does not test `A >= c I` and leaves w out in forced rounds.
    Setting:
      best arm, fixed confidence.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      wrong with probability at most delta; in the paper the mean number of draws is optimal as
      delta tends to 0.
    Cost:
      a round K d + d^3, or K^2 + d^3 where K is at most 2 d; and a design for K - 1 directions
      whenever the draws have grown by the factor 1 + laziness.
    Reference:
      Y. Jedra, A. Proutiere, "Optimal best-arm identification in linear bandits", NeurIPS 2020,
      Algorithm 1. https://arxiv.org/abs/2006.16073
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.lazy_track_and_stop, delta=0.05)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> runs.summary()["errors"]
      0
    """
    num_arms, dim = arms.shape
    arm_space = least_squares.prefers_arm_space(arms)
    solve, sigma, identity = named("interior_point", tol), jnp.sqrt(noise_var), jnp.eye(dim)
    c = CLOSE * (arms**2).sum(1).max()

    def init(key: Key) -> State:
        basis = selection.first_basis(arms)
        none = jnp.zeros(num_arms, int)
        first = sum((tracking.drawn(num_arms, basis[k]) for k in range(dim)), start=none)
        even, zero = jnp.full(num_arms, 1.0 / num_arms), jnp.zeros((), int)
        return State(
            stats=least_squares.foreseen(arms, first, arm_space=arm_space),
            matrix=jnp.zeros((dim, dim)),
            counts=none,
            weights=even,
            wanted=even,
            due=zero + dim,
            basis=basis,
            forced=zero,
            floor=CLOSE * spd.least_eigenvalue(least_squares.gram(arms, first)) / jnp.sqrt(dim),
            order=selection.tie_order(key, num_arms),
            unsolved=zero,
        )

    def is_sure(state: State, found: glr.Evidence) -> Array:
        """The stopping test; the determinant is computed only where its lower bound passes."""
        least = jnp.maximum(0.0, state.stats.logdet - dim * jnp.log(u * c))

        def passes(logdet: Array) -> Array:
            return glr.certain(found, sigma * radius.least_squares(delta, u, logdet))

        def exactly() -> Array:
            regularised = spd.inverse(state.matrix / (u * c) + identity)
            covered = spd.positive(state.matrix - c * identity)
            return covered & passes(regularised.logdet)

        return lax.cond(passes(least), exactly, lambda: jnp.zeros((), bool))

    def ask(key: Key, state: State) -> Move:
        draws = state.counts.sum()
        found = glr.evidence(state.stats, arms, arm_space=arm_space)
        first = draws < dim
        explored = spd.positive(state.matrix - state.floor * jnp.sqrt(draws) * identity)
        forced = first | ~explored
        tracked = tracking.by_sum(state.counts, state.wanted, state.order)
        done = ~first & is_sure(state, found)
        return Move(
            arm=jnp.where(forced, selection.at(state.basis, state.forced % dim), tracked),
            count=None,
            done=done,
            answer=found.leader,
            info={"unsolved": state.unsolved, "forced": state.forced + (forced & ~done)},
        )

    def tell(state: State, move: Move, total: Array) -> State:
        arm, draws = move.arm, state.counts.sum() + 1
        x = selection.at(arms, arm)
        stats = least_squares.observe(
            state.stats, arms, arm, total, arm_space=arm_space, known=draws <= dim
        )
        renew = draws >= state.due

        def new_design() -> tuple[Array, Array]:
            design = oracle.estimated(arms, arms, stats.means, solve)
            return design.weights, state.unsolved + ~design.converged

        weights, unsolved = lax.cond(renew, new_design, lambda: (state.weights, state.unsolved))
        later = jnp.ceil((1.0 + laziness) * draws).astype(int)
        return state._replace(
            stats=stats,
            matrix=state.matrix + x[:, None] * x[None, :],
            counts=state.counts + tracking.drawn(num_arms, arm),
            weights=weights,
            wanted=state.wanted + weights,
            due=jnp.where(renew, later, state.due),
            forced=move.info["forced"],
            unsolved=unsolved,
        )

    return Algorithm(init, ask, tell)
