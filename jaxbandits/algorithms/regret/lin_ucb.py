"""LinUCB: optimism in linear bandits, for cumulative regret or as a best-arm baseline."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import ridge_in_range, theta_norm_known
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.confidence import radius
from ...kernels.estimate import least_squares, sample_means
from ...parameters import Flag, Nonnegative, Positive, Probability, Variance, constructor, number_or
from ...types import Arms, Pytree, Scalar

PROVED: tuple[str, ...] = ("self_normalised_det", "self_normalised")


class State(NamedTuple):
    """What LinUCB remembers."""

    stats: Pytree  # of the `Model`
    counts: Int[Array, " K"]
    order: Int[Array, " K"]  # priorities that break ties


class View(NamedTuple):
    """What a round reads of the rewards so far."""

    means: Float[Array, " K"]
    variances: Float[Array, " K"]  # ||x||^2 in V^-1
    logdet: Float[Array, ""]


class Model(NamedTuple):
    """How rewards are remembered: in one model of all arms, or in one for each arm."""

    begin: Callable[[], Pytree]  # () -> stats
    observe: Callable[[Pytree, Array, Array], Pytree]  # (stats, arm, reward) -> stats
    view: Callable[[Pytree], View]


def _consistent(values):
    if not values["disjoint"]:
        ridge_in_range(values)
    theta_norm_known(values, PROVED, "alpha")


@constructor(requires=_consistent)
def lin_ucb(
    arms: Arms,
    *,
    alpha: Annotated[Scalar | str, number_or(*PROVED)] | None = None,
    delta: Probability = 0.05,
    noise_var: Variance = 1.0,
    theta_norm: Nonnegative | None = None,
    v0: Positive = 1.0,
    disjoint: Flag = False,
) -> Algorithm:
    """LinUCB (Li, Chu, Langford, Schapire, 2010).

    Ridge least squares, `V = v0 I + sum of x x^T`; draw `argmax_k x_k^T theta + alpha
    ||x_k||_{V^-1}`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      alpha: the width, in units of a reward. By default `sigma (1 + sqrt(log(2 / delta) / 2))`,
        which has no theorem; "self_normalised_det" or "self_normalised": sigma times the radius of
        that name, as in OFUL, which has one. The default ignores the bias of the ridge, which is up
        to `sqrt(v0) ||theta||` in the units of alpha. Where sigma is small beside that, the
        algorithm may keep to a bad arm: take a proved width, or `v0` about `(sigma / ||theta||)^2`.
      delta: chance that an interval is wrong, in (0, 1); unused where alpha is a number.
      noise_var: sub-Gaussian variance of a reward, sigma^2.
      theta_norm: a bound on the norm of theta; the proved widths need it.
      v0: ridge.
      disjoint: True for one model for each arm, which shares nothing with the others: after N draws
        of sum S the mean is `S ||x||^2 / (v0 + N ||x||^2)`, and `||x||_{V^-1}` the root of
        `||x||^2 / (v0 + N ||x||^2)`. The radii are then those of V with K dimensions.
    Returns:
      An `Algorithm` that is never done, for cumulative regret or for `at_budget`, and answers the
      arm drawn most; of arms drawn equally often, the one with the larger estimate.
    Raises:
      ValueError: a bad option, or an unknown `theta_norm` where the width needs it.
    Deviations:
      Li et al. print the disjoint form and a width for rewards in [0, 1]; here one theta is the
      default, as the arms' features are fixed, and sigma scales the width. Indices that agree in
      six digits are ties, broken by a random order of the arms drawn once a replication. The answer
      is that of GSE's experiments.
    Setting:
      cumulative regret, or at a budget.
    Assumptions:
      linear means, sub-Gaussian noise of known variance. Arms without features: as unit vectors.
    Guarantee:
      none for the default width; regret of order d sqrt(n), up to logarithms, with the two
      self-normalised widths (Abbasi-Yadkori, Pal, Szepesvari, 2011).
    Cost:
      a round K d + d^2, or K^2 where K is at most 2 d.
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
    model = _disjoint(arms, v0) if disjoint else _shared(arms, v0)
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    if disjoint:  # together the models of all arms have K parameters
        facts = facts._replace(dim=num_arms)

    def width(draws, logdet):
        if isinstance(alpha, str):
            return radius.width(alpha, facts)(draws, logdet)
        return jnp.sqrt(noise_var) * radius.lin_ucb(delta) if alpha is None else alpha

    def init(key):
        return State(model.begin(), jnp.zeros(num_arms, int), selection.tie_order(key, num_arms))

    def ask(key, state):
        means, variances, logdet = model.view(state.stats)
        wide = width(state.counts.sum(), logdet) * jnp.sqrt(jnp.maximum(variances, 0.0))
        # At first, arms of equal length differ by rounding alone and must tie.
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


def _shared(arms: Arms, v0: Scalar) -> Model:
    """One theta for all arms."""
    arm_space = least_squares.prefers_arm_space(arms)
    return Model(
        begin=lambda: least_squares.ridge(arms, v0, arm_space=arm_space),
        observe=lambda stats, arm, reward: least_squares.observe(
            stats, arms, arm, reward, arm_space=arm_space
        ),
        view=lambda stats: View(stats.means, stats.variances, stats.logdet),
    )


def _disjoint(arms: Arms, v0: Scalar) -> Model:
    """A theta for each arm, of which rewards show only the part along the arm's features."""
    sqnorms = (arms**2).sum(1)

    def view(stats: sample_means.Averages) -> View:
        variances = sqnorms / (v0 + stats.counts * sqnorms)
        logdet = jnp.log1p(stats.counts * sqnorms / v0).sum()
        return View(stats.sums * variances, variances, logdet)

    return Model(lambda: sample_means.nothing(arms.shape[0]), sample_means.observe, view)
