"""Simulators that read beyond a table, or that are changed after their means were taken."""

import dataclasses
import pickle
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.instances.fields import entered
from jaxbandits.instances.simulator_code import reward_trace
from jaxbandits.system.indices import beyond_the_end

SHORT, FULL = np.arange(3.0), np.arange(5.0)
SCALE = 1.0


class Scaled(NamedTuple):
    means: Any
    factor: float = 1.0

    def reward(self, key, arm):
        return SCALE * self.factor * self.means[arm] + 0.01 * jax.random.normal(key)


def read(rule, table):
    class Simulator(NamedTuple):
        table: Any

        def reward(self, key, arm):
            return rule(self.table, key, arm)

    with jax.enable_x64(True):
        return beyond_the_end(reward_trace(Simulator(table)).jaxpr, 5, [table])


BEYOND = {
    "an index": lambda x, key, arm: x[arm],
    "take": lambda x, key, arm: jnp.take(x, arm),
    "get": lambda x, key, arm: x.at[arm].get(),
    "a slice": lambda x, key, arm: jax.lax.dynamic_slice(x, (arm,), (1,))[0],
    "two dimensions": lambda x, key, arm: jnp.stack([x, x], 1)[
        arm, jax.random.randint(key, (), 0, 2)
    ],
    "from the end": lambda x, key, arm: x[-arm - 1],
    "a loop": lambda x, key, arm: jax.lax.fori_loop(0, 3, lambda i, s: s + x[arm], 0.0),
    "jit": lambda x, key, arm: jax.jit(lambda arm: x[arm])(arm),
    "cond": lambda x, key, arm: jax.lax.cond(arm < 4, lambda: x[arm], lambda: 0.0),
    "a table of indices": lambda x, key, arm: x[jnp.arange(5)[arm]],
    "at times": lambda x, key, arm: jnp.where(jax.random.uniform(key) < 0.5, x[arm], 0.0),
}
WITHIN = {
    "half": lambda x, key, arm: x[arm // 2],
    "remainder": lambda x, key, arm: x[arm % 3],
    "clip": lambda x, key, arm: x[jnp.clip(arm, 0, 2)],
    "get with a mode": lambda x, key, arm: x.at[arm].get(mode="clip"),
    "take with a mode": lambda x, key, arm: jnp.take(x, arm, mode="clip"),
    "filled": lambda x, key, arm: x.at[arm].get(mode="fill", fill_value=0.0),
    "where": lambda x, key, arm: jnp.where(arm < 3, x[arm], 0.0),
    "cond": lambda x, key, arm: jax.lax.cond(arm < 3, lambda: x[arm], lambda: 0.0),
    "times zero": lambda x, key, arm: x[arm] * (arm < 3),
    "a table of indices": lambda x, key, arm: x[jnp.array([0, 1, 2, 0, 1])[arm]],
    "from the end": lambda x, key, arm: x[-(arm % 3) - 1],
    "a random index": lambda x, key, arm: x[jax.random.randint(key, (), 0, 3)],
    "a choice": lambda x, key, arm: jax.random.choice(key, x) + arm,
    "an update": lambda x, key, arm: jnp.zeros(5).at[arm].set(1.0).sum(),
    "a loop": lambda x, key, arm: jax.lax.fori_loop(0, 3, lambda i, s: s + x[i], 0.0),
    "unravelled": lambda x, key, arm: jnp.ones((3, 2))[jnp.unravel_index(arm, (3, 2))],
    "a search": lambda x, key, arm: x[jnp.searchsorted(jnp.array([1, 3]), arm)],
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_table_with_fewer_entries_than_arms_is_noticed(name):
    found = read(BEYOND[name], SHORT)
    assert found is not None
    assert found.arms.any()
    assert not found.arms[:2].any() or name == "from the end"
    assert read(BEYOND[name], FULL) is None


@pytest.mark.parametrize("name", WITHIN)
def test_an_index_within_a_table_or_with_a_stated_mode_is_none(name):
    assert read(WITHIN[name], SHORT) is None


def test_a_short_table_is_refused_where_an_instance_is_built():
    with pytest.raises(ValueError, match=r"reward of arm 3 \(and 1 more\) reads entry 3 of 3") as e:
        jb.instances.simulated(np.eye(5), Scaled(SHORT), noise_var=1.0)
    assert "\n" not in str(e.value)


def test_other_arrays_need_other_means():
    make = jb.instances.simulated
    instance, other = (
        make(np.eye(3), Scaled(table), noise_var=1.0, draws=50) for table in (SHORT, SHORT + 1.0)
    )
    assert jax.tree.structure(instance) == jax.tree.structure(other)  # they share programs
    changed = dataclasses.replace(instance, simulator=other.simulator)
    for each in (changed, pickle.loads(pickle.dumps(changed)), jb.instances.stressed(changed)):
        with pytest.raises(ValueError, match=r"^simulator: its arrays are not those .* too$"):
            jb.simulate(each, jb.uniform, replications=1, horizon=2)
    entered(dataclasses.replace(changed, means=other.means, values=other.values))
    entered(dataclasses.replace(instance, simulator=Scaled(SHORT.copy())))


def test_a_simulator_that_was_changed_is_refused(monkeypatch):
    instance = jb.instances.simulated(np.eye(3), Scaled(SHORT), noise_var=1.0, draws=50)
    stressed = jb.instances.stressed(instance, variance_ratio=2.0)
    single = jax.tree.map(lambda x: x, instance)
    for each in (instance, stressed, single):
        entered(each)  # as it was
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    for each in (instance, stressed, single):
        with pytest.raises(
            ValueError, match=r"^simulator: its reward, .* build the instance again"
        ):
            entered(each)
    with pytest.raises(ValueError, match="build the instance again"):
        jb.simulate(instance, jb.uniform, replications=1, horizon=2)
    entered(jb.instances.simulated(np.eye(3), Scaled(SHORT), noise_var=1.0, draws=50))
