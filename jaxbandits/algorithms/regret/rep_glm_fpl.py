"""repGLM-FPL: a network learns a representation first, then GLM-FPL works on it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import horizon_unless
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.estimate import growing_logistic
from ...parameters import Count, Nonnegative, Percentage, Positive, Size, constructor
from ...types import Arms
from ..loops import deep

TOL, MOST_STEPS = 1e-3, 5  # Newton decrement of a fit, and its steps


class State(NamedTuple):
    """A network, frozen or not yet, and a model of all rewards; C rows, features `[H + 1]`."""

    deep: deep.State
    model: growing_logistic.Model  # its features mean nothing until the network is frozen
    examples: jax.Array  # int [C]
    total: jax.Array  # float [] of all rewards
    unconverged: jax.Array  # int []


def _added(values):
    """Room for all rounds, unless it is given."""
    room = horizon_unless(values["capacity"], values["horizon"], "capacity")
    return (
        {} if values["capacity"] is not None else {"capacity": growing_logistic.capacity_of(room)}
    )


@constructor(contextual=True, completes=_added)
def rep_glm_fpl(
    arms: Arms,
    *,
    horizon: Count | None = None,
    percent: Percentage = 5.0,
    a: Nonnegative = 0.5,
    ridge: Positive = 1.0,
    refresh: Count = 10,
    hidden: Size = 50,
    activation: deep.Activation = "relu",
    rate: Positive = 0.001,
    batch: Size = 32,
    precision: deep.Precision = "single",
    capacity: Size | None = None,
) -> Algorithm:
    """repGLM-FPL (Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier, 2020).

    In the first m% of the rounds examples are chosen at random, and a network is trained as in
    `deep_fl`. Then it is frozen, and its hidden activations with a constant 1 are the features
    phi of logistic GLM-FPL: with theta the regularised maximum of the likelihood of all rewards
    so far, H the Hessian there and `G = sum of phi phi^T`, choose the largest `phi^T theta'`,
    `theta' = theta + H^-1 xi`, `xi ~ N(0, a^2 (G + ridge I))`.

    Args:
      arms: `[N, f]` features of all examples; a round shows some of them by their indices.
      horizon: n, which m is a share of.
      percent: m.
      a: scale of the perturbation.
      ridge: weight of `||theta||^2 / 2`.
      refresh: the fit passes over all rewards every so many rounds; in between theta takes a
        single Newton step on each reward, and H grows with it.
      hidden, activation, rate, batch, precision: as of `deep_fpl`; Hessians are summed in that
        precision, everything else of the fit in double.
      capacity: how many rewards are remembered, the first, by default n. Once there is no room
        for more, the later ones are learnt by their single steps, and no fit passes over all.
    Returns:
      An `Algorithm` for contextual problems (never done), `ask(key, state, shown)`. `info`: the
      sum of all rewards (`reward`), and fits that missed their tolerance (`unconverged`).
    Raises:
      ValueError: a bad option, or no horizon.
    Deviations:
      `theta'` is one Newton step from theta on the perturbed objective, not its minimum, and
      theta is exact every `refresh` rounds only. The ridge enters the covariance of xi. The
      paper does not tell a, the ridge, and whether the pairs of the first rounds are used again;
      here they are.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Section 5.2. https://arxiv.org/abs/1906.08947
    Example:
      >>> import numpy as np
      >>> import jaxbandits as jb
      >>> points = np.random.default_rng(0).normal(size=(200, 4))
      >>> world = jb.instances.labelled(points, points[:, 0] > 0, shown=5)
      >>> runs = jb.simulate(world, jb.rep_glm_fpl, horizon=200, replications=4)
      >>> bool(runs.info["reward"].mean() / 200 > world.random_average(runs.replication).mean())
      True
    """
    settings = deep.Settings(hidden, activation, rate, batch, precision)
    most = growing_logistic.capacity_of(horizon_unless(capacity, horizon, "capacity"))
    first = jnp.maximum(1, jnp.ceil(percent * horizon / 100.0 - 1e-9).astype(int))

    def init(key):
        return State(
            deep=deep.begin(key, arms.shape[1], settings),
            model=growing_logistic.without_data(most, hidden + 1, ridge, settings.dtype),
            examples=jnp.zeros(most, int),
            total=jnp.zeros((), float),
            unconverged=jnp.zeros((), int),
        )

    def ask(key, state, shown):
        phi = deep.embedded(state.deep, arms, shown, settings).astype(float)
        theta = growing_logistic.sampled(
            state.model.fit, jax.random.normal(key, (hidden + 1,), float), a
        )
        by_lot = jax.random.randint(key, (), 0, shown.size)
        arm = jnp.where(state.model.number < first, by_lot, jnp.argmax(phi @ theta))
        info = {"reward": state.total, "unconverged": state.unconverged}
        chosen = selection.at(shown, arm), selection.at(phi, arm)
        return Move(arm, None, done=jnp.array(False), answer=arm, info=(info, chosen))

    def tell(state, move, total):
        _, (example, x) = move.info
        examples = state.examples.at[state.model.number].set(example, mode="drop")
        model = growing_logistic.noted(state.model, x, total)
        after = model.number - first
        learner = deep.train_if(after <= 0, state.deep, arms, example, total, settings)
        # Once, when the network is frozen; before that no features are worth keeping.
        blocks = jnp.where(after == 0, growing_logistic.blocks_of(jnp.minimum(first, most)), 0)
        rows = deep.represent(
            learner, arms, examples, model.rows, blocks, growing_logistic.BLOCK, settings
        )
        model = model._replace(rows=rows)
        fit, missed = growing_logistic.followed(
            model, x, total, after, ridge=ridge, refresh=refresh, tol=TOL, most=MOST_STEPS
        )
        missed = state.unconverged + missed
        return State(learner, model._replace(fit=fit), examples, state.total + total, missed)

    return Algorithm(init, ask, tell)
