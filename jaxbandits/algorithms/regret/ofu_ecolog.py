"""OFU-ECOLog: optimism in logistic bandits, with an estimate that uses each reward once."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ...conditions import theta_norm_given
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.confidence import likelihood_radius
from ...kernels.estimate import online_logistic
from ...kernels.linalg import spd
from ...parameters import Positive, Probability, choice, constructor, number_or
from ...types import Arms, Scalar


class State(NamedTuple):
    """What OFU-ECOLog remembers: nothing that grows with the rounds, and no counts."""

    online: online_logistic.Online
    order: Int[Array, " K"]  # priorities that break ties
    unconverged: Int[Array, ""]


@constructor(requires=theta_norm_given)
def ofu_ecolog(
    arms: Arms,
    *,
    theta_norm: Positive | None = None,
    width: Annotated[Scalar | str, number_or("theory")] = "theory",
    delta: Probability = 0.05,
    ridge: Positive = 10.0,
    family: Annotated[str, choice("logistic")] = "logistic",
) -> Algorithm:
    """OFU-ECOLog (Faury, Abeille, Jun, Calauzenes, 2022), with a radius of this package.

    Draw the arm of the largest `x^T theta_t + width ||x||_{W^-1}`. A reward moves `theta_t` to the
    minimum of its negative log-likelihood plus `||theta - theta_t||_W^2 / (2 + 2 S max ||x||)`, and
    adds `mu'(x^T theta) x x^T` at the new theta to W. The cost of a round, O(K d^2), does not grow.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      theta_norm: S, a bound on the norm of theta; `simulate` passes the instance's.
      width: "theory", see `likelihood_radius.online_logistic`; or a number, without a theorem.
      delta: chance that theta is ever farther away than the width says; for "theory".
      ridge: W before any reward is the ridge times I; 1 in the authors' program, 10 in that of
        Lee, Yun, Jun (2024).
      family: "logistic", for rewards in [0, 1]; the algorithm has no other.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate. `info`: rounds whose step missed its accuracy (`unconverged`), and the `width`.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm`.
    Deviations:
      The width has a proof of this package, from the losses of the steps so far: it needs no first
      phase, no condition that is checked on the way, and none of the paper's constants. A step
      stays where `|x^T theta| <= S ||x||` for the arm drawn, which the proof needs, and not in a
      ball or ellipsoid; it is solved to the last digits, in the authors' program to 1/t. That
      program adds the width to the mean of a reward, this one to the linear predictor.
    Setting:
      cumulative regret, logistic, no history kept.
    Assumptions:
      logistic, rewards in [0, 1]. Arms without features: as unit vectors.
    Guarantee:
      theta is always within the width, except with probability delta, with width = "theory"
      (default), by a theorem of this package. Needs a bound on the norm of theta.
    Cost:
      a round K d^2.
    Reference:
      L. Faury, M. Abeille, K.-S. Jun, C. Calauzenes, "Jointly efficient and optimal algorithms for
      logistic bandits", AISTATS 2022. https://arxiv.org/abs/2201.01985
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.ofu_ecolog, ridge=2.0)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> runs.regret.shape[0], int(runs.info["unconverged"].sum())
      (10, 0)
    """
    num_arms, dim = arms.shape
    norm = jnp.asarray(theta_norm, arms.dtype)
    eta = online_logistic.step_size(norm, jnp.sqrt((arms**2).sum(1).max()))

    def width_of(online):
        if not isinstance(width, str):
            return jnp.asarray(width, arms.dtype)
        return likelihood_radius.online_logistic(delta, eta, ridge, norm, online.growth)

    def init(key):
        order = selection.tie_order(key, num_arms)
        online = online_logistic.begin(dim, ridge, arms.dtype)
        return State(online, order, jnp.zeros((), int))

    def ask(key, state):
        online, half = state.online, width_of(state.online)
        predictors = arms @ online.theta
        values = predictors + half * jnp.sqrt(spd.quadratic(arms, online.inverse))
        return Move(
            arm=selection.argmax(selection.fine(values), state.order),
            count=None,
            done=jnp.array(False),
            answer=selection.argmax(predictors, state.order),
            info={"unconverged": state.unconverged, "width": half},
        )

    def tell(state, move, total):
        arm = selection.at(arms, move.arm)
        online = online_logistic.observe(state.online, arm, total, norm=norm, eta=eta)
        return State(online, state.order, state.unconverged + ~online.converged)

    return Algorithm(init, ask, tell)
