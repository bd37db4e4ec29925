"""A network with one hidden layer and one output, trained on targets of any size.

The loss of an example with logit l and target y is `softplus(l) - y l`, the negative
log-likelihood of logistic regression. Its derivative `sigmoid(l) - y` makes sense for targets
outside [0, 1] too, where a cross-entropy would not.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}


class Network(NamedTuple):
    """Weights; f features, H hidden units."""

    weights: Float[Array, "H f"]
    biases: Float[Array, " H"]
    head: Float[Array, " H"]
    offset: Float[Array, ""]


def glorot(key: Key[Array, ""], num_features: int, hidden: int, dtype: DTypeLike) -> Network:
    """Uniform weights of variance `2 / (fan in + fan out)` (Glorot, Bengio, 2010); no biases."""
    first, second = jax.random.split(key)

    def uniform(key, shape, fans):
        limit = (6.0 / fans) ** 0.5
        return jax.random.uniform(key, shape, dtype, -limit, limit)

    return Network(
        weights=uniform(first, (hidden, num_features), num_features + hidden),
        biases=jnp.zeros(hidden, dtype),
        head=uniform(second, (hidden,), hidden + 1),
        offset=jnp.zeros((), dtype),
    )


def hidden_units(
    network: Network, examples: Float[Array, "B f"], activation: str
) -> Float[Array, "H B"]:
    """The activations, transposed so that products with the weights run along their long rows.

    On a CPU a step of training is then 1.5 times as fast as with activations `[B, H]`.
    """
    inner = network.weights @ examples.T + network.biases[:, None]
    return ACTIVATIONS[activation](inner)


def logits(network: Network, examples: Float[Array, "B f"], activation: str) -> Float[Array, " B"]:
    """The outputs before the sigmoid, which keeps their order."""
    return network.head @ hidden_units(network, examples, activation) + network.offset


def loss(
    network: Network,
    examples: Float[Array, "B f"],
    targets: Float[Array, " B"],
    weights: Float[Array, " B"],
    activation: str,
) -> Float[Array, ""]:
    """The weighted sum of the losses of examples."""
    outputs = logits(network, examples, activation)
    return (weights * (jax.nn.softplus(outputs) - targets * outputs)).sum()
