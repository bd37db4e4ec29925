"""A function that reads something else than before is compiled anew; otherwise nothing is."""

import array
import collections
import contextvars
import dataclasses
import functools
import os
import sys
import threading
import time
import types
from pathlib import Path
from typing import ClassVar, NamedTuple

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from counting import compilations
from jax import lax
from params import params
from programs import simulate

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler
from jaxbandits.engine import traits
from jaxbandits.engine.partition import prepared
from jaxbandits.system import randomness
from jaxbandits.system import traces as room
from jaxbandits.system.traces import TraceCache

SOARE = jb.instances.soare(3, angle=0.5, scale=2.0)
NEEDS_COMPILER = pytest.mark.skipif(not compiler(), reason="no C++ compiler")
FIRST, SECOND = 30, 40  # pulls; all ways to read them share two programs
BUDGET = {"halving": FIRST}  # what functions below read, changed by the tests
LARGE = 2**18  # entries of 8 bytes


class Turns(NamedTuple):
    """An algorithm that draws the arms in turn, `stop` times."""

    num_arms: int
    stop: object

    def init(self, key):
        return jnp.zeros((), int)

    def ask(self, key, state):
        return jb.Move(state % self.num_arms, None, state >= self.stop, jnp.zeros((), int))

    def tell(self, state, move, total):
        return state + 1


def turns(arms, stop):
    inner = Turns(arms.shape[0], stop)
    return jb.Algorithm(inner.init, inner.ask, inner.tell)


def budget():
    return BUDGET["halving"]


def global_change(to):
    BUDGET["halving"] = to


def by_global(arms):
    return turns(arms, budget())


class Holder:
    """A constructor as a method, which also counts its calls."""

    calls = 0

    def __init__(self, budget=FIRST):
        self.budget = budget

    def build(self, arms):
        self.calls += 1
        return turns(arms, self.budget)


class Heir(Holder):
    """Everything that it has is of its base class."""


class Slotted:
    __slots__ = ("budget",)

    def __init__(self):
        self.budget = FIRST

    def __call__(self, arms):
        return turns(arms, self.budget)


class SlottedHeir(Slotted):
    __slots__ = ()


@dataclasses.dataclass(slots=True)
class SlottedData:
    budget: int = FIRST

    def __call__(self, arms):
        return turns(arms, self.budget)


@dataclasses.dataclass
class Called:
    budget: int = FIRST

    def __call__(self, arms):
        return turns(arms, self.budget)


class Tuple(NamedTuple):
    unused: float

    def __call__(self, arms):
        return turns(arms, budget())


class Registered:
    """A registry in a class, a property, and an attribute that is made when it is read."""

    registry: ClassVar = {}

    @property
    def budget(self):
        return self.registry["budget"]

    def __getattr__(self, name):
        return self.registry["made"] if name == "made" else object.__getattribute__(self, name)


class Meta(type):
    budget = FIRST


class OfMeta(metaclass=Meta):
    pass


def reading(read):
    """A constructor that reads its budget by a function."""
    return lambda arms: turns(arms, read())


def within_a_function():
    number = FIRST

    def build(arms):
        return turns(arms, number)

    def change(to):
        nonlocal number
        number = to

    return build, change


def of_base():
    """An attribute of a base class."""
    heir = Heir()
    del heir.budget
    return heir.build, functools.partial(setattr, Holder, "budget")


def of_base_method():
    class Base:
        def stop(self):
            return FIRST

    class Child(Base):
        pass

    child = Child()
    return reading(lambda: child.stop()), lambda to: setattr(Base, "stop", lambda self: to)


def of_slots(kind=Slotted):
    held = kind()
    return held, functools.partial(setattr, held, "budget")


def of_items(table, place):
    """A constructor and a change of one entry."""
    return reading(lambda: int(table[place])), functools.partial(table.__setitem__, place)


def of_attribute(holder, name="budget"):
    return reading(lambda: getattr(holder, name)), functools.partial(setattr, holder, name)


def of_module():
    module = types.ModuleType("module_of_a_user")

    def build(arms):
        import module_of_a_user

        return turns(arms, module_of_a_user.budget)

    def change(to):
        sys.modules["module_of_a_user"] = module
        module.budget = to

    return build, change


def of_context():
    variable = contextvars.ContextVar("budget", default=FIRST)
    return reading(variable.get), variable.set


def of_globals():
    def change(to):
        globals()["GLOBAL_BUDGET"] = to

    return reading(lambda: globals()["GLOBAL_BUDGET"]), change


def of_environment():
    def change(to):
        os.environ["BUDGET_OF_A_TEST"] = str(to)

    return reading(lambda: int(os.environ["BUDGET_OF_A_TEST"])), change


def of_data_frame():
    frame = pd.DataFrame({"budget": [FIRST]})

    def change(to):
        frame.loc[0, "budget"] = to

    return reading(lambda: int(frame.budget[0])), change


def of_defaults():
    def build(arms, stop=FIRST):
        return turns(arms, stop)

    def change(to):
        build.__defaults__ = (to,)

    return build, change


def of_function_attribute():
    def build(arms):
        return turns(arms, build.stop)

    return build, functools.partial(setattr, build, "stop")


def of_code():
    """A function that gets other code, as `%autoreload` does it."""

    def build(arms):
        return turns(arms, 30)

    def other(arms):
        return turns(arms, 40)

    codes = {FIRST: build.__code__, SECOND: other.__code__}
    return build, lambda to: setattr(build, "__code__", codes[to])


def of_clock():
    clock = {"now": FIRST}
    start = time.time()
    changed = types.SimpleNamespace(time=lambda: start + clock["now"])
    return reading(lambda: round(changed.time() - start)), functools.partial(
        clock.__setitem__, "now"
    )


def of_file(folder):
    path = folder / "budget.txt"
    return reading(lambda: int(path.read_text())), lambda to: path.write_text(str(to))


def of_thread():
    own = threading.local()
    return of_attribute(own)


def of_registry():
    held = Registered()
    return reading(lambda: held.budget), functools.partial(held.registry.__setitem__, "budget")


def made_when_read():
    held = Registered()
    return reading(lambda: held.made), functools.partial(held.registry.__setitem__, "made")


def of_option():
    """A function among the options reads it."""

    def build(arms, *, schedule):
        return turns(arms, schedule())

    return functools.partial(build, schedule=budget), global_change


def of_object_option():
    """An object among the options holds it."""
    held = Holder()

    def build(arms, *, rule):
        return turns(arms, rule.budget)

    return functools.partial(build, rule=held), functools.partial(setattr, held, "budget")


# Ways through functions of JAX, which remembers traces. Here the rule of `ask` reads the budget,
# so that its programs are other ones: each way needs two of its own.


def stopping(read):
    """A constructor whose `ask` reads when to stop, and which is compiled in two programs."""

    def build(arms):
        inner = turns(arms, 0)

        def ask(key, state):
            return inner.ask(key, state)._replace(done=state >= read(state))

        return inner._replace(ask=ask)

    return build


@jax.jit
def jitted(x):
    return x * 0 + budget()


@jax.checkpoint
def checkpointed(x):
    return x * 0 + budget()


@jax.custom_jvp
def with_derivative(x):
    return x * 0 + budget()


with_derivative.defjvp(lambda primals, tangents: (with_derivative(*primals), tangents[0]))


@jax.custom_vjp
def with_gradient(x):
    return x * 0 + budget()


with_gradient.defvjp(lambda x: (with_gradient(x), None), lambda _, g: (g,))


def body(carry, _):
    return carry * 0 + budget(), None


def looped(x):
    return x * 0 + budget()


def one_time(x):
    return lax.fori_loop(0, 1, lambda _, x: looped(x), x)


HIDDEN = {
    "jit": jitted,
    "jit in jit": jax.jit(lambda x: jitted(x) + 0),
    "scan": lambda x: lax.scan(body, x, None, length=2)[0],
    "fori": one_time,
    "while": lambda x: lax.while_loop(lambda x: x < 0, looped, x - x - 1),
    "cond": lambda x: lax.cond(x >= 0, looped, looped, x),
    "map": lambda x: lax.map(looped, x[None])[0],
    "checkpoint": checkpointed,
    "custom_jvp": with_derivative,
    "custom_vjp": with_gradient,
    "vmap": lambda x: jax.vmap(jitted)(x[None])[0],
    "grad": lambda x: jax.grad(lambda y: jitted(y) * y)(x * 1.0).astype(int),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("read")


def ways(folder):
    """`(constructor, change)` for each way to read a budget that `change` sets."""
    held = Holder()
    return {
        "global": (by_global, global_change),
        "method": (held.build, functools.partial(setattr, held, "budget")),
        "dataclass": of_slots(Called),
        "named tuple": (Tuple(1.0), global_change),
        "closure": within_a_function(),
        "base class": of_base(),
        "method of a base class": of_base_method(),
        "slots": of_slots(),
        "slots of a base class": of_slots(SlottedHeir),
        "slots of a dataclass": of_slots(SlottedData),
        "metaclass": (reading(lambda: OfMeta.budget), lambda to: setattr(Meta, "budget", to)),
        "long list": of_items([0] * 20_000, 19_000),
        "large array": of_items(np.zeros(LARGE, int), LARGE - 1),
        "memory": of_items(array.array("l", [0]), 0),
        "deque": of_items(collections.deque([0, 0]), 1),
        "default dict": of_items(collections.defaultdict(int), "budget"),
        "module": of_module(),
        "context": of_context(),
        "globals()": of_globals(),
        "environment": of_environment(),
        "namespace": of_attribute(types.SimpleNamespace()),
        "thread": of_thread(),
        "data frame": of_data_frame(),
        "defaults": of_defaults(),
        "function attribute": of_function_attribute(),
        "code": of_code(),
        "clock": of_clock(),
        "file": of_file(folder),
        "registry": of_registry(),
        "made when read": made_when_read(),
        "option": of_option(),
        "object among options": of_object_option(),
    }


def known(instance, build, horizon=None):
    """By what the program of a cell is known; nothing is compiled."""
    structure, numbers = prepared(instance, build, horizon)
    with jax.enable_x64(True):
        return traits.as_compiled(structure, traits.shapes_of(numbers), int(horizon is not None))


@pytest.mark.parametrize("name", ways(Path()))
def test_what_a_constructor_reads_counts_as_it_is_now(name, folder):
    """Nothing is compiled: a program is known by a trace, and compiled from it."""
    build, change = ways(folder)[name]
    change(FIRST)
    first, again = known(SOARE, build), known(SOARE, build)
    change(SECOND)
    second = known(SOARE, build)
    change(FIRST)
    assert first == again == known(SOARE, build)
    assert first != second


PLAYED = ("global", "method", "closure", "file")


@pytest.mark.parametrize("name", params(ways(Path()), always=PLAYED))
def test_what_a_constructor_reads_is_played_as_it_is_now(name, folder):
    build, change = ways(folder)[name]
    change(FIRST)
    assert set(simulate(SOARE, build).pulls) == {FIRST}
    with compilations() as seen:
        simulate(SOARE, build)
    assert not seen
    change(SECOND)
    assert set(simulate(SOARE, build).pulls) == {SECOND}
    change(FIRST)
    with compilations() as seen:
        assert set(simulate(SOARE, build).pulls) == {FIRST}
    assert not seen


@pytest.mark.parametrize("name", HIDDEN)
def test_what_jax_remembers_is_traced_anew(name):
    global_change(FIRST)
    first, again = (known(SOARE, stopping(HIDDEN[name])) for _ in range(2))
    global_change(SECOND)
    second = known(SOARE, stopping(HIDDEN[name]))
    global_change(FIRST)
    assert first == again == known(SOARE, stopping(HIDDEN[name]))
    assert first != second


def test_a_helper_under_jit_is_played_as_it_is_now():
    for number in (FIRST, SECOND):
        global_change(number)
        assert set(simulate(SOARE, stopping(jitted)).pulls) == {number}


def test_a_wrapper_is_read_anew():
    def build(arms):
        inner = turns(arms, FIRST)
        return inner._replace(tell=lambda state, move, total: state + budget())

    keys = []
    for number in (FIRST, SECOND, FIRST):
        global_change(number)
        wrapped = functools.partial(jb.at_budget(build, 50), answer="most_pulled")
        keys.append(known(SOARE, wrapped))
    assert keys[0] == keys[2] != keys[1]


def test_what_an_instance_reads_counts_as_it_is_now():
    """The best arm is the first or the third."""
    best = types.SimpleNamespace(arm=2)

    def draw(key):
        means = jnp.where(jnp.arange(3) == jitted_arm(), 9.0, 0.0)
        return jb.instances.tabular(jnp.eye(3), means)

    @jax.jit
    def jitted_arm():
        return jnp.asarray(best.arm)

    build = functools.partial(jb.sequential_halving, budget=12)
    assert set(simulate(draw, build).answer) == {2}
    with compilations() as seen:
        simulate(draw, build)
    assert not seen
    best.arm = 0
    assert set(simulate(draw, build).answer) == {0}


class Coin(NamedTuple):
    """A simulator of rewards that reads a global number, by a helper under `jit`."""

    sides: jax.Array

    def reward(self, key, arm):
        return jitted(self.sides[arm]) * 0 + budget() * self.sides[arm] + jax.random.normal(key)


def test_what_a_simulator_reads_counts_as_it_is_now():
    keys = []
    for number in (FIRST, SECOND, FIRST):
        global_change(number)
        coin = Coin(jnp.arange(2.0))
        instance = jb.instances.simulated(np.eye(2), coin, noise_var=1.0, draws=20)
        np.testing.assert_allclose(instance.means, [0, number], atol=2)
        keys.append(known(instance, jb.uniform, 10))
    assert keys[0] == keys[2] != keys[1]


def test_means_of_a_simulator_compile_nothing_the_second_time():
    global_change(FIRST)
    made = functools.partial(jb.instances.simulated, np.eye(2), noise_var=1.0, draws=20)
    made(Coin(np.arange(2.0)))
    with compilations() as seen:
        made(Coin(np.arange(2.0) + 1))
    assert not seen


def test_a_file_counts_as_it_is_now(tmp_path):
    file = tmp_path / "cars.csv"
    cars = functools.partial(jb.instances.automobile, path=file, num_arms=5)

    def played(seed):
        table = np.random.default_rng(seed).uniform(1, 9, size=(8, 26))
        np.savetxt(file, table, delimiter=",")
        return simulate(cars, functools.partial(jb.sequential_halving, budget=40)).arm_pulls

    first, other, again = map(played, (0, 1, 0))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_live_runs_read_it_as_it_is_when_they_begin():
    def played(live):
        while not live.done:
            live.ask()
            live.tell(0.0)
        return live.pulls

    global_change(FIRST)
    first, again = jb.Live(by_global, SOARE.arms), jb.Live(stopping(jitted), SOARE.arms)
    global_change(SECOND)
    second, third = jb.Live(by_global, SOARE.arms), jb.Live(stopping(jitted), SOARE.arms)
    assert [played(live) for live in (first, second)] == [FIRST, SECOND]
    assert [played(live) for live in (again, third)] == [FIRST, SECOND]
    global_change(FIRST)
    with compilations() as seen:
        played(jb.Live(by_global, SOARE.arms))
    assert not seen


def test_sweeps_and_debugged_runs_read_it_as_it_is_now():
    for number in (FIRST, SECOND):
        global_change(number)
        assert set(simulate(SOARE, by_global, debug=True).pulls) == {number}
        cells = jb.sweep(
            {"a": SOARE, "b": jb.instances.soare(3, angle=0.4)},
            {"own": by_global},
            replications=12,
            progress=False,
            bounds=False,
        )
        assert (cells.pulls == number).all()


def test_a_sweep_traces_a_function_once():
    """For all its cells that differ in numbers alone; and their check, and their programs."""
    calls = []

    def build(arms, *, level):
        calls.append(level)
        return turns(arms, FIRST)._replace(tell=lambda state, move, total: state + (level > 0))

    def swept(number):
        calls.clear()
        axes = {"level": np.linspace(0.1, 0.9, number).tolist()}
        jb.sweep({"a": SOARE}, {"own": build}, replications=12, axes=axes, progress=False)
        return len(calls)

    swept(2)  # what it does is confirmed by a second trace, once in a process
    assert swept(2) == swept(4)


def test_a_later_call_traces_a_function_once():
    """Its checks, and the shapes of a lane, are those of an earlier call with these operations."""
    asked, draws = [], types.SimpleNamespace(by=lambda key: jax.random.uniform(key))

    def build(arms, *, level=1.0):
        inner = turns(arms, FIRST)

        def ask(key, state):
            asked.append(1)
            return inner.ask(key, state)._replace(answer=(jnp.asarray(draws.by(key)) < level) * 1)

        return inner._replace(ask=ask)

    def calls(play):
        asked.clear()
        play()
        return len(asked)

    def swept(number):
        axes = {"level": np.linspace(0.1, 0.9, number).tolist()}
        jb.sweep({"a": SOARE}, {"own": build}, replications=12, axes=axes, progress=False)

    first, second = (calls(lambda: simulate(SOARE, build)) for _ in range(2))
    assert (first > 1, second) == (True, 1)
    swept(2)
    assert [calls(lambda number=number: swept(number)) for number in (2, 4)] == [2, 2]
    draws.by = lambda key: np.random.random()  # noqa: NPY002
    for play in (lambda: simulate(SOARE, build), lambda: swept(2)):
        with pytest.raises(ValueError, match="NumPy's global generator"):
            play()
    draws.by = lambda key: jnp.zeros(3)
    with pytest.raises(ValueError, match="answer is"):
        simulate(SOARE, build)
    draws.by = lambda key: 0.5 + 0.0 * jax.random.uniform(key)
    assert set(simulate(SOARE, build).answer) == {1}


def test_whether_a_run_ends_is_looked_at_anew():
    never = types.SimpleNamespace(done=False)

    def build(arms):
        inner = turns(arms, FIRST)
        ask = lambda key, state: inner.ask(key, state)._replace(done=jnp.asarray(never.done))  # noqa: E731
        return inner._replace(ask=ask)

    with pytest.raises(ValueError, match="never stops"):
        simulate(SOARE, build)
    never.done = True
    assert set(simulate(SOARE, build).pulls) == {0}


def test_other_numbers_compile_nothing():
    def build(arms, *, level):
        def tell(state, move, total):
            return state + (total < level)

        return turns(arms, FIRST)._replace(tell=tell)

    simulate(SOARE, functools.partial(build, level=1e6))
    with compilations() as seen:
        simulate(jb.instances.soare(3, angle=0.1), functools.partial(build, level=2e6))
    assert not seen


def test_another_function_that_does_the_same_shares_its_program():
    for _ in range(2):
        with compilations() as seen:
            simulate(SOARE, lambda arms: turns(arms, FIRST))
    assert not seen


def test_a_function_that_is_another_one_in_each_trace_has_another_program():
    """Before it is refused, where a cell is traced a second time."""
    numbers = iter(range(FIRST, 10**6))

    def build(arms):
        return turns(arms, next(numbers))

    first, second = known(SOARE, build), known(SOARE, build)
    assert first != second


def test_a_program_is_made_of_the_trace_by_which_it_is_known(monkeypatch):
    """Not of another one, in which a function that depends on time would say something else."""
    monkeypatch.setattr(randomness, "_confirmed", set())  # by another test
    calls = []

    def build(arms):
        calls.append(1)
        return turns(arms, FIRST)

    known(SOARE, build)
    needed = len(calls)
    calls.clear()
    simulate(SOARE, build, horizon=None)
    assert len(calls) == needed + 2  # traces that are compared, and compiled by nobody


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_functions_of_the_package_are_not_traced_anew(case):
    structure, _ = prepared(case.instance, case.build, case.options.get("horizon"))
    assert structure.traces is None


def as_of_a_user(build):
    """The constructor as a function of a user, with the same options."""
    if not isinstance(build, functools.partial):
        return as_of_a_user(functools.partial(build))
    inner = functools.wraps(build.func)(lambda *args, **options: build.func(*args, **options))
    return functools.partial(inner, *build.args, **build.keywords)


QUICK = ["lucb", "rage", "rep_glm_fpl"]


@pytest.mark.parametrize("name", params([case.name for case in cases.CASES], always=QUICK))
def test_two_traces_of_a_function_are_equal(name):
    case = cases.named(name)
    build = as_of_a_user(case.build)
    first, second = (known(case.instance, build, case.options.get("horizon")) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("engine", ["xla", pytest.param("native", marks=NEEDS_COMPILER)])
@pytest.mark.parametrize("name", params([case.name for case in cases.CASES], always=["lucb"]))
def test_a_function_of_a_user_plays_as_the_one_that_it_calls(name, engine):
    case = cases.named(name)
    own, of_user = (
        simulate(case.instance, build, engine=engine, **case.options)
        for build in (case.build, as_of_a_user(case.build))
    )
    for field in ("pulls", "answer", "arm_pulls", "stopped", "regret"):
        np.testing.assert_array_equal(getattr(own, field), getattr(of_user, field))


def calling_back(function):
    """A constructor whose `ask` calls Python while it runs."""

    def build(arms):
        inner = turns(arms, FIRST)

        def ask(key, state):
            arm = jax.pure_callback(function, jax.ShapeDtypeStruct((), int), state)
            return inner.ask(key, state)._replace(arm=arm)

        return inner._replace(ask=ask)

    return build


def test_a_function_that_is_called_back_is_known_by_which_one_it_is():
    def first(state):
        return np.asarray(state % 3)

    def second(state):
        return np.asarray(state % 2)

    keys = [known(SOARE, calling_back(function)) for function in (first, second, first)]
    assert keys[0] == keys[2] != keys[1]


def test_another_function_with_the_same_code_is_called_back_by_the_same_program():
    def modulo(n):
        return lambda state: np.asarray(state % n)

    keys = [known(SOARE, calling_back(modulo(n))) for n in (3, 2, 3)]
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("other", [-0.0, 0, False, np.float32(0)])
def test_constants_are_told_apart_by_bits_and_types(other):
    def known_with(value):
        def build(arms):
            inner = turns(arms, FIRST)

            def ask(key, state):
                return inner.ask(key, state)._replace(info={"value": jnp.asarray(value)})

            return inner._replace(ask=ask)

        return known(SOARE, build)

    assert known_with(0.0) == known_with(0.0) != known_with(other)


def test_jax_forgets_readings_at_times(monkeypatch):
    forgotten = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(1))
    monkeypatch.setattr(room, "READINGS_KEPT", 3)
    for _ in range(6):
        cache = TraceCache()
        for _ in range(2):
            with cache.reading():
                pass
    assert len(forgotten) == 2
    TraceCache()  # in which nothing is read
    assert len(forgotten) == 2
