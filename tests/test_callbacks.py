"""Functions that a simulation calls by `jax.pure_callback`: bits of numbers, errors of one line."""

import contextlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.system import callbacks
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
    reason = first.meta["engine_reason"]
    lacks = r"native lacks jax\.pure_callback \(pure_callback\), test_callbacks\.py:\d+"
    assert re.fullmatch(lacks, reason)
    assert f"xla: {reason}" in repr(first)
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
    message = "^broken, called by jax.pure_callback, raised ConnectionError: the server$"
    with pytest.raises(ValueError, match=message) as found:
        jb.instances.simulated(np.eye(2), Broken(np.zeros(2)), noise_var=1.0)
    assert isinstance(found.value.__cause__, ConnectionError)


def answered(function, shapes, value=1.0, lanes=None, method="sequential"):
    """What a program is given that calls a function, in so many lanes."""
    with pinned():
        call = partial(jax.pure_callback, function, shapes, vmap_method=method)
        trace = Trace(call, value)
        x = value if lanes is None else np.full(lanes, value)
        run = jax.jit(trace if lanes is None else jax.vmap(trace))
        with errors_named():
            return jax.block_until_ready(run(x))


SCALAR = jax.ShapeDtypeStruct((), float)
PAIR = jax.ShapeDtypeStruct((2,), float)
BYTE = jax.ShapeDtypeStruct((), np.uint8)
WRONG = {
    "a fraction": (lambda x: 1.7, jax.ShapeDtypeStruct((), int), "1.7, and int64[] is declared: a"),
    "a share": (lambda x: 0.3, jax.ShapeDtypeStruct((), bool), "0.3, and bool[] is declared: a"),
    "an imaginary part": (lambda x: 2j, SCALAR, "2j, and float64[] is declared: a part of it"),
    "a number that wraps": (lambda x: 300, BYTE, "300, and uint8[] is declared: a part of it"),
    "a shape": (lambda x: np.ones(3), SCALAR, "float64[3], and float64[] is declared"),
    "one for two": (lambda x: 1.0, PAIR, "float64[], and float64[2] is declared"),
    "nothing": (lambda x: None, SCALAR, "None, and float64[] is declared"),
    "a list": (lambda x: [1.0, 2.0], PAIR, "2 results, and float64[2] is declared: a list"),
    "one result": (lambda x: x, (SCALAR, PAIR), "1 results, and float64[], float64[2] is declared"),
    "text": (lambda x: "one", SCALAR, "'one', and float64[] is declared"),
    "objects": (lambda x: np.array(None), SCALAR, "array(None, dtype=object), and float64[] is d"),
    "a date": (lambda x: np.datetime64("2020"), SCALAR, "np.datetime64('2020'), and float64[] is"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_as_declared_is_told_in_one_line(case):
    function, shapes, message = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(f"pure_callback, returned {message}")) as found:
        answered(function, shapes)
    assert str(found.value).startswith("<lambda>, called by")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_results_have_the_axes_of_lanes_too(method):
    found = answered(lambda x: np.stack([x, 2 * x], -1), PAIR, lanes=3, method=method)
    np.testing.assert_array_equal(found, [[1.0, 2.0]] * 3)
    if method != "sequential":
        with pytest.raises(ValueError, match=r"returned float64\[3\], and float64\[3,2\] is decl"):
            answered(lambda x: x, PAIR, lanes=3, method=method)


def test_two_threads_are_told_their_own_errors():
    """Both programs have failed before either of the errors is named."""
    both = threading.Barrier(2, timeout=60)

    def fails(name):
        """The text of the error of a program whose callback raises this name."""

        def failing(x):
            raise ConnectionError(name)

        @contextlib.contextmanager
        def at_once():
            try:
                yield
            finally:
                both.wait()

        with pinned():
            program = jax.jit(Trace(lambda x: called(failing, SCALAR, x), 1.0))
            with pytest.raises(ValueError, match="raised") as found, errors_named(), at_once():
                jax.block_until_ready(program(1.0))
        return str(found.value)

    names = ["one", "two"]
    with ThreadPoolExecutor() as threads:
        for name, text in zip(names, threads.map(fails, names), strict=True):
            assert text.endswith(f"raised ConnectionError: {name}")


def test_errors_that_nobody_tells_are_forgotten():
    for number in range(2 * callbacks.MOST_RAISED):
        callbacks.CallbackError(str(number))
    assert len(callbacks._raised) == callbacks.MOST_RAISED


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
