"""Rewards from a simulator: means, batches, names of cells, and refusals."""

import dataclasses
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from run_settings import assert_same_runs
from test_instances import check

import jaxbandits as jb
from jaxbandits.instances.environments.finite import finite
from jaxbandits.system.identity import describe

make = jb.instances
KEY = jax.random.key(0)


class Dial(NamedTuple):
    """A simulator whose reward identifies the arm and the key."""

    scale: Any

    def reward(self, key, arm):
        return self.scale[arm] + jax.random.uniform(key)


DIAL = make.simulated(np.eye(3), Dial(np.array([10.0, 20.0, 30.0])), noise_var=1.0, draws=500)


def test_means_are_averages_of_the_draws():
    instance = check(DIAL)
    np.testing.assert_allclose(instance.means - [10, 20, 30], 0.5, atol=5 * 0.29 / np.sqrt(500))
    again = make.simulated(np.eye(3), Dial(np.array([10.0, 20.0, 30.0])), noise_var=1.0, draws=500)
    np.testing.assert_array_equal(instance.means, again.means)
    other = make.simulated(np.eye(3), DIAL.simulator, noise_var=1.0, draws=500, seed=1)
    assert (instance.means != other.means).all()
    assert len(set((instance.means % 1).round(12))) == 3  # each arm has its own draws
    for options, message in (({"draws": 0}, "draws must be .*got 0"), ({"seed": -1}, "seed .*-1")):
        with pytest.raises(ValueError, match=message):
            make.simulated(np.eye(3), DIAL.simulator, noise_var=1.0, **options)
    with pytest.raises(ValueError, match=r"noise_var .*got 0"):
        make.simulated(np.eye(3), DIAL.simulator, noise_var=0.0)


@pytest.mark.parametrize("counts", [[3, 0, 40], [0, 0, 0], [0, 1, 0]], ids=str)
def test_a_batch_is_the_sum_of_its_draws(counts):
    with jax.enable_x64(True):
        env = finite(DIAL)
        arms = jnp.array([2, 0, 1])
        move = jb.Move(arms, jnp.asarray(counts), jnp.array(False), 0)
        total = jax.jit(lambda key: env.reward(env.noise(key, (3,), True), move))(KEY)
        expected, number = np.zeros(3), 0
        for entry, count in enumerate(counts):
            for _ in range(count):
                draw = Dial(DIAL.simulator.scale).reward(
                    jax.random.fold_in(KEY, number), arms[entry]
                )
                expected[entry] += draw
                number += 1
    np.testing.assert_allclose(total, expected, rtol=1e-12)


def test_each_single_draw_has_its_own_key():
    with jax.enable_x64(True):
        env = finite(DIAL)
        noise = env.noise(KEY, (4,), False)
        keys = jax.random.split(KEY, 4)
        one = jb.Move(jnp.array(1), None, jnp.array(False), 0)
        several = jb.Move(jnp.array([1, 0, 2, 1]), None, jnp.array(False), 0)
        expected = jnp.array([20.0, 10.0, 30.0, 20.0]) + jax.vmap(jax.random.uniform)(keys)
        np.testing.assert_allclose(env.reward(noise, several), expected)
        np.testing.assert_allclose(env.reward(noise[3], one), expected[3])


SMALL = partial(make.boolean_network, num_arms=4, draws=100, m=0)


LEARNERS = {
    "one arm a round": partial(jb.m_lingape, m=2, threshold="heuristic", delta=0.1),
    "phases": partial(jb.sequential_halving, budget=60),
}


NATIVE = {"engine": "native"}


@pytest.mark.parametrize(
    ("simulator", "learner", "others"),
    [
        ("dial", "one arm a round", [NATIVE, {"batch": 8}]),
        pytest.param("dial", "phases", [NATIVE], marks=pytest.mark.slow),
        pytest.param("network", "phases", [NATIVE, {"batch": 8}], marks=pytest.mark.slow),
        pytest.param("network", "one arm a round", [NATIVE, {"batch": 8}], marks=pytest.mark.slow),
    ],
)
def test_replications_do_not_depend_on_engine_or_batch(simulator, learner, others):
    dial, means = Dial(np.array([0.0, 0.05, 0.1, 0.1])), [0.5, 0.55, 0.6, 0.6]
    instance = (
        SMALL(jax.random.key(1), draws=8000)
        if simulator == "network"
        else make.simulated(np.eye(4), dial, means=means, noise_var=0.25)
    )
    play = partial(jb.simulate, instance, LEARNERS[learner], seed=3, max_pulls=120, replications=24)
    runs = play()
    for other in others:
        assert_same_runs(runs, play(**other))
    assert len({tuple(row) for row in runs.arm_pulls}) > 5


@pytest.mark.slow
def test_redrawn_networks():
    draw = partial(SMALL, draws=20)
    runs = jb.simulate(draw, partial(jb.sequential_halving, budget=16), replications=8, batch=8)
    assert (runs.pulls == 16).all()
    assert runs.meta["unsettled"] == runs.facts["unsettled"].mean() > 0.5


def test_instances_with_different_simulators_have_different_descriptions():
    instance = SMALL(jax.random.key(1))
    text = str(describe(instance))
    assert text == str(describe(SMALL(jax.random.key(1))))
    screen = instance.simulator
    changed = screen.network._replace(rules=(screen.network.rules + 1) % 18)
    for other in (
        dataclasses.replace(screen, network=changed),
        dataclasses.replace(screen, dynamics="synchronous"),
    ):
        assert text != str(describe(dataclasses.replace(instance, simulator=other)))
    assert "simulator" not in describe(make.canonical(3, gap=1.0))


class Pair(NamedTuple):
    """A simulator whose reward has the wrong shape, or is not a number."""

    scale: np.ndarray
    factor: np.ndarray

    def reward(self, key, arm):
        return self.scale[arm] * self.factor


@pytest.mark.parametrize(
    ("simulator", "message"),
    [
        (Pair(np.ones(3), np.ones(2)), r"must be a single number, got shape \(2,\)"),
        (Pair(np.ones(3), np.array(np.nan)), "its rewards must be finite"),
        (lambda key, arm: 1.0, "must be a pytree of arrays, got function"),
        ({"scale": np.ones(3)}, "must have a method"),
    ],
)
def test_an_invalid_simulator_is_refused(simulator, message):
    with pytest.raises(ValueError, match=f"simulator:? .*{message}"):
        make.simulated(np.eye(3), simulator, noise_var=1.0, draws=4)


TABLE, LIST, DICT = np.arange(3.0), [1.0, 2.0, 3.0], {0: 1.0}
UNTRACEABLE = {
    "a number of Python": (lambda x: float(x), "use jax.numpy in place of float, int and math"),
    "a whole number": (lambda x: int(x), "use jax.numpy in place of float, int and math"),
    "a function of Python": (lambda x: math.sin(x), "use jax.numpy in place of float, int and ma"),
    "a branch": (lambda x: 1.0 if x == 0 else 2.0, "write jnp.where in place of `if`"),
    "the less of two": (lambda x: min(x, 1), "write jnp.where in place of `if`, `and` and min"),
    "a table of NumPy": (lambda x: TABLE[x], r"use jax.numpy in place of NumPy, jnp.asarray"),
    "a list": (lambda x: LIST[x], r"write jnp.asarray\(table\)\[i\] in place of a list"),
    "a range": (lambda x: sum(range(x)), "jax.lax.fori_loop in place of range"),
    "a dict": (lambda x: DICT[x], "use arrays of jax.numpy"),
    "a text": (lambda x: float(f"{x:.2f}"), "use arrays of jax.numpy"),
    "a mask": (lambda x: jnp.arange(3)[jnp.arange(3) > x].sum(), r"write jnp.where\(mask, x, 0\)"),
    "a slice": (lambda x: jnp.arange(3)[:x].sum(), r"write jnp.where\(jnp.arange\(n\) < k, x, 0\)"),
    "a shape": (lambda x: jnp.zeros(x).sum(), "use arrays of jax.numpy, and their shapes as sizes"),
}


@pytest.mark.parametrize("case", UNTRACEABLE)
def test_a_reward_that_cannot_be_traced_is_named_with_its_line(case):
    function, instead = UNTRACEABLE[case]

    class Odd(NamedTuple):
        unused: Any

        def reward(self, key, arm):
            return function(arm)

    with pytest.raises(ValueError, match=f"; .*{instead}") as error:
        jb.instances.simulated(np.eye(3), Odd(np.zeros(1)), noise_var=1.0)
    text = str(error.value)
    number = function.__code__.co_firstlineno
    assert text.startswith("<lambda> cannot be compiled: `")
    assert f"(test_simulated.py, line {number}) needs a value that is known only" in text
    assert "\n" not in text
    assert error.value.__cause__ is not None


def drawn_by_a_branch(key):
    mean = jax.random.uniform(key)
    return jb.instances.linear(np.eye(2), [1.0, 0.0] if mean > 0.5 else [0.0, 1.0])


def made_by_a_branch(arms):
    return jb.uniform(arms if arms[0, 0] > 0 else -arms)


@pytest.mark.parametrize(
    ("instance", "algorithm"),
    [(drawn_by_a_branch, jb.uniform), (jb.instances.soare(2), made_by_a_branch)],
)
def test_a_drawn_instance_and_a_constructor_are_named_so_too(instance, algorithm):
    message = (
        r"^\w+_by_a_branch cannot be compiled: `.* if .*` \(test_simulated.py, line \d+\) needs"
    )
    with pytest.raises(ValueError, match=message):
        jb.simulate(instance, algorithm, horizon=3, replications=1)
