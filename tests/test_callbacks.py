"""Functions that a simulation calls by `jax.pure_callback`: bits of numbers, errors of one line."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.system.callbacks import errors_named, in_words
from jaxbandits.system.jax_options import pinned
from jaxbandits.system.traces import Trace

THIRD = 1.0 / 3.0  # has no end in 32 bits, nor has 2^40 + 1
GREAT = 2**40 + 1


def called(function, result, *args):
    return jax.pure_callback(function, result, *args, vmap_method="sequential")


def sevenths(x, number, flag):
    """Of each type; the sum of the bits is checked by who calls it."""
    assert (x.dtype, number.dtype, flag.dtype) == (np.float64, np.int64, np.bool_)
    return x / 7, number + 1, ~flag, np.float32(x)


SHAPES = tuple(jax.ShapeDtypeStruct((), kind) for kind in (np.float64, np.int64, bool, np.float32))


def loops(x, number):
    """A callback in a branch of a loop under `jit`."""

    def body(i, carry):
        use = lambda: called(lambda y: y / 7, jax.ShapeDtypeStruct((), np.float64), carry)  # noqa: E731
        return jax.lax.cond(i >= 0, use, lambda: carry)

    return jax.jit(lambda x: jax.lax.fori_loop(0, 2, body, x))(x) + number


@pytest.mark.parametrize("count", [None, 3])
def test_arguments_and_results_keep_all_bits(count):
    with pinned():
        x, number = jnp.asarray(THIRD), jnp.asarray(GREAT)
        if count is not None:
            x, number = x + jnp.arange(float(count)), number + jnp.arange(count)
        every = partial(called, sevenths, SHAPES)
        one = every if count is None else jax.vmap(every)
        trace = Trace(one, x, number, number > 0)
        found = jax.jit(trace)(x, number, number > 0)
        wanted = np.asarray(x) / 7, np.asarray(number) + 1, False, np.asarray(x, np.float32)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_callbacks_inside_of_loops_and_branches_do_so_too():
    with pinned():
        found = jax.jit(Trace(loops, THIRD, GREAT))(THIRD, GREAT)
        np.testing.assert_array_equal(found, THIRD / 7 / 7 + GREAT)


def test_operations_without_callbacks_stay_as_they_are():
    closed = jax.make_jaxpr(lambda x: x + 1)(1.0)
    assert in_words(closed) is closed


class Box(NamedTuple):
    """Rewards of a function of NumPy; `calls` are their noise, in the order of the calls."""

    gaps: Any

    def reward(self, key, arm):
        shape = jax.ShapeDtypeStruct((), float)
        return called(draw, shape, jax.random.key_data(key), arm, self.gaps)


def draw(words, arm, gaps):
    return np.random.default_rng(words).normal() - gaps[arm]


def test_rewards_of_numpy_are_played_and_do_not_depend_on_the_lanes():
    """Float64 once ended in `Expected: float64, Actual: float32`."""
    box = Box(np.array([0.0, THIRD]))
    instance = jb.instances.simulated(np.eye(2), box, means=[0.0, -THIRD], noise_var=1.0, draws=50)
    halving = partial(jb.sequential_halving, budget=8)
    first = jb.simulate(instance, halving, replications=20)
    assert first.meta["engine"] == "xla"
    again = jb.simulate(instance, halving, replications=20, batch=8)
    np.testing.assert_array_equal(first.answer, again.answer)
    assert 0 < first.answer.mean() < 1
    with pytest.raises(ValueError, match="do not know the operation 'pure_callback'"):
        jb.simulate(instance, halving, replications=20, engine="native")


class Broken(Box):
    def reward(self, key, arm):
        return called(broken, jax.ShapeDtypeStruct((), float), arm)


def broken(arm):
    raise ConnectionError("the server\nis gone")


def test_an_error_of_the_function_is_one_line():
    message = "a function called by jax.pure_callback raised ConnectionError: the server$"
    with pytest.raises(ValueError, match=message) as found:
        jb.instances.simulated(np.eye(2), Broken(np.zeros(2)), noise_var=1.0)
    assert isinstance(found.value.__cause__, ConnectionError)


@pytest.mark.parametrize(
    ("kind", "result", "got"), [(int, 1.7, "float64"), (bool, 0.3, "float64"), (float, 2j, "comp")]
)
def test_a_result_that_would_lose_a_part_is_an_error(kind, result, got):
    with pinned():
        shape = jax.ShapeDtypeStruct((), kind)
        trace = Trace(lambda x: called(lambda x: result, shape, x), 1.0)
        message = f"TypeError: a result must be .*, got {got}"
        with pytest.raises(ValueError, match=message), errors_named():
            jax.block_until_ready(jax.jit(trace)(1.0))


def asks_a_function(arms):
    inner = jb.uniform(arms)

    def ask(key, state):
        best = called(lambda x: int(x > 1), jax.ShapeDtypeStruct((), int), state_of(state))
        return inner.ask(key, state)._replace(arm=best)

    return inner._replace(ask=ask)


def state_of(state):
    return sum(leaf.sum() for leaf in jax.tree.leaves(state)).astype(float)


def test_a_live_run_may_call_a_function_too():
    live = jb.Live(asks_a_function, np.eye(2))
    live.tell(1.0)
    live.tell(1.0)
    assert live.pulls == 2
    assert live.ask() in (0, 1)
