"""A function that reads something else than before is compiled anew; otherwise nothing is."""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from params import params
from programs import simulate

import jaxbandits as jb
from jaxbandits.system import values_read as room
from jaxbandits.system.values_read import values_read

SOARE = jb.instances.soare(3, angle=0.5, scale=2.0)
BUDGET = {"halving": 30}  # what the functions below read, changed by the tests


def budget():
    return BUDGET["halving"]


def by_global(arms):
    return jb.sequential_halving(arms, budget=budget())


class Holder:
    """A constructor as a method, which also counts its calls."""

    calls = 0

    def __init__(self, budget):
        self.budget = budget

    def build(self, arms):
        self.calls += 1
        return jb.sequential_halving(arms, budget=self.budget)


@dataclasses.dataclass
class Called:
    budget: int

    def __call__(self, arms):
        return jb.sequential_halving(arms, budget=self.budget)


class Tuple(NamedTuple):
    unused: float

    def __call__(self, arms):
        return jb.sequential_halving(arms, budget=budget())


def within_a_function():
    number = 30

    def build(arms):
        return jb.sequential_halving(arms, budget=number)

    def change(to):
        nonlocal number
        number = to

    return build, change


def global_change(to):
    BUDGET["halving"] = to


def ways():
    """`(constructor, change)` for each way to read a budget that `change` sets."""
    held, called, (inner, change) = Holder(30), Called(30), within_a_function()
    return {
        "global": (by_global, global_change),
        "method": (held.build, partial(setattr, held, "budget")),
        "dataclass": (called, partial(setattr, called, "budget")),
        "named tuple": (Tuple(1.0), global_change),
        "closure": (inner, change),
        "inside of another": (jb.at_budget(by_global, 50), global_change),
    }


SLOW = ["dataclass", "named tuple", "inside of another"]


@pytest.mark.parametrize("name", params(ways(), slow=SLOW))
def test_what_a_constructor_reads_counts_as_it_is_now(name):
    build, change = ways()[name]
    change(30)
    assert set(simulate(SOARE, build).pulls) == {30}
    with compilations() as seen:
        simulate(SOARE, build)
    assert not seen
    change(40)
    assert set(simulate(SOARE, build).pulls) == {40}
    with compilations() as seen:
        simulate(SOARE, build)
    assert not seen


def test_what_an_instance_reads_counts_as_it_is_now():
    gaps = [0.5]

    def draw(key):
        return jb.instances.canonical(3, gap=gaps[0])

    hard = simulate(draw, partial(jb.lingape, delta=0.1)).pulls
    gaps[0] = 2.0
    assert simulate(draw, partial(jb.lingape, delta=0.1)).pulls.mean() < hard.mean() / 2


class Coin(NamedTuple):
    """A simulator of rewards that reads a global number."""

    sides: jax.Array

    def reward(self, key, arm):
        return budget() * self.sides[arm] + jax.random.normal(key)


def test_what_a_simulator_reads_counts_as_it_is_now():
    built = []
    for number in (30, 40):
        global_change(number)
        coin = Coin(jnp.arange(2.0))
        instance = jb.instances.simulated(np.eye(2), coin, noise_var=1.0, draws=20)
        build = partial(jb.lin_ucb, delta=0.1)
        built.append(simulate(instance, build, horizon=10).regret)
        np.testing.assert_allclose(instance.means, [0, number], atol=2)
        reading = values_read(instance, build)
        assert reading != ()
        global_change(number + 1)
        assert values_read(instance, build) != reading
    assert not np.array_equal(*built)


def test_a_file_counts_as_it_is_now(tmp_path):
    file = tmp_path / "cars.csv"
    cars = partial(jb.instances.automobile, path=file, num_arms=5)

    def played(seed):
        table = np.random.default_rng(seed).uniform(1, 9, size=(8, 26))
        np.savetxt(file, table, delimiter=",")
        return simulate(cars, partial(jb.sequential_halving, budget=40)).arm_pulls

    first, other, again = map(played, (0, 1, 0))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_live_runs_read_it_as_it_is_now():
    drawn = []
    for number in (30, 40):
        global_change(number)
        drawn.append(jb.Live(by_global, SOARE.arms).ask().sum())
    assert drawn[0] < drawn[1]


def test_functions_of_the_package_read_nothing():
    assert values_read(SOARE, partial(jb.lingape, delta=0.1)) == ()
    assert values_read(jb.instances.soare, jb.at_budget(jb.rage, 50)) == ()


def test_numbers_among_options_are_no_part_of_the_key():
    def build(arms, *, width):
        return jb.lingape(arms, delta=0.1)

    keys = {values_read(partial(build, width=width)) for width in (1.0, 2.0, np.arange(3.0))}
    assert len(keys) == 1
    assert keys != {()}


@pytest.mark.parametrize("table", [np.arange(3.0), jnp.arange(3)])
def test_small_arrays_count_by_their_entries_and_large_ones_by_themselves(table, monkeypatch):
    held = [table]

    def build(arms):
        return jb.lingape(arms, delta=0.1, noise_var=held[0].sum())

    before = values_read(build)
    held[0] = table + 0
    assert values_read(build) == before
    held[0] = table + 1
    assert values_read(build) != before
    monkeypatch.setattr(room, "SMALL", 1)
    large = values_read(build)
    assert values_read(build) == large
    held[0] = table + 1
    assert values_read(build) != large


def test_an_odd_object_is_no_fault_of_what_is_run():
    class Odd:
        def __getattribute__(self, name):
            raise RuntimeError(name)

    odd = Odd()
    assert values_read(lambda arms: odd) == ()
