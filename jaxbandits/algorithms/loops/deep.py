"""Learners with a network that takes one step a round on the most recent examples."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
from jax import lax
from jax.random import fold_in
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.estimate import network
from ...parameters import choice
from ...types import Key, Scalar

if TYPE_CHECKING:
    import optax

PRECISIONS: dict[str, DTypeLike] = {"single": jnp.float32, "double": jnp.float64}
BETAS: tuple[float, float] = (0.9, 0.999)  # of Adam
EPSILON: float = 1e-7  # of Adam
Activation: TypeAlias = Annotated[str, choice(*network.ACTIVATIONS)]
Precision: TypeAlias = Annotated[str, choice(*PRECISIONS)]
Features: TypeAlias = Float[Array, "N f"]  # of all examples


class Settings(NamedTuple):
    """What a learner is made of; all but the rate is static."""

    hidden: int
    activation: str
    rate: Scalar
    batch: int
    precision: str

    @property
    def dtype(self) -> DTypeLike:
        """Of weights and of all that is computed with them."""
        return PRECISIONS[self.precision]

    @property
    def adam(self) -> "optax.GradientTransformation":
        """The optimiser."""
        import optax  # only here, as importing it takes half as long as the package

        rate = jnp.asarray(self.rate, self.dtype)
        return optax.adam(rate, *BETAS, eps=EPSILON)


class State(NamedTuple):
    """The network, and the B most recent examples in a ring buffer."""

    network: network.Network
    adam: "optax.OptState"
    examples: Int[Array, " B"]  # rows of the table of features
    rewards: Float[Array, " B"]
    normals: Float[Array, " B"]  # noise of each, where it stays the same
    key: Key  # of all noise
    rounds: Int[Array, ""]
    total: Float[Array, ""]  # of all rewards
    nonfinite: Int[Array, ""]  # steps on outputs that were not finite


# (state, slot) -> float [B]: what is added to the rewards; the latest one is in that slot
Perturb: TypeAlias = Callable[[State, Int[Array, ""]], Float[Array, " B"]]


def begin(key: Key, num_features: int, settings: Settings) -> State:
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


def scores(
    state: State, features: Features, shown: Int[Array, " S"], settings: Settings
) -> Float[Array, " S"]:
    """Logits of the examples shown."""
    examples = selection.at(features, shown).astype(settings.dtype)
    return network.logits(state.network, examples, settings.activation)


def embedded(
    state: State, features: Features, examples: Int[Array, " S"], settings: Settings
) -> Float[Array, "S H+1"]:
    """The activations of the hidden layer for some examples, and a constant 1."""
    rows = selection.at(features, examples).astype(settings.dtype)
    hidden = network.hidden_units(state.network, rows, settings.activation)
    return jnp.concatenate([hidden, jnp.ones_like(hidden[:1])]).T


def train(
    state: State,
    features: Features,
    example: Int[Array, ""],
    reward: Float[Array, ""],
    settings: Settings,
    perturb: Perturb,
) -> State:
    """The learner after one more reward: one step of Adam on the most recent examples.

    Args:
      state: the learner before.
      features: `[N, f]` of all examples.
      example: the row of the one that the reward is of.
      reward: that reward.
      settings: of the learner.
      perturb: `(state, slot) -> float [B]`, what is added to the rewards; `slot` is the position of
        the latest one in the ring buffer.
    """
    import optax

    slot = state.rounds % settings.batch
    state = state._replace(
        examples=state.examples.at[slot].set(example),
        rewards=state.rewards.at[slot].set(reward.astype(settings.dtype)),
    )
    normals = perturb(state, slot)
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
        network=cast(network.Network, optax.apply_updates(state.network, change)),
        adam=adam,
        normals=normals,
        rounds=rounds,
        total=state.total + reward,
        # The derivative by the offset is a mean over the outputs: NaN if one of them is.
        nonfinite=state.nonfinite + ~jnp.isfinite(gradient.offset),
    )


def train_if(
    condition: Bool[Array, ""],
    state: State,
    features: Features,
    example: Int[Array, ""],
    reward: Float[Array, ""],
    settings: Settings,
) -> State:
    """The learner after `train` without noise where the condition holds, else as it is.

    It is a loop of one iteration or none, because a loop updates large arrays in place.
    """

    def one(_, state):
        return train(state, features, example, reward, settings, no_noise)

    return lax.fori_loop(0, condition.astype(int), one, state)


def represent(
    state: State,
    features: Features,
    examples: Int[Array, " C"],
    rows: Float[Array, "C H+1"],
    blocks: Int[Array, ""],
    block: int,
    settings: Settings,
) -> Float[Array, "C H+1"]:
    """The table `rows` with its first blocks filled: row i is `embedded` of `examples[i]`.

    Args:
      state: the learner.
      features: `[N, f]` of all examples.
      examples: rows of that table.
      rows: the table so far.
      blocks: how many blocks to fill; may be traced.
      block: rows of a block.
      settings: of the learner.
    """

    def one(k, rows):
        # A table of one block would be the same in each iteration, and the compiler would compute
        # it before the loop, in each round, however rarely the loop has an iteration.
        k, every = lax.optimization_barrier((k, examples))
        some = lax.dynamic_slice_in_dim(every, k * block, block)
        new = embedded(state, features, some, settings)
        return lax.dynamic_update_slice_in_dim(rows, new, k * block, 0)

    return lax.fori_loop(0, blocks, one, rows)


def fresh_noise(a: Scalar, settings: Settings) -> Perturb:
    """New noise of standard deviation `a` for every example in every round."""

    def perturb(state, slot):
        key = fold_in(state.key, state.rounds)
        return a * jax.random.normal(key, (settings.batch,), settings.dtype)

    return perturb


def fixed_noise(a: Scalar, settings: Settings) -> Perturb:
    """Noise of standard deviation `a`, drawn once for each example and then kept."""

    def perturb(state, slot):
        normal = jax.random.normal(fold_in(state.key, state.rounds), (), settings.dtype)
        return state.normals.at[slot].set(a * normal)

    return perturb


def no_noise(state: State, slot: Int[Array, ""]) -> Float[Array, " B"]:
    """A `Perturb` that adds nothing."""
    return jnp.zeros_like(state.rewards)


def greedy(features: Features, settings: Settings, perturb: Perturb) -> Algorithm:
    """The `Algorithm` that chooses the example with the largest logit."""

    def init(key: Key) -> State:
        return begin(key, features.shape[1], settings)

    def ask(key: Key, state: State, shown: Int[Array, " S"]) -> Move:
        arm = jnp.argmax(scores(state, features, shown, settings))
        info = {"reward": state.total, "nonfinite": state.nonfinite}, selection.at(shown, arm)
        # The answer means nothing: regret alone is measured.
        return Move(arm, None, done=jnp.array(False), answer=arm, info=info)

    def tell(state: State, move: Move, total: Float[Array, ""]) -> State:
        _, example = move.info
        return train(state, features, example, total, settings, perturb)

    return Algorithm(init, ask, tell)
