"""Draws at random: the regret that any learner has to stay below."""

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.estimate import sample_means
from ...parameters import constructor
from ...types import Arms


@constructor(features=False)
def uniform(arms: Arms) -> Algorithm:
    """An arm at random in every round.

    Args:
      arms: `[K, d]`; only K matters.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm with the largest sample mean; ties are broken by a random order drawn once a replication.
    Deviations:
      None; the only choice is that of the answer, the empirical best arm.
    Setting:
      cumulative regret, or at a budget.
    Assumptions:
      any. Arms without features: features are not used.
    Guarantee:
      none.
    Cost:
      a round K.
    Reference:
      S. Bubeck, R. Munos, G. Stoltz, "Pure exploration in finitely-armed and continuous-armed
      bandits", Theoretical Computer Science 412, 2011: uniform allocation, empirical best arm.
    Example:
      >>> import jaxbandits as jb
      >>> runs = jb.simulate(jb.instances.soare(3), jb.uniform, horizon=100, replications=10)
      >>> runs.arm_pulls.shape
      (10, 4)
    """
    num_arms = arms.shape[0]

    def init(key):
        return sample_means.nothing(num_arms), selection.tie_order(key, num_arms)

    def ask(key, state):
        stats, order = state
        return Move(
            arm=jax.random.randint(key, (), 0, num_arms),
            count=None,
            done=jnp.array(False),
            answer=selection.argmax(stats.means, order),
        )

    def tell(state, move, total):
        stats, order = state
        return sample_means.observe(stats, move.arm, total), order

    return Algorithm(init, ask, tell)
