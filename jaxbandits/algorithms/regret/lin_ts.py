"""LinTS: Thompson sampling in linear bandits."""

from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ...conditions import ridge_in_range
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.confidence import radius
from ...kernels.estimate import sqrt_least_squares
from ...parameters import Positive, Probability, Variance, constructor, number_or
from ...types import Arms, Scalar


class State(NamedTuple):
    """What LinTS remembers."""

    stats: sqrt_least_squares.Root
    counts: Int[Array, " K"]
    order: Int[Array, " K"]  # priorities that break ties


@constructor(requires=partial(ridge_in_range, most=2.0**48))
def lin_ts(
    arms: Arms,
    *,
    scale: Annotated[Scalar | str, number_or("theory")] | None = None,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    v0: Positive = 1.0,
) -> Algorithm:
    """Linear Thompson sampling, LinTS (Agrawal, Goyal, 2013).

    Ridge least squares theta, `V = v0 I + sum of x x^T`; sample `theta' ~ N(theta, v^2 V^-1)` and
    draw the arm with the largest `x^T theta'`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      scale: v, in units of a reward; sigma by default, which is exact sampling from the posterior
        for normal rewards and the prior `N(0, sigma^2 / v0 I)`. Where sigma is small beside
        `sqrt(v0) ||theta||`, this prior all but excludes theta, and the algorithm may keep to a bad
        arm: take `v0` about `(sigma / ||theta||)^2`. "theory": what the regret bound needs,
        `sigma sqrt(9 d log(t / delta))` in round t.
      delta: probability that the bound fails, in (0, 1); for "theory" only.
      noise_var: sub-Gaussian variance of a reward, sigma^2.
      v0: ridge.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most; of arms drawn equally often, the one with the larger estimate.
    Raises:
      ValueError: a bad option.
    Deviations:
      The paper has v0 = 1, and no scale but "theory".
    Setting:
      cumulative regret, or at a budget.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      none for the default scale; regret of order d^(3/2) sqrt(n), up to logarithms, with scale =
      "theory".
    Cost:
      a round K d + d^2.
    Reference:
      S. Agrawal, N. Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML
      2013, Algorithm 1. https://arxiv.org/abs/1209.3352
    Example:
      >>> import jaxbandits as jb
      >>> instance = jb.instances.soare(3, angle=0.5)
      >>> runs = jb.simulate(instance, jb.lin_ts, horizon=100, replications=10)
      >>> runs.regret.shape[0], int(runs.rounds[-1])
      (10, 100)
    """
    num_arms, dim = arms.shape
    sigma = jnp.sqrt(noise_var)

    def scale_after(draws):
        if isinstance(scale, str):
            return sigma * radius.lin_ts(delta, draws + 1, dim)
        return sigma if scale is None else scale

    def init(key):
        order = selection.tie_order(key, num_arms)
        return State(sqrt_least_squares.ridge(arms, v0), jnp.zeros(num_arms, int), order)

    def ask(key, state):
        normal = jax.random.normal(key, (dim,), arms.dtype)
        sampled = sqrt_least_squares.sampled(state.stats, normal, scale_after(state.counts.sum()))
        return Move(
            arm=selection.argmax(sampled, state.order),
            count=None,
            done=jnp.array(False),
            answer=selection.most_drawn(state.counts, state.stats.means, state.order),
        )

    def tell(state, move, total):
        drawn = jnp.arange(num_arms) == move.arm
        stats = sqrt_least_squares.observe(state.stats, move.arm, total)
        return State(stats, state.counts + drawn, state.order)

    return Algorithm(init, ask, tell)
