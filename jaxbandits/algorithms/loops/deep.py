"""Learners with a network that takes one step a round on the most recent examples."""

from typing import Annotated, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.random import fold_in

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.estimate import network
from ...parameters import choice

PRECISIONS = {"single": jnp.float32, "double": jnp.float64}
BETAS, EPSILON = (0.9, 0.999), 1e-7  # of Adam
Activation: TypeAlias = Annotated[str, choice(*network.ACTIVATIONS)]
Precision: TypeAlias = Annotated[str, choice(*PRECISIONS)]


class Settings(NamedTuple):
    """What a learner is made of; all but the rate is static."""

    hidden: int
    activation: str
    rate: jax.Array
    batch: int
    precision: str

    @property
    def dtype(self):
        """Of weights and whatever meets them."""
        return PRECISIONS[self.precision]

    @property
    def adam(self):
        """The optimiser."""
        rate = jnp.asarray(self.rate, self.dtype)
        return optax.adam(rate, *BETAS, eps=EPSILON)


class State(NamedTuple):
    """The network, and the B most recent examples as a ring."""

    network: network.Network
    adam: optax.OptState
    examples: jax.Array  # int [B] rows of the table of features
    rewards: jax.Array  # float [B]
    normals: jax.Array  # float [B] noise of each, where it stays the same
    key: jax.Array  # of all noise
    rounds: jax.Array  # int []
    total: jax.Array  # float [] of all rewards
    nonfinite: jax.Array  # int [] steps on outputs that were not finite


def begin(key, num_features, settings):
    """An untrained learner."""
    weights, noise = jax.random.split(key)
    untrained = network.glorot(weights, num_features, settings.hidden, settings.dtype)
    nothing = jnp.zeros(settings.batch, settings.dtype)
    return State(
        network=untrained,
        adam=settings.adam.init(untrained),
        examples=jnp.zeros(settings.batch, int),
        rewards=nothing,
        normals=nothing,
        key=noise,
        rounds=jnp.zeros((), int),
        total=jnp.zeros((), float),
        nonfinite=jnp.zeros((), int),
    )


def scores(state, features, shown, settings):
    """Logits `[K]` of the examples shown."""
    examples = selection.at(features, shown).astype(settings.dtype)
    return network.logits(state.network, examples, settings.activation)


def embedded(state, features, examples, settings):
    """What the network makes of some examples, and a constant 1: `[B, H + 1]`."""
    rows = selection.at(features, examples).astype(settings.dtype)
    hidden = network.hidden_units(state.network, rows, settings.activation)
    return jnp.concatenate([hidden, jnp.ones_like(hidden[:1])]).T


def train(state, features, example, reward, settings, perturb):
    """The learner after one more reward: one step of Adam on the most recent examples.

    Args:
      perturb: `(state, place) -> float [B]`, what is added to the rewards; `place` in the ring
        is that of the latest.
    """
    place = state.rounds % settings.batch
    state = state._replace(
        examples=state.examples.at[place].set(example),
        rewards=state.rewards.at[place].set(reward.astype(settings.dtype)),
    )
    normals = perturb(state, place)
    rounds = state.rounds + 1
    number = jnp.minimum(rounds, settings.batch)
    known = jnp.arange(settings.batch) < number
    gradient = jax.grad(network.loss)(
        state.network,
        selection.at(features, state.examples).astype(settings.dtype),
        state.rewards + normals,
        known.astype(settings.dtype) / number.astype(settings.dtype),
        settings.activation,
    )
    change, adam = settings.adam.update(gradient, state.adam)
    return state._replace(
        network=optax.apply_updates(state.network, change),
        adam=adam,
        normals=normals,
        rounds=rounds,
        total=state.total + reward,
        # The slope there is a mean over the outputs: NaN if one of them is.
        nonfinite=state.nonfinite + ~jnp.isfinite(gradient.offset),
    )


def train_if(here, state, features, example, reward, settings):
    """`train` without noise, where `here`: as a loop, which changes what is large in place."""

    def one(_, state):
        return train(state, features, example, reward, settings, no_noise)

    return lax.fori_loop(0, here.astype(int), one, state)


def represent(state, features, examples, rows, blocks, block, settings):
    """The table `rows [C, H + 1]` with the features of `examples [C]` in its first blocks.

    Args:
      blocks: how many of them; may be traced.
      block: rows of one.
    """

    def one(k, rows):
        some = lax.dynamic_slice_in_dim(examples, k * block, block)
        new = embedded(state, features, some, settings)
        return lax.dynamic_update_slice_in_dim(rows, new, k * block, 0)

    return lax.fori_loop(0, blocks, one, rows)


def fresh_noise(a, settings):
    """`perturb`: new noise for every example in every round."""

    def perturb(state, place):
        key = fold_in(state.key, state.rounds)
        return a * jax.random.normal(key, (settings.batch,), settings.dtype)

    return perturb


def fixed_noise(a, settings):
    """`perturb`: an example keeps the noise that it got when it came."""

    def perturb(state, place):
        normal = jax.random.normal(fold_in(state.key, state.rounds), (), settings.dtype)
        return state.normals.at[place].set(a * normal)

    return perturb


def no_noise(state, place):
    """`perturb`: rewards stay what they were."""
    return jnp.zeros_like(state.rewards)


def greedy(features, settings, perturb):
    """The `Algorithm` that chooses the example with the largest logit."""

    def init(key):
        return begin(key, features.shape[1], settings)

    def ask(key, state, shown):
        arm = jnp.argmax(scores(state, features, shown, settings))
        # The answer has no other use: nothing is to be told in the end.
        info = {"reward": state.total, "nonfinite": state.nonfinite}, selection.at(shown, arm)
        return Move(arm, None, done=jnp.array(False), answer=arm, info=info)

    def tell(state, move, total):
        _, example = move.info
        return train(state, features, example, total, settings, perturb)

    return Algorithm(init, ask, tell)
