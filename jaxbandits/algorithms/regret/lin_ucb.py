"""LinUCB: optimism in linear bandits, for cumulative regret or as a best-arm baseline."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import ridge_in_reach, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.confidence import radius
from ...kernels.estimate import least_squares, sample_means
from ...parameters import Flag, Nonnegative, Positive, Probability, constructor, number_or
from ...types import Arms, Scalar

PROVED = ("self_normalised_det", "self_normalised")


class State(NamedTuple):
    """What LinUCB remembers."""

    stats: Any
    counts: jax.Array  # int [K]
    order: jax.Array  # int [K] priorities that break ties


class Model(NamedTuple):
    """What the rewards of an arm tell: of all arms, or of that one alone."""

    begin: Callable  # () -> stats
    observe: Callable  # (stats, arm, reward) -> stats
    look: Callable  # (stats) -> (means [K], variances [K], logdet [])


def _consistent(values):
    if not values["disjoint"]:
        ridge_in_reach(values)
    theta_norm_known(values, PROVED, "alpha")


@constructor(requires=_consistent)
def lin_ucb(
    arms: Arms,
    *,
    alpha: Annotated[Scalar | str, number_or(*PROVED)] | None = None,
    delta: Probability = 0.05,
    noise_var: Positive = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    disjoint: Flag = False,
) -> Algorithm:
    """LinUCB (Li, Chu, Langford, Schapire, 2010).

    Ridge least squares, `V = v0 I + sum of x x^T`; draw `argmax_k x_k^T theta + alpha
    ||x_k||_{V^-1}`.

    Args:
      arms: `[K, d]` features. Their units matter: the ridge is in them.
      alpha: the width, in units of a reward. By default `sigma (1 + sqrt(log(2 / delta) / 2))`,
        which has no theorem; "self_normalised_det" or "self_normalised": that of OFUL, sigma times
        the radius of the name, which has one.
      delta: chance of a wrong interval, in (0, 1); unused where alpha is a number.
      noise_var: sub-Gaussian variance of a reward, sigma^2.
      theta_norm: a bound on the norm of theta; the proved widths need it.
      v0: ridge.
      disjoint: True for a model of each arm alone, which shares nothing between arms: with N draws
        of sum S, mean `S ||x||^2 / (v0 + N ||x||^2)` and `||x||_{V^-1}` the root of
        `||x||^2 / (v0 + N ||x||^2)`. The radii are then those of V with K dimensions.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most: of equal ones that of the larger estimate.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the width needs it.
    Deviations:
      Li et al. print the disjoint form and a width for rewards in [0, 1]; here one theta is the
      default, as the arms' features are fixed, and sigma scales the width. Ties, up to six
      digits, are broken by a random order of the arms drawn once a replication. The answer is that
      of GSE's experiments.
    Reference:
      L. Li, W. Chu, J. Langford, R. E. Schapire, "A contextual-bandit approach to personalized
      news article recommendation", WWW 2010, Algorithm 1. https://arxiv.org/abs/1003.0146
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.lin_ucb, alpha=0.5)
      >>> instance = jb.instances.soare(3, angle=0.5)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> runs.regret.shape[0], int(runs.rounds[-1])
      (10, 100)
    """
    num_arms, _ = arms.shape
    model = _alone(arms, v0) if disjoint else _shared(arms, v0)
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    if disjoint:  # all arms' models are one of K parameters
        facts = facts._replace(dim=num_arms)

    def width(draws, logdet):
        if isinstance(alpha, str):
            return radius.width(alpha, facts)(draws, logdet)
        return jnp.sqrt(noise_var) * radius.lin_ucb(delta) if alpha is None else alpha

    def init(key):
        return State(model.begin(), jnp.zeros(num_arms, int), selection.tie_order(key, num_arms))

    def ask(key, state):
        means, variances, logdet = model.look(state.stats)
        wide = width(state.counts.sum(), logdet) * jnp.sqrt(jnp.maximum(variances, 0.0))
        # Arms of one length tie at first, but for rounding.
        indices = selection.coarse(means + wide)
        return Move(
            arm=selection.argmax(indices, state.order),
            count=None,
            done=jnp.array(False),
            answer=selection.most_drawn(state.counts, means, state.order),
        )

    def tell(state, move, total):
        drawn = jnp.arange(num_arms) == move.arm
        stats = model.observe(state.stats, move.arm, total)
        return State(stats, state.counts + drawn, state.order)

    return Algorithm(init, ask, tell)


def _shared(arms, v0):
    """One theta for all arms."""
    form = {"arm_space": least_squares.prefers_arm_space(arms)}
    return Model(
        begin=lambda: least_squares.ridge(arms, v0, **form),
        observe=lambda stats, arm, reward: least_squares.observe(stats, arms, arm, reward, **form),
        look=lambda stats: (stats.means, stats.variances, stats.logdet),
    )


def _alone(arms, v0):
    """A theta for each arm, of which only the part along its features is ever seen."""
    lengths = (arms**2).sum(1)

    def look(stats):
        variances = lengths / (v0 + stats.counts * lengths)
        logdet = jnp.log1p(stats.counts * lengths / v0).sum()
        return stats.sums * variances, variances, logdet

    return Model(lambda: sample_means.nothing(arms.shape[0]), sample_means.observe, look)
