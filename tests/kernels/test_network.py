"""A network and its loss against plain NumPy, also where exponentials overflow."""

import jax
import numpy as np
import pytest
from compiled import compiled

from jaxbandits.kernels.estimate import network

loss_and_slopes = compiled(jax.value_and_grad(network.loss), "activation")
loss, logits_of = compiled(network.loss, "activation"), compiled(network.logits, "activation")
hidden_units = compiled(network.hidden_units, "activation")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def random_problem(scale, dtype):
    rng = np.random.default_rng(2)
    weights = (rng.normal(size=shape) for shape in ((4, 3), 4, 4, ()))
    net = network.Network(*(np.asarray(scale * w, dtype) for w in weights))
    examples = np.asarray(rng.normal(size=(7, 3)), dtype)
    targets = np.asarray(rng.normal(0.5, 3.0, size=7), dtype)  # most lie outside [0, 1]
    return net, examples, targets, np.full(7, 1 / 7, dtype)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1.0, "float64"), (1.0, "float32"), (60.0, "float64"), (60.0, "float32")]
)
def test_the_loss_and_its_gradient_equal_numpy(activation, scale, dtype):
    net, examples, targets, weights = random_problem(scale, dtype)
    value, slopes = loss_and_slopes(net, examples, targets, weights, activation=activation)
    assert value.dtype == dtype
    matrix, biases, head, offset = (np.asarray(w, float) for w in net)
    rows, aims = np.asarray(examples, float), np.asarray(targets, float)
    inner = rows @ matrix.T + biases
    hidden = np.maximum(inner, 0) if activation == "relu" else np.tanh(inner)
    logits = hidden @ head + offset
    tolerance = {"rtol": 1e-9} if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-4 * scale}
    np.testing.assert_allclose(logits_of(net, examples, activation=activation), logits, **tolerance)
    units = hidden_units(net, examples, activation=activation)
    np.testing.assert_allclose(units.T, hidden, **tolerance)
    losses = np.logaddexp(0, logits) - aims * logits
    np.testing.assert_allclose(value, losses.mean(), **tolerance)
    with np.errstate(over="ignore"):
        error = (1 / (1 + np.exp(-logits)) - aims) / 7
    np.testing.assert_allclose(slopes.offset, error.sum(), **tolerance)
    np.testing.assert_allclose(slopes.head, hidden.T @ error, **tolerance)
    back = np.outer(error, head) * ((inner > 0) if activation == "relu" else 1 - hidden**2)
    np.testing.assert_allclose(slopes.biases, back.sum(0), **tolerance)
    np.testing.assert_allclose(slopes.weights, back.T @ rows, **tolerance)


def test_examples_of_weight_zero_change_nothing():
    net, examples, targets, _ = random_problem(1.0, "float64")
    weights = np.array([0.5, 0.5, 0, 0, 0, 0, 0])
    some = loss(net, examples, targets, weights, activation="relu")
    fewer = loss(net, examples[:2], targets[:2], weights[:2], activation="relu")
    np.testing.assert_allclose(some, fewer, rtol=1e-12)
