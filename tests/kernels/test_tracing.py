"""Kernels that are traced once: the same operations, found again by shapes, types and constants."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels import selection
from jaxbandits.kernels.design.d_optimal import d_optimal
from jaxbandits.kernels.estimate import irls
from jaxbandits.kernels.tracing import LARGE, traced_once

ARMS = np.random.default_rng(4).normal(size=(6, 3))


def noted(function=lambda x, by=1.0: x * by):
    """A function that is traced once, and the list of its traces."""
    traces = []

    def kernel(*args, **keywords):
        traces.append(args)
        return function(*args, **keywords)

    return traced_once(kernel), traces


def test_programs_share_the_trace_of_equal_shapes_and_types():
    kernel, traces = noted()
    for _ in range(3):
        np.testing.assert_array_equal(jax.jit(lambda x: kernel(x) + kernel(2 * x))(ARMS), 3 * ARMS)
    assert len(traces) == 1
    jax.eval_shape(kernel, ARMS[0])
    jax.eval_shape(kernel, np.float32(ARMS))
    assert len(traces) == 3
    with jax.enable_x64(False):
        assert jax.eval_shape(kernel, ARMS).dtype == np.float32
    assert jax.eval_shape(kernel, ARMS).dtype == np.float64


@pytest.mark.parametrize(
    "constants",
    [
        (1, 1.0, True),
        (0.0, -0.0),
        (np.float32(3), 3.0),
        (ARMS[0], ARMS[1], np.float32(ARMS[0])),
        (noted, np.testing.assert_allclose),
        ("a", "b"),
    ],
)
def test_constants_are_told_apart(constants):
    kernel, traces = noted(lambda x, known: (x, jnp.asarray(len(traces))))
    for number in (*range(len(constants)), *range(len(constants))):
        assert jax.jit(partial(kernel, known=constants[number]))(ARMS)[1] == number + 1
    assert len(traces) == len(constants)


@pytest.mark.parametrize("known", ["a closure", partial(np.sum, axis=0), np.zeros(LARGE)])
def test_what_cannot_be_compared_is_traced_each_time(known):
    if isinstance(known, str):
        known = (lambda shift: lambda x: x + shift)(1.0)
    kernel, traces = noted(lambda x, known: x)
    for _ in range(2):
        jax.eval_shape(partial(kernel, known=known), ARMS)
    assert len(traces) == 2


def test_without_a_trace_the_kernel_is_called_as_it_is():
    kernel, traces = noted(lambda x: x if isinstance(x, np.ndarray) else None)
    assert kernel(ARMS) is ARMS
    assert len(traces) == 1


def test_it_can_be_mapped_and_differentiated():
    kernel, _ = noted(lambda x, by=2.0: (x**by).sum())
    np.testing.assert_allclose(jax.vmap(kernel)(ARMS), (ARMS**2).sum(1))
    np.testing.assert_allclose(jax.grad(kernel)(ARMS[0]), 2 * ARMS[0])


def logistic_fit(arms, fit=irls.fit):
    counts = jnp.full(len(arms), 4.0)
    return fit(arms, counts, counts / 2, family="logistic", ridge=0.1, init=jnp.zeros(3))


@pytest.mark.parametrize(
    ("kernel", "plain"),
    [
        (selection.first_basis, selection.first_basis.__wrapped__),
        (
            lambda arms: d_optimal(arms, arms[:, 0] < 9.0),
            lambda arms: d_optimal.__wrapped__(arms, arms[:, 0] < 9.0),
        ),
        (logistic_fit, partial(logistic_fit, fit=irls.fit.__wrapped__)),
    ],
    ids=["first_basis", "d_optimal", "irls"],
)
def test_the_operations_are_those_of_a_plain_trace(kernel, plain):
    for _ in range(2):
        assert str(jax.make_jaxpr(kernel)(ARMS)) == str(jax.make_jaxpr(plain)(ARMS))
