"""repGLM-FPL: a network learns a representation first, then GLM-FPL works on it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import size_or_horizon
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.estimate import growing_logistic
from ...parameters import Count, Nonnegative, Percentage, Positive, Size, Values, constructor
from ...types import Arms
from ..loops import deep

TOL: float = 1e-3  # Newton decrement of a fit
MOST_STEPS: int = 5  # of a fit


class State(NamedTuple):
    """A network, frozen or not yet, and a model of all rewards; C rows, features `[H + 1]`."""

    deep: deep.State
    model: growing_logistic.Model  # its features mean nothing until the network is frozen
    examples: Int[Array, " C"]
    total: Float[Array, ""]  # of all rewards
    unconverged: Int[Array, ""]


def _with_capacity(values: Values) -> Values:
    """Room for all rounds, unless the capacity is given."""
    room = size_or_horizon(values["capacity"], values["horizon"], "capacity")
    if values["capacity"] is not None:
        return {}
    return {"capacity": growing_logistic.capacity_of(room)}


@constructor(contextual=True, completes=_with_capacity)
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
      horizon: n, the number of rounds.
      percent: m.
      a: scale of the perturbation.
      ridge: weight of `||theta||^2 / 2`.
      refresh: once in so many rounds theta is fitted to all rewards; in the rounds between, theta
        takes a single Newton step on the new reward, which is also added to H.
      hidden, activation, rate, batch, precision: as in `deep_fpl`; Hessians are summed in that
        precision, everything else of the fit in double.
      capacity: how many rewards are remembered, the first ones; by default n. Once the memory is
        full, each later reward is learnt by its single step, and there is no more fit to all.
    Returns:
      An `Algorithm` for contextual problems that is never done, `ask(key, state, shown)`. `info`:
      the sum of all rewards (`reward`), and fits that missed their tolerance (`unconverged`).
    Raises:
      ValueError: a bad option, or no horizon.
    Deviations:
      `theta'` is one Newton step from theta on the perturbed objective, not its minimum, and
      theta is exact every `refresh` rounds only. The ridge enters the covariance of xi. The
      paper does not tell a, the ridge, nor whether the rewards of the first rounds are used again;
      here they are.
    Setting:
      average reward, contextual, on a learnt representation.
    Assumptions:
      0 or 1, a function of the features that is not known. Arms without features: no, the features
      are learnt from.
    Guarantee:
      none.
    Cost:
      as `deep_fpl` until the network is frozen; then K d + d^2 a round with d features, and for a
      fit anew from n examples n d^2.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Section 5.2. https://arxiv.org/abs/1906.08947
    Example:
      >>> import numpy as np
      >>> import jaxbandits as jb
      >>> points = np.random.default_rng(0).normal(size=(200, 4))
      >>> instance = jb.instances.labelled(points, points[:, 0] > 0, shown=5)
      >>> runs = jb.simulate(instance, jb.rep_glm_fpl, horizon=200, replications=4)
      >>> bool(runs.info["reward"].mean() / 200 > instance.random_average(runs.replication).mean())
      True
    """
    settings = deep.Settings(hidden, activation, rate, batch, precision)
    most = growing_logistic.capacity_of(size_or_horizon(capacity, horizon, "capacity"))
    assert horizon is not None  # it was asked for above
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
        at_random = jax.random.randint(key, (), 0, shown.size)
        arm = jnp.where(state.model.number < first, at_random, jnp.argmax(phi @ theta))
        info = {"reward": state.total, "unconverged": state.unconverged}
        chosen = selection.at(shown, arm), selection.at(phi, arm)
        return Move(arm, None, done=jnp.array(False), answer=arm, info=(info, chosen))

    def tell(state, move, total):
        _, (example, x) = move.info
        examples = state.examples.at[state.model.number].set(example, mode="drop")
        model = growing_logistic.noted(state.model, x, total)
        age = model.number - first  # of the frozen network, in rounds
        learner = deep.train_if(age <= 0, state.deep, arms, example, total, settings)
        # Features are computed once, when the network is frozen: before, they change each round.
        blocks = jnp.where(age == 0, growing_logistic.blocks_of(jnp.minimum(first, most)), 0)
        rows = deep.represent(
            learner, arms, examples, model.rows, blocks, growing_logistic.BLOCK, settings
        )
        model = model._replace(rows=rows)
        fit, missed = growing_logistic.followed(
            model, x, total, age, ridge=ridge, refresh=refresh, tol=TOL, most=MOST_STEPS
        )
        missed = state.unconverged + missed
        return State(learner, model._replace(fit=fit), examples, state.total + total, missed)

    return Algorithm(init, ask, tell)
