"""What a call of `simulate` may ask of the machine, checked before anything compiles."""

import os

import jax
import numpy as np

from ..compilers.cpp import compiler
from ..parameters import LARGEST, require
from .device_loop import ENGINES, SPAN

# The least and the largest. A replication's number shares 63 bits with that of its world; the key
# of a seed has as many.
SIZES = {
    "replications": (1, SPAN),
    "seed": (0, 2**63 - 1),
    "max_pulls": (1, LARGEST),
    "horizon": (1, LARGEST),
    "batch": (1, LARGEST),
}


def check_sizes(replications, seed, max_pulls, horizon, batch):
    """Raise unless all are whole numbers that are neither too small nor too large."""
    values = (replications, seed, max_pulls, horizon, batch)
    for (name, (least, most)), value in zip(SIZES.items(), values, strict=True):
        if value is None and name in ("horizon", "batch"):
            continue
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(
            whole and value >= least, f"{name} must be a whole number, {least} or above: {value!r}"
        )
        require(value <= most, f"{name} must be at most {_power_of_two(most)}, got {value}")


def _power_of_two(number):
    """A number about as large as a power of 2, as people write it."""
    power = 1 << (number.bit_length() - 1)
    if number == power:
        return f"2**{number.bit_length() - 1} = {number}"
    return f"2**{number.bit_length()} - 1 = {number}"


def check_memory(replications, numbers):
    """Raise unless the results of all replications fit into this machine's memory.

    Args:
      replications: R.
      numbers: in the record of each, of 8 bytes.
    """
    memory, each = memory_bytes(), 8 * numbers
    require(
        replications * each <= memory,
        f"replications must be at most {memory // each} here: each has {each} bytes of results, "
        f"and this machine a memory of {memory / 2**30:.1f} GiB; {replications} would take "
        f"{replications * each / 2**30:.1f} GiB",
    )


def memory_bytes():
    """The memory of this machine; endless where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**62


def devices_of(devices):
    """A tuple of JAX devices of this process, or None for the default one."""
    if devices is None:
        return None
    here = tuple(jax.local_devices())
    if isinstance(devices, str):
        require(devices == "all", f"devices must be 'all', a number or a sequence, got {devices!r}")
        return here
    if isinstance(devices, int | np.integer):
        told = f"devices must be 1 to {len(here)}, got {devices}: this process has {len(here)}"
        require(1 <= devices <= len(here), told)
        return here[:devices]
    listed = isinstance(devices, list | tuple | np.ndarray) and len(devices) > 0
    require(
        listed and all(one in here for one in devices),
        f"devices must be 'all', a number, or some of this process, got {devices!r}",
    )
    return tuple(devices)


def check_engine(engine, devices):
    """Raise unless the engine is known and there is what it needs."""
    names = ", ".join(map(repr, ENGINES))
    require(engine in ENGINES, f"engine must be one of {names}, got {engine!r}")
    if engine == "native":
        platform = jax.default_backend() if devices is None else devices[0].platform
        require(platform == "cpu", f"engine 'native' is for a CPU, the device is a {platform}")
        wanted = "engine 'native' needs a C++ compiler (g++, clang++ or what CXX names), found none"
        require(compiler(), wanted)
