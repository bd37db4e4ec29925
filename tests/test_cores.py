"""Threads that share the replications of a simulation: numbers, errors, and how many there are."""

import itertools
import math
import os
import signal
import sys
import threading
import time
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import CASES, named
from params import params
from programs import LANES, USUAL_LANES
from run_settings import SOARE, child

import jaxbandits as jb
from jaxbandits.engine import checks, choices, host_loop
from jaxbandits.engine.api import Simulation
from jaxbandits.engine.partition import prepared
from jaxbandits.sweeps import cluster
from jaxbandits.system import cores, keeping, threads
from jaxbandits.system.threads import merged

MANY = 3 * LANES + 5  # replications, for which four threads have lanes
LINGAPE = partial(jb.lingape, delta=0.1)
NAME = attrgetter("name")


@pytest.fixture(autouse=True)
def _small_work_is_shared(monkeypatch):
    """Else what the tests play is over before threads would save time; afterwards none goes on."""
    monkeypatch.setattr(host_loop, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(host_loop, "SHARED_SECONDS", 0.0)
    yield
    ours = [thread for thread in threading.enumerate() if thread.name == threads.NAME]
    for thread in ours:  # after an interrupt it ends with its call
        thread.join(60)
    assert not any(thread.is_alive() for thread in ours)


def tables(runs):
    """All arrays of some runs, by name."""
    names = "replication", "pulls", "answer", "correct", "stopped", "arm_pulls", "rounds", "regret"
    found = {name: getattr(runs, name) for name in names if getattr(runs, name) is not None}
    return found | runs.info | runs.facts


def assert_same_bits(one, other):
    """Fail unless all arrays of two runs have the same bytes."""
    first, second = tables(one), tables(other)
    assert first.keys() == second.keys()
    for name, table in first.items():
        assert table.dtype == second[name].dtype
        assert table.tobytes() == second[name].tobytes(), name


def simulate(case=None, **options):
    """Runs of a case, LinGapE on Soare's instance by default, by the program of all tests of it."""
    case = named("lingape") if case is None else case
    options = {"batch": LANES, "replications": MANY} | options
    return jb.simulate(case.instance, case.build, **options, **case.options)


@pytest.mark.parametrize(
    ("case", "engine"),
    [
        *params(CASES, "native", always=("lingape", "gse_uniform", "lin_ucb"), name=NAME),
        *params(CASES, "xla", always=("lingape",), name=NAME),
    ],
)
def test_the_number_of_cores_changes_no_bit(case, engine, monkeypatch):
    one = simulate(case, engine=engine, cores=1)
    assert one.meta["cores"] == 1
    monkeypatch.setattr(keeping, "_compiled", None)  # threads share the program of one core
    for number in (2, 3, 9):
        runs = simulate(case, engine=engine, cores=number)
        assert runs.meta["cores"] == min(number, 4)
        assert_same_bits(runs, one)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deep_fpl", "deep_fl", "rep_glm_fpl"])
def test_lanes_in_turn_are_one_program_of_a_lane(name, monkeypatch):
    """Their default number depends on the number of cores."""
    monkeypatch.setattr(choices, "_default_lanes", USUAL_LANES)
    one, several = (simulate(named(name), batch=None, cores=number) for number in (1, 3))
    assert_same_bits(several, one)
    alone = simulate(named(name), batch=1, cores=2)
    assert alone.meta["cores"] == 2
    assert_same_bits(alone, one)


def test_how_the_replications_are_dealt_out_changes_no_number(monkeypatch):
    expected = simulate(replications=500)
    monkeypatch.setattr(host_loop, "CALL_SECONDS", 1e-9)  # many calls give back what waits
    found = simulate(replications=500, cores=3)
    assert found.meta["cores"] == 3
    assert found.meta["lane_use"] > 0.5
    assert_same_bits(found, expected)


@pytest.mark.slow
def test_debugging_and_several_cells_give_the_same_runs():
    assert_same_bits(simulate(debug=True, cores=2), simulate())
    cells = [prepared(jb.instances.soare(3, angle=a, scale=2.0), LINGAPE) for a in (0.4, 0.5)]
    waiting = {0: np.arange(40), 1: np.arange(30)}

    def play(number):
        simulation = Simulation(cells, replications=70, batch=LANES, cores=number)
        return simulation.run(waiting, lambda *_: None)

    one, two = play(1), play(2)
    for cell, runs in one.items():
        assert_same_bits(two[cell], runs)


def test_a_sweep_that_ends_cells_early_has_the_same_numbers(tmp_path):
    def swept(number, **options):
        return jb.sweep(
            {"soare": SOARE},
            {"LinGapE": LINGAPE},
            replications=400,
            until={"error_width": 0.05},
            batch=LANES,
            cores=number,
            progress=False,
            **options,
        )

    one = swept(1, out=tmp_path)
    two = swept(2, out=tmp_path, resume=False)
    assert int(one.replications.min()) < 400
    for name in ("pulls", "arm_pulls", "answers", "replications"):
        np.testing.assert_array_equal(one[name], two[name])
    assert swept(3, out=tmp_path).pulls.equals(two.pulls)  # all of it is stored


def test_a_device_that_the_caller_has_set_plays_in_all_threads():
    with jax.default_device(jax.devices()[2]):
        found = simulate(cores=2)
    assert_same_bits(found, simulate())


def test_calls_of_several_threads_may_use_several_cores_each():
    expected, found = simulate(), {}

    def play(number):
        found[number] = simulate(cores=2)

    callers = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for number in range(2):
        assert_same_bits(found[number], expected)


# Errors and interrupts.


def test_an_interrupt_returns_what_is_done_and_ends_all_threads():
    def impatient(done, total):
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="of 2000 replications are done"):
        runs = simulate(replications=2000, cores=2, progress=impatient)
    whole = simulate(replications=2000)
    assert 5 <= len(runs) < 2000
    np.testing.assert_array_equal(runs.pulls, whole.pulls[runs.replication])


def test_ctrl_c_ends_the_wait_for_the_threads():
    case = named("lin_ucb")
    press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    press.start()
    with pytest.raises(KeyboardInterrupt, match="interrupted: 0 of"):
        jb.simulate(
            case.instance, case.build, replications=MANY, batch=LANES, horizon=2**40, cores=2
        )
    assert time.monotonic() - began < 120


def test_a_fault_of_an_algorithm_is_one_error():
    def beyond(arms):
        inner = jb.uniform(arms)
        ask = lambda key, state: inner.ask(key, state)._replace(arm=jnp.array(9))  # noqa: E731
        return inner._replace(ask=ask)

    build = jb.at_budget(beyond, 20)
    with pytest.raises(ValueError, match="has drawn arms that do not exist"):
        jb.simulate(SOARE, build, replications=MANY, batch=LANES, cores=3)


class Rewards(NamedTuple):
    """Rewards of a function of Python."""

    means: Any

    def reward(self, key, arm):
        shape = jax.ShapeDtypeStruct((), float)
        words = jax.random.key_data(key)
        return jax.pure_callback(draw, shape, words, self.means[arm], vmap_method="sequential")


CALLS = itertools.count()
SERVED = math.inf  # calls, before there is an error


def draw(words, mean):
    if next(CALLS) > SERVED:
        raise ConnectionError("the server is gone")
    return np.random.default_rng(words).normal() + mean


def test_functions_of_python_are_called_by_all_threads_and_may_fail(monkeypatch):
    options = {"means": [0.0, -1.0], "noise_var": 1.0, "draws": 50}
    instance = jb.instances.simulated(np.eye(2), Rewards(np.array([0.0, -1.0])), **options)
    halving = partial(jb.sequential_halving, budget=8)
    play = partial(jb.simulate, instance, halving, replications=60, batch=8)
    one, three = play(cores=1), play(cores=3)
    assert three.meta["cores"] == 3
    assert_same_bits(three, one)
    monkeypatch.setattr(sys.modules[__name__], "SERVED", next(CALLS) + 100)
    with pytest.raises(ValueError, match="raised ConnectionError: the server is gone"):
        play(cores=3)


# `merged`.


def counted(limit=math.inf):
    """Numbers from 0 on."""
    yield from itertools.takewhile(lambda number: number < limit, itertools.count())


def test_all_that_the_iterators_give_is_given():
    assert sorted(merged([counted(5), counted(3), counted(0)])) == [0, 0, 1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_one_ends_the_others(error):
    def fails():
        yield from counted(3)
        raise error("the one")

    with pytest.raises(error, match="the one"):
        for _ in merged([counted(), fails(), counted()]):
            pass


def test_an_interrupt_does_not_wait_for_what_takes_long(monkeypatch):
    over, left = threading.Event(), []
    monkeypatch.setattr(threads, "goes_on", left.append)

    def long():
        over.wait(60)
        yield 0

    def interrupted():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(merged([long(), interrupted()]))
    assert not over.is_set()
    over.set()
    (wait,) = left  # what the end of the process waits for
    wait()


def test_an_error_while_an_iterator_is_made_ends_the_others():
    def made():
        yield counted()
        raise ValueError("no memory")

    with pytest.raises(ValueError, match="no memory"):
        list(merged(made()))


def test_results_do_not_pile_up():
    made = itertools.count()

    def slow():
        for _ in range(50):
            next(made)
            yield 0

    results = merged([slow(), slow()])
    next(results)
    time.sleep(0.2)
    assert next(made) <= threads.MOST_RESULTS + 3
    results.close()


def test_options_of_jax_are_pinned_in_each_thread():
    def width():
        yield bool(jax.config.jax_enable_x64)  # ty: ignore[unresolved-attribute]

    with jax.enable_x64(False):
        assert list(merged([width(), width()])) == [True, True]


# How many.


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many cores, and what the environment says."""

    def with_cores(number, variable=None, quota=cores.UNLIMITED):
        monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(number)))
        monkeypatch.setattr(cores, "quota", lambda: quota)
        if variable is None:
            monkeypatch.delenv(cores.VARIABLE, raising=False)
        else:
            monkeypatch.setenv(cores.VARIABLE, variable)

    return with_cores


@pytest.mark.parametrize(
    ("number", "variable", "quota", "usable"),
    [
        (4, None, cores.UNLIMITED, 4),
        (4, "", 3, 3),
        (4, " 2 ", 3, 2),
        (4, "16", cores.UNLIMITED, 4),
        (1, None, 3, 1),
    ],
)
def test_as_many_cores_as_the_process_may_use(machine, number, variable, quota, usable):
    machine(number, variable, quota)
    assert cores.usable_cores() == usable == checks.cores_of(None)
    assert checks.cores_of(7) == 7
    assert checks.cores_of(None, 1) == 1


@pytest.mark.parametrize("variable", ["abc", "0", "-1", "1.5", "True"])
def test_a_variable_that_is_no_number_is_refused(machine, variable):
    machine(2, variable)
    message = f"JAXBANDITS_CORES must be a whole number, 1 or above, got '{variable}'$"
    with pytest.raises(ValueError, match=message):
        simulate()


@pytest.mark.parametrize("odd", [True, 0, -1, 1.5, "2", [2]])
def test_a_number_of_cores_that_is_none_is_refused(odd):
    for play in (
        simulate,
        partial(jb.sweep, {"s": SOARE}, {"l": LINGAPE}, replications=2, progress=False),
        partial(jb.compare, {"l": LINGAPE}, SOARE, replications=2),
    ):
        with pytest.raises(ValueError, match=r"^cores must be a whole number, 1 or above, "):
            play(cores=odd)


def test_devices_are_not_divided_further():
    with pytest.raises(ValueError, match="cores must be None or 1 where devices are given"):
        simulate(devices=2, cores=2)
    assert simulate(devices=2, cores=1).meta["cores"] == 2


@pytest.mark.parametrize(
    ("files", "cores_allowed"),
    [
        ({"cgroup": "0::/a/b", "a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),
        ({"cgroup": "0::/seen/outside/alone", "cpu.max": "300000 100000"}, 3),
        ({"cgroup": "0::/", "cpu.max": "1000 100000"}, 1),
        ({"cgroup": "0::/"}, cores.UNLIMITED),
        (
            {
                "cgroup": "3:cpu,cpuacct:/job\n2:memory:/\n0::/",
                "cpu/job/cpu.cfs_quota_us": "400000",
                "cpu/job/cpu.cfs_period_us": "100000",
                "cpu/cpu.cfs_quota_us": "-1",
                "cpu/cpu.cfs_period_us": "100000",
            },
            4,
        ),
        ({}, cores.UNLIMITED),
    ],
)
def test_the_quota_of_a_control_group_is_read(tmp_path, files, cores_allowed):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert cores.quota(tmp_path / "cgroup", tmp_path) == cores_allowed


CHILDREN = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from jaxbandits.system.cores import usable_cores

if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(usable_cores(), pool.submit(usable_cores).result())
"""


def test_a_process_of_multiprocessing_uses_one(machine, monkeypatch):
    machine(4)
    monkeypatch.setattr(cores.multiprocessing, "parent_process", lambda: object())
    assert cores.usable_cores() == 1


@pytest.mark.slow
def test_a_spawned_process_uses_one(tmp_path):
    path = tmp_path / "children.py"
    path.write_text(CHILDREN)
    code = f"import runpy, sys; sys.argv = [{str(path)!r}]; "
    code += f"runpy.run_path({str(path)!r}, run_name='__main__')"
    found = child(code, JAXBANDITS_CORES="4")
    assert found.split() == [str(min(4, len(os.sched_getaffinity(0)), cores.quota())), "1"]


def test_few_replications_stay_on_one_core(machine, monkeypatch):
    machine(8)
    assert simulate(replications=LANES).meta["cores"] == 1
    assert simulate(replications=2 * LANES + 1).meta["cores"] == 3
    monkeypatch.setattr(host_loop, "SHARED_SECONDS", 1e6)
    monkeypatch.setattr(host_loop, "ALONE_SECONDS", 1e6)
    assert simulate().meta["cores"] == 1  # what is left takes less
    monkeypatch.setattr(host_loop, "SHARED_SECONDS", 0.0)
    assert simulate(replications=500).meta["cores"] == 8


def test_threads_take_even_shares_of_what_has_not_ended():
    waiting = host_loop.Waiting(range(100))
    assert waiting.take(70, 0)[0].tolist() == list(range(70))
    waiting.settle(np.arange(10, 70), 4)
    assert (len(waiting), waiting.unfinished) == (90, 96)
    waiting.threads = 3  # 96 have not ended, of which one plays 6
    taken, more = waiting.take(70, 6)
    assert (taken.tolist(), more) == (list(range(10, 36)), True)
    assert waiting.take(70, 32)[0].size == 0
    assert waiting.take(70, 33) == (pytest.approx([]), False)  # it has more than its share
    assert [waiting.take(70, 0)[0].size for _ in range(3)] == [32, 32, 0]
    waiting.settle(taken[::-1], 0)
    waiting.leave()
    waiting.leave()
    assert waiting.take(70, 50)[0].tolist() == list(range(10, 36))


@pytest.mark.parametrize(("lanes_held", "number"), [(1.5, 1), (3.5, 3)])
def test_no_more_threads_than_there_is_memory_for(monkeypatch, lanes_held, number):
    loop = Simulation([prepared(SOARE, LINGAPE)], replications=MANY, batch=LANES)._loop
    each = loop._bytes + host_loop._bytes_of(loop._compiled_loop)
    monkeypatch.setattr(checks, "memory_bytes", lambda: 0)
    monkeypatch.setattr(checks, "check_memory", lambda *_: None)
    assert checks.threads_that_fit(each) == 1
    monkeypatch.setattr(checks, "memory_bytes", lambda: int(each * lanes_held))
    assert checks.threads_that_fit(each) == number


def test_a_piece_of_work_of_a_cluster_takes_one_core():
    client = SimpleNamespace(submit=lambda *_, **__: None)
    for given, number in ((None, 1), (3, 3)):
        pieces = cluster._Pieces(client, None, [], None, {"cores": given})
        assert pieces._how["cores"] == number


def test_what_is_printed_says_how_many_played():
    assert "2 cores, " in repr(simulate(cores=2))
    assert "core" not in repr(simulate())
