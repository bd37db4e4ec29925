"""A logistic estimate from one pass: each reward is used once, and the state does not grow.

After a reward y of an arm x, theta moves to the minimum of `l(theta', y) + ||theta' - theta||_W^2 /
(2 eta)` where `|x^T theta'| <= S ||x||`, l the negative log-likelihood of y; then W grows by
`mu'(x^T theta') x x^T` (Faury, Abeille, Jun, Calauzenes, AISTATS 2022, except for the constraint).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from ...types import Scalar
from ..linalg import spd

MOST = 60  # Newton steps
FINE = 1e-12  # of the root, or of 1 if it is larger: the accuracy


class Online(NamedTuple):
    """The estimate and its state."""

    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]  # of W
    growth: Float[Array, ""]  # sum of log Q so far, see `likelihood_radius`
    converged: Bool[Array, ""]  # of the last step


def begin(dim: int, ridge: Scalar, dtype: DTypeLike) -> Online:
    """Before any reward: theta is 0, W the ridge times I."""
    inverse = jnp.eye(dim, dtype=dtype) / ridge
    return Online(jnp.zeros(dim, dtype), inverse, jnp.zeros((), dtype), jnp.array(True))


def step_size(norm: Scalar, longest: Float[Array, ""]) -> Float[Array, ""]:
    """eta, `1 + S max ||x||`, as `likelihood_radius.online_logistic` takes it."""
    return 1.0 + norm * longest


class Moved(NamedTuple):
    """New predictors of one arm, one for each reward that it might have given."""

    predictor: Float[Array, " n"]
    cost: Float[Array, " n"]  # the minimum
    converged: Bool[Array, ""]


def moved(
    start: Float[Array, ""],
    variance: Float[Array, ""],
    most: Float[Array, ""],
    rewards: Float[Array, " n"],
) -> Moved:
    """Minimise `l(z, y) + (z - start)^2 / (2 variance)` over `|z| <= most`, for each reward y.

    Newton's method begins at 0, where the derivative is steepest. Its steps never pass the root of
    the derivative, which is convex below 0 and concave above.
    """

    def newton(now):
        z, _, steps = now
        steep = 1.0 + variance * jax.nn.sigmoid(z) * jax.nn.sigmoid(-z)
        step = (z - start - variance * (rewards - jax.nn.sigmoid(z))) / steep
        rounding = 4.0 * jnp.finfo(z.dtype).eps * variance / steep
        found = jnp.abs(step) <= FINE * jnp.maximum(1.0, jnp.abs(z)) + rounding
        z = z - step
        return z, found | (jnp.abs(z) >= most), steps + 1

    def unfinished(now):
        return ~now[1].all() & (now[2] < MOST)

    begin = (jnp.zeros_like(rewards), jnp.zeros(rewards.shape, bool), jnp.zeros((), int))
    z, found, _ = lax.while_loop(unfinished, newton, begin)
    z = jnp.clip(z, -most, most)
    cost = jax.nn.softplus(z) - rewards * z + 0.5 * (z - start) ** 2 / variance
    return Moved(z, cost, found.all())


def observe(
    now: Online,
    arm: Float[Array, " d"],
    reward: Float[Array, ""],
    *,
    norm: Float[Array, ""],
    eta: Float[Array, ""],
) -> Online:
    """Learn one reward in [0, 1]; `norm` is S."""
    direction = now.inverse @ arm
    square = arm @ direction
    safe = jnp.where(square > 0, square, 1.0)  # an arm of zeros teaches nothing
    rewards = jnp.stack([reward, jnp.zeros_like(reward), jnp.ones_like(reward)])
    start = arm @ now.theta
    found = moved(start, eta * safe, norm * jnp.sqrt(arm @ arm), rewards)
    predictor, teaches = found.predictor[0], square > 0
    slope = jax.nn.sigmoid(predictor) * jax.nn.sigmoid(-predictor)
    share = jnp.where(teaches, (predictor - start) / safe, 0.0)
    growth = jnp.where(teaches, jnp.logaddexp(-found.cost[1], -found.cost[2]), 0.0)
    return Online(
        theta=now.theta + share * direction,
        inverse=spd.added(now.inverse, arm, slope),
        growth=now.growth + growth,
        converged=found.converged,
    )
