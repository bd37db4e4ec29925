"""Rounds per second on an accelerator, by number of lanes and precision."""

import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.engine.episode import Limits, root_key
from jaxbandits.engine.host_loop import HostLoop
from jaxbandits.engine.partition import as_tree, split

from .tasks import task_of

LANES = (256, 1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
NAMES = ("lingape-soare", "lingape-sphere", "gse-16")
CALLS = 4  # replications per lane


def measure(names, lanes=LANES):
    """`{name: {lanes: {"float64": rounds per second, "float32": ...}}}`."""
    results = {}
    for name in names:
        results[name], task = {}, task_of(name)
        for number in lanes:
            row = {}
            for width in ("float64", "float32"):
                # Out of memory: report it and keep the results of the smaller sizes.
                with contextlib.suppress(jax.errors.JaxRuntimeError, MemoryError):
                    row[width] = rate(task, number, width)
            results[name][number] = row
            shown = "   ".join(f"{width} {found:10.4g} rounds/s" for width, found in row.items())
            print(f"{name:20s} {number:8d} lanes   {shown or 'out of memory'}", flush=True)
    return results


def rate(task, lanes, width):
    """Useful rounds per second, without compilation.

    The public interface always computes in float64, so this calls the engine,
    which also has float32.
    """
    with jax.enable_x64(width == "float64"):
        structure, numbers = split((task.instance, as_tree(task.algorithm), None))
        numbers = tuple(jnp.asarray(np.asarray(x), _narrow(x, width)) for x in numbers)
        most = Limits(2**30, 2**30)
        loop = HostLoop(
            structure,
            numbers,
            root_key(0),
            replications=CALLS * lanes,
            batch=lanes,
            limits=most,
            rounds=[],
        )
        for _ in loop.run(range(lanes)):  # warms the device up
            pass
        before, began = loop.useful, time.perf_counter()
        for _ in loop.run(range(CALLS * lanes)):
            pass
        return (loop.useful - before) / (time.perf_counter() - began)


def _narrow(x, width):
    return width if np.issubdtype(np.asarray(x).dtype, np.floating) else None
