"""Rounds per second on an accelerator, by number of lanes, engine and precision."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.compilers.cpp import compiler
from jaxbandits.engine.checkpoints import rounds_of
from jaxbandits.engine.episode import Limits, root_key
from jaxbandits.engine.host_loop import HostLoop
from jaxbandits.engine.partition import as_tree, split

from .tasks import task_of

NAMES = (
    "lingape-soare",
    "lingape-sphere",
    "m-lingape-drug",
    "gse-16",
    "gse-64",
    "gse-64-d-opt",
    "glm-tsl",
    "rage-soare",
    "rage-sphere",
)
LANES = (131_072, 16_384, 4096, 256, 1_000_000)  # the most important first, in case time ends
MOST = 16_384  # of programs whose lanes hold so much that more would not fit
LARGE = ("glm-tsl", "rage-soare", "rage-sphere", "gse-64-d-opt")
SHARED_DESIGNS = ("rage-soare", "rage-sphere", "gse-64-d-opt")  # what one thread would do again
PER_LANE = 50  # replications, more than are played
SECONDS = 1.2  # of each measurement at least; a call takes about 0.3
SLOW = 5.0  # seconds of a first call that is measurement enough


def measure(names, lanes=LANES, seconds=SECONDS, within=480.0):
    """`{name: {lanes: {"float64": rounds per second, "cuda float64": ..., ...}}}`.

    All programs are compiled first, side by side, so that nothing else is at work while one plays.
    What does not begin `within` so many seconds is left out; half of them are for compiling. A row
    also has the joules that 10^9 rounds take, where the device tells it.
    """
    results, began = {name: {} for name in names}, time.monotonic()
    tasks = {name: task_of(name) for name in names}
    rows = [(n, k) for k in lanes for n in names if k <= MOST or n not in LARGE]

    def loop(name, number, engine, width):
        if time.monotonic() - began > within / 2:
            return None
        found = loop_of(tasks[name], number, width, engine)
        return found if found.shape.engine == engine else None  # XLA plays for another

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = {
            row: {way: pool.submit(loop, *row, *way) for way in _ways(row[0])} for row in rows
        }
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    for (name, number), loops in compiled.items():
        if time.monotonic() - began < within:
            results[name][number] = _row(name, number, loops, seconds)
    return {name: dict(sorted(by_lanes.items())) for name, by_lanes in results.items()}


def _ways(name):
    """The pairs of engine and precision in which a task is played here."""
    ways = [("xla", "float64"), ("xla", "float32")]
    if jax.default_backend() == "gpu" and name not in SHARED_DESIGNS:
        ways.append(("cuda", "float64"))
    if jax.default_backend() == "cpu" and compiler():  # of the same machine, to compare with
        ways.append(("native", "float64"))
    return ways


def _row(name, lanes, loops, seconds):
    """The figures of a row, from the compiled loops as futures; None for one left out."""
    row = {}
    for (engine, width), future in loops.items():
        label = width if engine == "xla" else f"{engine} {width}"
        try:
            if loop := future.result():
                row[label], joules = rate(loop, PER_LANE * lanes, width, seconds)
                if joules is not None:
                    row[f"joules, {label}"] = joules
        except Exception as error:  # out of memory, say; what was measured stays
            print(f"{label}, {lanes} lanes: {str(error)[:200]}", flush=True)
    shown = "   ".join(f"{key} {value:.4g}" for key, value in row.items())
    print(f"{name:16s} {lanes:8d} lanes   {shown or 'not played'}", flush=True)
    return row


def rate(loop, replications, width, seconds=SECONDS):
    """Useful rounds per second, without compilation, and joules for 10^9 of them or None.

    The public interface always computes in float64, so this calls the engine,
    which also has float32. Lanes are refilled all the time; how they run dry is not measured.
    """
    with jax.enable_x64(width == "float64"):
        played, taken, joules = _play(loop, replications, 0.0)  # this warms the device up
        if taken < SLOW:
            played, taken, joules = _play(loop, replications, seconds)
    return played / taken, None if joules is None else 1e9 * joules / played


def loop_of(task, lanes, width, engine):
    """The compiled loop of a task, in a precision."""
    free = task.horizon is None
    structure, numbers = split((task.instance, as_tree(task.algorithm), task.horizon))
    with jax.enable_x64(width == "float64"):
        return HostLoop(
            structure,
            tuple(jnp.asarray(np.asarray(x), _narrow(x, width)) for x in numbers),
            root_key(0),
            replications=PER_LANE * lanes,
            batch=lanes,
            limits=Limits(2**30, 2**30) if free else Limits(task.horizon, task.horizon),
            rounds=[] if free else rounds_of("mixed", task.horizon),
            engine=engine,
        )


def _play(loop, replications, seconds):
    """Play until so many seconds are over; returns useful rounds, seconds and joules."""
    before, joules, began = loop.useful, _joules(), time.perf_counter()
    taken = 0.0
    for _ in loop.run(np.arange(replications)):
        taken = time.perf_counter() - began
        if taken > seconds and loop.useful > before:  # the first calls may only fill lanes
            break
    joules = None if joules is None else _joules() - joules
    (jnp.zeros(()) + 1).block_until_ready()  # what the device has begun in the meantime
    return loop.useful - before, taken, joules


def _joules():
    """What the first GPU has used so far; None where nothing tells."""
    try:
        import pynvml

        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000
    except Exception:  # no such package, no such device, or it does not know
        return None


def _narrow(x, width):
    return width if np.issubdtype(np.asarray(x).dtype, np.floating) else None
