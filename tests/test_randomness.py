# ruff: noqa: NPY002  the legacy generator is what users draw from here
"""Randomness of a user's functions has to come from their keys: anything else is refused by name.

Nothing is compiled: an algorithm is looked at before.
"""

import copy
import datetime
import functools
import gc
import inspect
import logging
import os
import random
import secrets
import tempfile
import threading
import time
import uuid
import weakref
from datetime import datetime as Datetime
from os import urandom
from pathlib import Path
from time import time as now
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from counting import compilations
from numpy.random import default_rng

import jaxbandits as jb
from jaxbandits.engine.api import check_ending
from jaxbandits.engine.episode import root_key
from jaxbandits.engine.partition import prepared
from jaxbandits.system import new_generators, randomness
from jaxbandits.system.new_generators import GENERATOR, clocks_put_back, noting

SOARE = jb.instances.soare(2, angle=0.5)
KEY = jax.random.key(7)
OF_NUMPY, OF_PYTHON = np.random.default_rng(0), random.Random(0)


def made(ask=lambda key, state: 0.0, tell=lambda state: 0.0, init=lambda key: 0.0, whole=float):
    """A constructor whose functions draw by these."""

    def mine(arms):
        constant = whole()

        def begin(key):
            return {"n": jnp.zeros((), int), "x": jnp.asarray(init(key) + constant, float)}

        def move(key, state):
            arm = jnp.asarray(ask(key, state) > state["x"], int)
            return jb.Move(arm, None, jnp.array(False), arm)

        def learnt(state, move, total):
            return {"n": state["n"] + 1, "x": state["x"] + total * tell(state)}

        return jb.Algorithm(begin, move, learnt)

    return mine


def in_a_branch(key, state):
    return jax.lax.cond(state["n"] > 3, lambda: jax.random.uniform(KEY), lambda: 0.5)


def in_a_loop(key, state):
    return jax.lax.fori_loop(0, 3, lambda i, x: x + jax.random.uniform(KEY), 0.0)


def helper(x):
    return x + time.perf_counter()


def seeded(x):
    return x + np.random.default_rng(0).normal()


def of_a_global_generator(seed, draw):
    """As a coin that is the same in each trace: the state of the generator is too."""
    seed(0)
    return draw()


def logged(key, state, times=[]):  # noqa: B006  shared by all calls
    logging.getLogger("mine").debug("asked at %s", time.strftime("%X"))
    times.append(now() - (times[-1] if times else 0.0))
    return jax.random.uniform(key)


def by_an_option(arms, *, seed):
    return made(lambda key, state: jax.random.uniform(jax.random.key(seed)))(arms)


def keeping(make):
    """A constructor whose state keeps a key that is made by this."""

    def keeps(arms):
        def begin(key):
            return {"key": make(key)}

        def ask(key, state):
            arm = jax.random.bernoulli(state["key"]).astype(int)
            return jb.Move(arm, None, jnp.array(False), arm)

        def tell(state, move, total):
            return {"key": jax.random.split(state["key"])[0]}

        return jb.Algorithm(begin, ask, tell)

    return keeps


@functools.cache
def table():
    """Random features that all replications share, made when they are first needed."""
    return np.random.default_rng(0).normal(size=3)


ASK, CLOCK = "algorithm mine: its ask ", "is another function each time"
# A second may pass between two traces.
SECONDS = "is another function (each time|at another time: it reads a clock)"
SEEDS, BITS = "seeds a global generator", jnp.zeros(4, jnp.uint32)
SEEDED, ENTROPY = "makes a generator of its own", "reads entropy of the system"
SAME = "draws by a key that is always the same"
REFUSED = {
    "NumPy's generator": (made(lambda key, state: np.random.normal()), ASK + "draws from NumPy's"),
    "a static coin of NumPy": (
        made(lambda key, state: np.random.randint(2)),
        ASK + "draws from NumPy's",
    ),
    "Python's generator": (
        made(lambda key, state: random.random()),
        # beartype, which checks the kernels here, draws from that too.
        f"{ASK}(draws from Python's|{CLOCK})",
    ),
    "an own generator": (
        made(lambda key, state: OF_NUMPY.integers(2)),
        ASK + "draws from a generator of its own, numpy.random",
    ),
    "an own one of Python": (
        made(lambda key, state: OF_PYTHON.random()),
        ASK + "draws from a generator of its own, random.Random",
    ),
    "a new generator": (made(lambda key, state: np.random.default_rng().normal()), ASK + CLOCK),
    "a clock": (made(lambda key, state: time.time()), ASK + CLOCK),
    "a clock under jit": (made(lambda key, state: jax.jit(helper)(state["x"])), ASK + CLOCK),
    "the system": (
        made(lambda key, state: os.urandom(4)[0] / 3 + secrets.randbits(30)),
        ASK + CLOCK,
    ),
    "a literal key": (made(lambda key, state: jax.random.uniform(jax.random.key(0))), ASK + SAME),
    "a raw key": (made(lambda key, state: jax.random.normal(jax.random.PRNGKey(0))), ASK + SAME),
    "a global key": (made(lambda key, state: jax.random.uniform(KEY)), ASK + SAME),
    "a part of it": (
        made(lambda key, state: jax.random.uniform(jax.random.split(KEY)[0])),
        ASK + SAME,
    ),
    "a gamma law": (made(lambda key, state: jax.random.gamma(KEY, state["n"] + 1.0)), ASK + SAME),
    "in a branch": (made(in_a_branch), ASK + SAME),
    "in a loop": (made(in_a_loop), ASK + SAME),
    "in tell": (made(tell=lambda state: np.random.normal()), "mine: its tell draws from NumPy's"),
    "a key in tell": (
        made(tell=lambda state: jax.random.normal(KEY)),
        f"mine: its tell {SAME}.*split",
    ),
    "a new one with a seed": (
        made(lambda key, state: np.random.default_rng(0).normal()),
        ASK + SEEDED,
    ),
    "a seed in tell": (
        made(tell=lambda state: np.random.default_rng(0).normal()),
        f"mine: its tell {SEEDED}.*split",
    ),
    "one in a helper under jit": (
        made(lambda key, state: jax.jit(seeded)(state["x"])),
        ASK + SEEDED,
    ),
    "uuid4": (made(lambda key, state: 0 * (uuid.uuid4().int % 2)), ASK + ENTROPY),
    "a coin of NumPy in the constructor": (
        made(whole=lambda: 0 * default_rng().integers(2)),
        f"mine: its constructor {ENTROPY}",
    ),
    "a kept key": (
        keeping(lambda key: jax.random.key(0)),
        "keeps: its init keeps a key that is always the same.*split",
    ),
    "a raw kept key": (
        keeping(lambda key: jax.random.PRNGKey(0)),
        "keeps: its init keeps a key that is always the same",
    ),
    "a key by an option": (functools.partial(by_an_option, seed=np.int64(3)), f"its ask {SAME}"),
    "bits of a constant key": (
        made(lambda key, state: jax.lax.rng_bit_generator(BITS, ())[1] / 2.0**32),
        ASK + SAME,
    ),
    "no key": (
        made(lambda key, state: jax.lax.rng_uniform(0.0, 1.0, ())),
        ASK + "draws by no key, as jax.lax.rng_uniform",
    ),
    "whole seconds": (made(lambda key, state: int(time.time()) % 60), ASK + SECONDS),
    "a name for a clock": (made(lambda key, state: int(now()) % 60), ASK + SECONDS),
    "today": (made(lambda key, state: datetime.date.today().day), ASK + SECONDS),
    "a second of now": (made(lambda key, state: datetime.datetime.now().second), ASK + SECONDS),
    "a name for a date": (made(lambda key, state: Datetime.utcnow().minute), ASK + SECONDS),
    "the month": (made(tell=lambda state: time.localtime().tm_mon), f"mine: its tell {SECONDS}"),
    "a seed by a clock": (
        made(whole=lambda: default_rng(int(time.time())).normal()),
        f"mine: its constructor {SECONDS}",
    ),
    "a key by a clock in init": (
        made(init=lambda key: jax.random.normal(jax.random.key(int(now())))),
        f"mine: its init {SECONDS}",
    ),
    "a name for the system": (made(lambda key, state: urandom(1)[0] > 300), ASK + ENTROPY),
    "a seed without a generator": (
        made(lambda key, state: np.random.SeedSequence(0).generate_state(1)[0] / 2**32),
        ASK + SEEDED,
    ),
    "a seed for scipy": (
        made(lambda key, state: scipy.stats.norm.rvs(random_state=0)),
        ASK + SEEDED,
    ),
    "a seed for NumPy": (
        made(lambda key, state: of_a_global_generator(np.random.seed, np.random.normal)),
        ASK + SEEDS,
    ),
    "a seed for Python": (
        made(lambda key, state: of_a_global_generator(random.seed, random.random)),
        ASK + SEEDS,
    ),
    "in init": (made(init=lambda key: np.random.normal()), "mine: its init draws from NumPy's"),
    "in the constructor": (made(whole=np.random.normal), "mine: its constructor draws from NumPy"),
}
ALLOWED = {
    "its key": made(lambda key, state: jax.random.uniform(key)),
    "a key of the state": made(
        lambda key, state: jax.random.uniform(jax.random.fold_in(KEY, state["n"]))
    ),
    "a fixed design in init": made(init=lambda key: jax.random.normal(jax.random.key(0))),
    "one in the constructor": made(whole=lambda: jax.random.normal(jax.random.key(0))),
    "one by a seed": made(whole=lambda: np.random.default_rng(0).normal()),
    "an old one by a seed": made(whole=lambda: np.random.RandomState(0).normal()),
    "a table that is made once": made(lambda key, state: jnp.asarray(table())[state["n"] % 3]),
    "a clock for a log": made(logged),
    "a seed in the constructor": made(
        whole=lambda: of_a_global_generator(np.random.seed, np.random.normal)
    ),
    "a sequence of scipy that is not random": made(
        lambda key, state: scipy.stats.qmc.Sobol(1, scramble=False).random(1)[0, 0]
    ),
    "a kept key of its own": keeping(lambda key: jax.random.split(key)[1]),
}


def looked_at(instance, algorithm):
    root_key(0)  # compiled once
    with compilations() as seen:
        check_ending(prepared(instance, algorithm, 10), 100, 10, "mixed")
    assert seen == []


@pytest.mark.parametrize("name", REFUSED)
def test_an_algorithm_that_draws_from_anything_but_its_keys_is_refused(name):
    algorithm, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        looked_at(SOARE, algorithm)


@pytest.mark.parametrize("name", ALLOWED)
def test_keys_and_fixed_designs_are_allowed(name):
    looked_at(SOARE, ALLOWED[name])


def test_every_way_to_play_refuses_it():
    algorithm, message = REFUSED["NumPy's generator"]
    options = {"replications": 2, "horizon": 5}
    for play in (
        lambda: jb.simulate(SOARE, algorithm, **options),
        lambda: jb.simulate(SOARE, algorithm, debug=True, **options),
        lambda: jb.compare({"own": algorithm}, SOARE, **options),
        lambda: jb.sweep({"s": SOARE}, {"own": algorithm}, progress=False, **options),
        lambda: jb.Live(algorithm, np.eye(2)),
    ):
        with pytest.raises(ValueError, match=message):
            play()


def test_a_live_run_refuses_keys_that_are_always_the_same():
    with pytest.raises(ValueError, match=SAME):
        jb.Live(REFUSED["a global key"][0], np.eye(2))


def by_numpy(key):
    return jb.instances.linear(np.eye(2), np.random.normal(size=2) + jax.random.normal(key, (2,)))


def by_clock(key):
    return jb.instances.linear(np.eye(2), time.time() + jax.random.normal(key, (2,)))


def with_fixed_arms(key):
    arms = jax.random.normal(jax.random.key(0), (2, 2))
    return jb.instances.linear(arms, jax.random.normal(key, (2,)))


@pytest.mark.parametrize(
    ("instance", "message"),
    [(by_numpy, "instance by_numpy draws from NumPy's"), (by_clock, f"instance by_clock {CLOCK}")],
)
def test_a_drawn_instance_is_refused_too(instance, message):
    with pytest.raises(ValueError, match=message):
        looked_at(instance, jb.uniform)


def test_arms_that_all_replications_share_are_allowed():
    looked_at(with_fixed_arms, jb.uniform)


class Simulator(NamedTuple):
    means: Any

    def reward(self, key, arm):
        return self.means[arm] + self.noise(key)


class ByNumpy(Simulator):
    noise = staticmethod(lambda key: np.random.normal())


class ByClock(Simulator):
    noise = staticmethod(lambda key: time.time())


class BySeconds(Simulator):
    noise = staticmethod(lambda key: now() // 60 % 60)


class BySeed(Simulator):
    noise = staticmethod(lambda key: np.random.default_rng(0).normal())


class ByOneKey(Simulator):
    noise = staticmethod(lambda key: jax.random.normal(KEY))


REWARDS = {
    ByNumpy: "draws from NumPy's",
    ByClock: CLOCK,
    BySeconds: SECONDS,
    BySeed: SEEDED,
    ByOneKey: SAME,
}


@pytest.mark.parametrize("simulator", REWARDS)
def test_a_reward_that_is_frozen_is_refused_where_the_instance_is_made(simulator):
    with pytest.raises(ValueError, match=f"simulator: its reward {REWARDS[simulator]}"):
        jb.instances.simulated(np.eye(2), simulator(np.arange(2.0)), noise_var=1.0)


def test_one_inside_of_a_drawn_instance_is_refused_with_that():
    def drawn(key):
        means = jax.random.normal(key, (2,))
        return jb.instances.simulated(np.eye(2), ByNumpy(means), noise_var=1.0, draws=2)

    with pytest.raises(ValueError, match=r"instance drawn draws from NumPy's"):
        looked_at(drawn, jb.uniform)


def test_a_line_of_the_package_may_draw_by_a_key_of_its_own(monkeypatch):
    """Such as that of a kernel whose design is drawn by a fixed key, and called in an `ask`."""
    monkeypatch.setattr(randomness, "OWN", str(Path(__file__).parent))
    looked_at(SOARE, REFUSED["a global key"][0])


def test_objects_that_run_code_when_they_are_asked_what_they_are_are_left_alone():
    class Gone:
        pass

    gone = Gone()
    proxy = weakref.proxy(gone)
    del gone
    check_ending(prepared(SOARE, made(), 10), 100, 10, "mixed")
    with pytest.raises(ReferenceError):
        isinstance(proxy, Gone)


@pytest.fixture
def drawing_thread():
    """A thread that draws from NumPy's global generator all the time, as a loader of data may."""
    over = threading.Event()

    def draw():
        while not over.wait(0.001):
            np.random.normal()

    thread = threading.Thread(target=draw)
    thread.start()
    yield
    over.set()
    thread.join()


def test_what_another_thread_draws_is_no_fault_of_a_function(drawing_thread):
    looked_at(SOARE, ALLOWED["its key"])
    with pytest.raises(ValueError, match=ASK + CLOCK):
        looked_at(SOARE, REFUSED["NumPy's generator"][0])


NOTED = {
    lambda: default_rng(3).integers(2): {GENERATOR},
    lambda: np.random.RandomState(0).rand(): {GENERATOR},
    lambda: np.random.RandomState(seed=0).rand(): {GENERATOR},
    lambda: np.random.Generator(np.random.Philox(1)).random(): {GENERATOR},
    lambda: random.Random(0).random(): {GENERATOR},
    lambda: copy.deepcopy(OF_NUMPY).random(): {GENERATOR},
    lambda: copy.deepcopy(OF_PYTHON).random(): {GENERATOR},
    lambda: default_rng().integers(2): {GENERATOR, new_generators.ENTROPY},
    lambda: random.Random().randrange(2): {new_generators.ENTROPY},
    lambda: random.SystemRandom().randrange(2): {new_generators.ENTROPY},
    lambda: secrets.randbelow(2): {new_generators.ENTROPY},
    lambda: os.urandom(1): {new_generators.ENTROPY},
    lambda: urandom(1): {new_generators.ENTROPY},
    lambda: np.random.SeedSequence(0): {GENERATOR},
    lambda: np.random.seed(0): {new_generators.SEED},
    lambda: random.seed(): {new_generators.ENTROPY},
    lambda: scipy.stats.norm.rvs(random_state=0): {GENERATOR},
    lambda: scipy.stats.norm.rvs(): set(),
    lambda: now() + time.monotonic_ns(): {new_generators.CLOCK},
    lambda: time.ctime(): {new_generators.CLOCK},
    lambda: time.ctime(0.0): set(),
    lambda: datetime.date.today(): {new_generators.CLOCK},
    lambda: Datetime.today() - datetime.datetime.now(): {new_generators.CLOCK},
    lambda: Datetime.fromtimestamp(0) - datetime.datetime(2000, 1, 1): set(),
    lambda: logging.makeLogRecord({}): set(),  # Python reads it
    lambda: OF_NUMPY.normal() + OF_PYTHON.random() + np.random.rand(): set(),
    lambda: tempfile.mktemp(): set(),  # of Python, for itself
}


def test_what_a_function_makes_is_noted():
    tempfile.mktemp()  # whose generator is made once for a process
    for function, kinds in NOTED.items():
        notes = set()
        with noting(notes.add):
            function()
        assert notes == kinds, inspect.getsource(function)


def test_what_notes_new_generators_is_put_back_and_hears_its_thread_alone():
    names = lambda: (  # noqa: E731
        *(random.Random.seed, random._urandom, os.urandom, random.seed, time.time, now),
        *(Datetime, datetime),
    )
    before = names()
    notes, over = [], threading.Event()

    def others():
        while not over.is_set():
            with noting(lambda kind: None):
                random.Random(0)
                default_rng()

    other = threading.Thread(target=others)
    other.start()
    try:
        for _ in range(20):
            with noting(notes.append):
                assert (random.Random(3).random(), random.Random.seed) != (0, before[0])
        assert notes == [GENERATOR] * 20
    finally:
        over.set()
        other.join()
    assert names() == before
    assert random.Random(3).random() == random.Random(3).random()


def test_a_trace_is_confirmed_once_in_a_process_and_another_one_anew():
    called, offset = [], [0.123456]

    def calls(ask):
        called.clear()
        looked_at(SOARE, made(ask))
        return len(called)

    def ask(key, state):
        called.append(0)
        return jax.random.uniform(key) + offset[0]

    first, second = calls(ask), calls(ask)
    assert second == first - 1 > 0
    offset[0] = 0.654321
    assert calls(ask) == first
    with pytest.raises(ValueError, match="makes a generator of its own"):
        calls(lambda key, state: ask(key, state) + 0.0 * default_rng(0).random())


def test_generators_are_known_before_and_after_they_become_old():
    known = randomness._Known()
    one = np.random.Generator(np.random.PCG64(1))
    is_listed = lambda generator: any(x is generator for x in known.all())  # noqa: E731
    assert is_listed(one)
    gc.collect()
    assert is_listed(one)
    two = random.Random(2)
    assert is_listed(two)
    assert is_listed(one)


def test_clocks_are_behind_for_functions_of_users_alone_and_not_for_ever():
    """One that waits for a moment that is known from outside goes on."""
    behind, day = [], 86_400 * 10**9
    begin, datetime_of_python = time.time(), Datetime
    with noting(behind.append), clocks_put_back(day):
        assert begin - 86_401 < now() < begin - 86_390
        assert time.localtime(begin) == time.localtime(begin)
        assert logging.makeLogRecord({}).created >= begin
        today, parsed = Datetime.now(), Datetime.fromisoformat("2000-01-01")
        assert datetime.datetime.fromtimestamp(begin) - today > datetime.timedelta(hours=23)
        assert {type(today), type(parsed), type(Datetime(2000, 1, 1))} == {datetime_of_python}
        assert isinstance(parsed, Datetime)
        assert issubclass(datetime_of_python, datetime.datetime)
        while time.time() < begin:
            pass
    assert now() >= begin
    assert len(behind) == new_generators.MOST_PUT_BACK + 1


def test_no_generator_is_missed_in_any_order_of_collections():
    known, alive, drawn = randomness._Known(), [], random.Random(0)
    for step in range(60):
        action = 2 if step == 30 else drawn.randrange(4)
        if action == 0:
            held = {"generator": drawn.choice([default_rng, random.Random])(1)}
            held["itself"] = held
            alive.append(held)
        elif action == 1 and alive:
            alive.pop(drawn.randrange(len(alive)))
        elif action == 2:
            gc.collect(2 if step == 30 else drawn.randrange(2))
        else:
            listed = {id(x) for x in known.all()}
            assert all(id(held["generator"]) in listed for held in alive)


@pytest.mark.skipif(randomness.INCREMENTAL, reason="any collection makes objects old")
def test_old_objects_are_looked_at_once(monkeypatch):
    """A process may have ten millions of them."""
    known, looked_at, among = randomness._Known(), [], randomness._among
    monkeypatch.setattr(randomness, "_among", lambda x: looked_at.append(len(x)) or among(x))
    known.all()
    for _ in range(3):
        looked_at.clear()
        gc.collect(1)
        known.all()
    assert sum(looked_at) < len(gc.get_objects(generation=2)) / 10
