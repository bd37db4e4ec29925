"""What a call of `simulate` may ask of the machine, checked before anything compiles."""

import jax
import numpy as np

from .batch import ENGINES
from .native import compiler
from .options import require


def check_sizes(replications, seed, max_pulls, horizon, batch):
    """Raise unless all are whole numbers, large enough."""
    for name, value, least in (
        ("replications", replications, 1),
        ("seed", seed, 0),
        ("max_pulls", max_pulls, 1),
        ("horizon", horizon, 1),
        ("batch", batch, 1),
    ):
        if value is None and name in ("horizon", "batch"):
            continue
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(
            whole and value >= least, f"{name} must be a whole number, {least} or above: {value!r}"
        )


def devices_of(devices):
    """A tuple of JAX devices of this process, or None for the default one."""
    if devices is None:
        return None
    here = tuple(jax.local_devices())
    if isinstance(devices, str):
        require(devices == "all", f"devices must be 'all', a number or a sequence, got {devices!r}")
        return here
    if isinstance(devices, int | np.integer):
        require(1 <= devices <= len(here), f"devices must be 1 to {len(here)}, got {devices}")
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
