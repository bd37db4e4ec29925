"""Rounds per second on an accelerator, by number of lanes, engine and precision."""

import time

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
LANES = (256, 4096, 16_384, 131_072, 1_000_000)
MOST = 16_384  # of programs whose lanes hold so much that more would not fit
LARGE = ("glm-tsl", "rage-soare", "rage-sphere", "gse-64-d-opt")
SHARED_DESIGNS = ("rage-soare", "rage-sphere", "gse-64-d-opt")  # what one thread would do again
PER_LANE = 50  # replications, more than are played
SECONDS = 2.0  # of each measurement


def measure(names, lanes=LANES, seconds=SECONDS, within=480.0):
    """`{name: {lanes: {"float64": rounds per second, "cuda float64": ..., ...}}}`.

    What does not begin `within` so many seconds is left out. A row also has the joules that 10^9
    rounds take, where the device tells it.
    """
    results, began = {}, time.monotonic()
    for name in names:
        results[name], task = {}, task_of(name)
        for number in lanes:
            fits = number <= MOST or name not in LARGE
            if fits and time.monotonic() - began < within:
                results[name][number] = _row(name, task, number, seconds)
    return results


def _row(name, task, lanes, seconds):
    row = {}
    for width in ("float64", "float32"):
        _put(row, "xla", task, lanes, width, seconds)
    if jax.default_backend() == "gpu" and name not in SHARED_DESIGNS:
        _put(row, "cuda", task, lanes, "float64", seconds)
    if jax.default_backend() == "cpu" and compiler():  # of the same machine, to compare with
        _put(row, "native", task, lanes, "float64", seconds)
    shown = "   ".join(f"{key} {value:.4g}" for key, value in row.items())
    print(f"{name:16s} {lanes:8d} lanes   {shown or 'out of memory'}", flush=True)
    return row


def _put(row, engine, task, lanes, width, seconds):
    """Measure and put the figures into a row; none where there is not enough memory."""
    label = width if engine == "xla" else f"{engine} {width}"
    try:
        row[label], joules = rate(task, lanes, width, engine, seconds)
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        print(f"{label}, {lanes} lanes: {str(error)[:200]}", flush=True)
        return
    if joules is not None:
        row[f"joules, {label}"] = joules


def rate(task, lanes, width, engine="xla", seconds=SECONDS):
    """Useful rounds per second, without compilation, and joules for 10^9 of them or None.

    The public interface always computes in float64, so this calls the engine,
    which also has float32. Lanes are refilled all the time; how they run dry is not measured.
    """
    with jax.enable_x64(width == "float64"):
        loop, replications = loop_of(task, lanes, width, engine), PER_LANE * lanes
        _play(loop, replications, 0.0)  # warms the device up
        before, joules = loop.useful, _joules()
        taken = _play(loop, replications, seconds)
        played = loop.useful - before
        energy = None if joules is None else 1e9 * (_joules() - joules) / played
        return played / taken, energy


def loop_of(task, lanes, width, engine):
    """The compiled loop of a task, in the precision that JAX has now."""
    free = task.horizon is None
    structure, numbers = split((task.instance, as_tree(task.algorithm), task.horizon))
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
    """Play until so many seconds are over; returns how many there were."""
    began = time.perf_counter()
    for _ in loop.run(np.arange(replications)):
        if time.perf_counter() - began > seconds:
            break
    return time.perf_counter() - began


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
