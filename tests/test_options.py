"""Options may be numbers of NumPy or JAX; None, and what cannot be traced or compared, is named."""

import dataclasses
import inspect
from functools import partial
from typing import Annotated, Any

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import refused
from run_settings import CANONICAL, SOARE, assert_same_runs

import jaxbandits as jb
from jaxbandits.engine.partition import prepared
from jaxbandits.parameters import Count, Probability, choice, constructor, options_of

EYE = np.eye(4)
BUILDS = {case.constructor: case for case in cases.CASES}


@pytest.mark.parametrize("number", [np.array, jnp.array, np.int8, jnp.uint8])
def test_whole_numbers_of_numpy_and_jax_are_options(number):
    known = partial(jb.gse, budget=60, eta=2, forced=1)
    given = partial(jb.gse, budget=number(60), eta=number(2), forced=number(1))
    assert given.func.convert(given.keywords) == known.keywords
    more = {"replications": 3}
    assert_same_runs(jb.simulate(CANONICAL, given, **more), jb.simulate(CANONICAL, known, **more))


def test_numbers_of_jax_are_options_of_wrappers_and_live_use():
    at_budget = jb.at_budget(jb.rage, jnp.array(60))
    assert at_budget.func.convert(at_budget.keywords) == {"budget": 60}
    live = jb.Live(partial(jb.gse, per_arm=jnp.array(3)), EYE)
    assert live.arm_pulls.tolist() == [0] * 4
    found = jb.lingape.convert({"delta": jnp.array(0.25), "threshold": np.str_("lucb1")})
    assert found == {"delta": 0.25, "threshold": "lucb1"}
    assert type(found["threshold"]) is str  # one of NumPy would be traced


@pytest.mark.parametrize("flag", [np.True_, jnp.array(True), 1.0])
def test_flags_are_static(flag):
    assert jb.gse.convert({"reuse": flag})["reuse"] is True


def test_large_numbers_of_jax_are_compared_with_the_limits():
    with jax.enable_x64(True):
        large = jnp.array(2**62 + 1)
    message = f"budget must be at most {2**62}, got {2**62 + 1}"
    refused((CANONICAL, partial(jb.gse, budget=large)), message)
    refused(
        (CANONICAL, partial(jb.gse, budget=jnp.array(0))),
        "budget must be a whole number, 1 or above, got Array",
    )


def test_a_budget_may_be_traced():
    def stages(budget):
        algorithm = jb.gse(jnp.eye(4), budget=budget)
        return algorithm.ask(jax.random.key(0), algorithm.init(jax.random.key(1))).count.sum()

    assert jax.jit(stages)(jnp.array(60)) == stages(60)


def _without_none(build):
    """Options whose types do not allow None, by name; those with a default."""
    parameters = inspect.signature(build, eval_str=True).parameters.values()
    return [
        p.name
        for p in parameters
        if p.name in options_of(build)
        and p.default not in (None, p.empty)
        and "None" not in str(p.annotation)
    ]


@pytest.mark.parametrize("name", BUILDS)
def test_none_is_refused_where_an_option_needs_a_value(name):
    case = BUILDS[name]
    inner = case.build.func if isinstance(case.build, partial) else case.build
    wrapped = getattr(inner, "inner", inner)
    for option in _without_none(wrapped):
        build = partial(case.build, **{option: None})
        refused((case.instance, build, case.options), f"{option} must be .*, got None")


def test_none_is_refused_in_options_of_a_user():
    @constructor(requires=lambda values: None)
    def own(
        arms,
        *,
        delta: Probability,
        rounds: Count | None,
        kind: Annotated[str | None, choice("a", "b")] = "a",
        noise_var: float = 1.0,
    ):
        return jb.uniform(arms)

    jb.Live(partial(own, delta=0.1, rounds=None, kind=None), EYE)
    refused((SOARE, partial(own, delta=None, rounds=3)), "delta must be a number in .*, got None")


@dataclasses.dataclass
class Setting:
    """An option that has no hash."""

    size: int = 1


@dataclasses.dataclass(frozen=True)
class Holder:
    """An option that has a hash if its entry has one."""

    entry: Any


def own(arms, *, option):
    """An algorithm of a user, whose option says nothing of its type."""
    return jb.uniform(arms)


UNFIT = {
    "set": {1, 2},
    "slice": np.s_[1:2] if slice.__hash__ is None else slice([1], 2),
    "dataclass": Setting(),
    "frozen dataclass": Holder([1]),
    "dict": {"a": Setting()},
    "text": np.array(["a"]),
    "objects": np.array([None]),
    "dates": np.array(["2020"], "datetime64[Y]"),
    "name of NumPy": np.str_("a"),
    "too wide": np.longdouble(1) if np.finfo(np.longdouble).bits > 64 else np.array([b"a"]),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_options_that_can_be_neither_traced_nor_compared_are_named(kind):
    message = "option must be a number, an array of numbers or a name, got"
    build = partial(own, option=UNFIT[kind])
    refused((SOARE, build, {"horizon": 5}), message)
    refused(lambda: jb.Live(build, EYE), message)


def test_options_of_an_instance_are_named_too():
    def draw(key, *, option):
        return SOARE

    message = "option must be a number, an array of numbers or a name, got {1}"
    refused((partial(draw, option={1}), jb.uniform, {"horizon": 5}), message)


def test_keys_of_a_dict_that_have_no_order_are_named():
    refused((SOARE, partial(own, option={1: 1.0, "a": 2.0}), {"horizon": 5}), "option must be a")


TREES = [[1.0, 2.0], {"a": 1}, (Holder(1),), 1j, None, jnp.ones(2)]


@pytest.mark.parametrize("option", TREES)
def test_trees_of_numbers_and_names_are_options(option):
    build = partial(own, option=option)
    structure, numbers = prepared(SOARE, build, 5)
    hash(structure)
    again = structure.tree(numbers)[1].keywords["option"]
    assert jax.tree.structure(again) == jax.tree.structure(option)
    if option is None:  # all others: `test_trees_of_numbers_and_names_are_played`
        assert jb.simulate(SOARE, build, replications=2, horizon=5).pulls.tolist() == [5, 5]


@pytest.mark.slow
@pytest.mark.parametrize("option", TREES)
def test_trees_of_numbers_and_names_are_played(option):
    runs = jb.simulate(SOARE, partial(own, option=option), replications=2, horizon=5)
    assert runs.pulls.tolist() == [5, 5]
