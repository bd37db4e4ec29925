"""RAGE: transductive best-arm identification in linear bandits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import directions, ledger, radius, rounding, xy_design
from ..kernels.once import once_for_equal
from ..options import constructor, positive, probability


class State(NamedTuple):
    """What RAGE remembers between phases."""

    alive: jax.Array  # bool [M]
    phase: jax.Array  # int [] from 1
    answer: jax.Array  # int [] empirical best of the last phase
    unsolved: jax.Array  # int [] designs that missed their tolerance


@constructor(
    spans=True,
    delta=probability,
    noise_var=positive,
    rounding_epsilon=positive,
    log_factor=positive,
    tol=positive,
)
def rage(
    arms,
    targets=None,
    *,
    delta=0.05,
    noise_var=1.0,
    rounding_epsilon=0.1,
    log_factor=2.0,
    tol=1e-3,
):
    """RAGE (Fiez, Jain, Jamieson, Ratliff, 2019).

    In phase t, on the targets still alive: the design w that minimises
    `rho = max over pairs of ||z - z'||^2_{A(w)^-1}`;
    `N_t = max(ceil(2 4^t rho (1 + eps) log(c M^2 t^2 / delta)), 2 p / eps)` draws rounded
    efficiently; drop z if some alive z' has
    `||z' - z||_{A(n)^-1} sqrt(2 log(c M^2 t^2 / delta)) < (z' - z)^T theta_hat`, with theta_hat
    from this phase alone. Sizes scale with `noise_var`.

    Args:
      arms: `[K, d]` features that can be measured; they must span.
      targets: `[M, d]` features to choose among, the arms by default.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      rounding_epsilon: eps, the loss allowed to rounding.
      log_factor: c. The paper prints 1, which guarantees only level 1.6 delta; its program and
        the default here use 2.
      tol: relative accuracy to which every design is certified.
    Returns:
      An `Algorithm` that asks for an allocation each phase and answers the index of a target.
      `info`: `phases` played and designs `unsolved` to `tol`.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      `log_factor` 2. Designs come from an interior-point method with a certificate instead of
      200-odd Frank-Wolfe steps, and rho is that of the design used. Squared norms throughout,
      where the paper's box drops the square.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, Algorithm 1. https://arxiv.org/abs/1906.08399
    Example:
      >>> import jaxbandits as jb
      >>> runs = jb.simulate(jb.instances.transductive(4, angle=0.5), jb.rage, replications=20)
      >>> int(runs.correct.sum())
      20
    """
    num_arms, _ = arms.shape
    targets = arms if targets is None else targets
    num_targets = targets.shape[0]
    pairs = directions.Pairs(targets)
    first, second = pairs.indices
    every_arm = jnp.arange(num_arms)

    @once_for_equal
    def plan_for(alive):
        return xy_design.xy_optimal(arms, pairs, alive[first] & alive[second], tol=tol)

    def init(key):
        zero = jnp.zeros((), int)
        return State(jnp.ones(num_targets, bool), zero + 1, zero, zero)

    def ask(key, state):
        alive, phase = state.alive, state.phase
        plan = plan_for(alive)
        log_term = jnp.log(log_factor * num_targets**2 * phase**2 / delta)
        wanted = 2.0 * 4.0**phase * plan.value * (1.0 + rounding_epsilon) * noise_var * log_term
        at_least = 2.0 * (plan.weights > 0).sum() / rounding_epsilon
        draws = jnp.maximum(jnp.ceil(wanted), jnp.ceil(at_least)).astype(int)
        done = alive.sum() <= 1
        return Move(
            arm=every_arm,
            count=rounding.efficient(plan.weights, draws),
            done=done,
            answer=jnp.where(done, jnp.argmax(alive), state.answer),
            info={
                "unsolved": state.unsolved + ~(plan.converged | done),
                "phases": phase - 1,
            },
        )

    def tell(state, move, total):
        inverse, theta, _ = ledger.batch(arms, move.count, total)
        scores = targets @ theta
        sqdist = directions.sqdist(targets, inverse)
        width = radius.static(delta, state.phase, num_targets**2, log_factor)
        # beaten[z, z']: z' is better than z beyond doubt
        beaten = jnp.sqrt(noise_var * sqdist) * width < scores[None, :] - scores[:, None]
        dropped = (beaten & state.alive[None, :]).any(1)
        return State(
            alive=state.alive & ~dropped,
            phase=state.phase + 1,
            answer=jnp.argmax(jnp.where(state.alive, scores, -jnp.inf)),
            unsolved=move.info["unsolved"],
        )

    return Algorithm(init, ask, tell)
