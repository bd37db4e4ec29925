"""What a call of `simulate` may ask of the machine, checked before anything compiles."""

import operator
import os
from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, cast

import jax
import numpy as np

from ..compilers.cpp import compiler
from ..compilers.cuda import found_library
from ..parameters import LARGEST, check, choice, require
from ..system.cores import usable_cores
from ..system.machine import in_gibibytes, memory_bytes
from ..whole_numbers import allowed_whole, is_whole, shown
from .device_loop import ENGINES, REPLICATIONS_PER_CELL


class Device(Protocol):
    """A `jax.Device`, of which JAX publishes no types."""

    @property
    def platform(self) -> str:
        """Such as "cpu"."""
        ...

    def __hash__(self) -> int: ...


# What a user gives as `devices`: "all", how many, or which; None for the default device.
DeviceChoice: TypeAlias = str | int | Sequence[Device] | np.ndarray | None
Devices: TypeAlias = tuple[Device, ...] | None

# The least and the largest. A replication's number shares 63 bits with that of its cell; the key
# of a seed has as many.
SIZES: dict[str, tuple[int, int]] = {
    "replications": (1, REPLICATIONS_PER_CELL),
    "seed": (0, 2**63 - 1),
    "max_pulls": (1, LARGEST),
    "horizon": (1, LARGEST),
    "batch": (1, LARGEST),
    "cores": (1, 2**12),
}
# Within a round lanes need several times what they carry from round to round.
WITHIN_A_ROUND: int = 4


def size_of(name: str, value: Any) -> int:
    """One of `SIZES` as an integer of Python, for those of NumPy overflow in sums and products.

    Raises:
      ValueError: it is no whole number, too small or too large.
    """
    least, most = SIZES[name]
    if not is_whole(value, least):
        raise ValueError(f"{name} must be {allowed_whole(least)}, got {shown(value)}")
    number = int(value)
    if number > most:
        raise ValueError(f"{name} must be at most {_power_of_two(most)}, got {number}")
    return number


def size_or_none(name: str, value: Any) -> int | None:
    """The same, or None where that is what was given."""
    return None if value is None else size_of(name, value)


def _power_of_two(number):
    """A power of 2, or one less, written as a power and as a number."""
    power = 1 << (number.bit_length() - 1)
    if number == power:
        return f"2**{number.bit_length() - 1} = {number}"
    return f"2**{number.bit_length()} - 1 = {number}"


def check_memory(replications: int, record_size: int) -> None:
    """Raise unless the results of all replications fit into this machine's memory.

    Args:
      replications: R.
      record_size: how many numbers, of 8 bytes each, the record of a replication has.
    """
    memory, each = memory_bytes(), 8 * record_size
    require(
        replications * each <= memory,
        f"replications must be at most {memory // each} here: each has {each} bytes of results, "
        f"and this machine a memory of {in_gibibytes(memory)}; {replications} would take "
        f"{in_gibibytes(replications * each)}",
    )


def check_lanes(lanes: int, each: int, fewest: int) -> None:
    """Raise unless what the lanes carry from round to round fits into this machine's memory.

    Args:
      lanes: of all devices together.
      each: bytes of all that a lane carries.
      fewest: the lanes that a `batch` of 1 would have.
    """
    memory = memory_bytes()
    enough = lanes > fewest and fewest <= lanes_at_ease(each)
    fewer = f" With `batch={fewest}` they would fit." if enough else ""
    require(
        lanes * each <= memory,
        f"the algorithm carries {in_gibibytes(each)} from round to round on this instance, and "
        f"{lanes} replications side by side {in_gibibytes(lanes * each)}: more than this machine's "
        f"memory of {in_gibibytes(memory)}.{fewer}",
    )


def check_program(needed: int) -> None:
    """Raise unless the bytes that a compiled program asks for fit into this machine's memory."""
    memory = memory_bytes()
    require(
        needed <= memory,
        f"a call of the compiled program needs {in_gibibytes(needed)} on this instance: more than "
        f"this machine's memory of {in_gibibytes(memory)}; fewer replications side by side "
        "(`batch`), arms or dimensions need less",
    )


def lanes_at_ease(each: int) -> int:
    """How many lanes of so many bytes this machine has room for, with all that a round needs."""
    return max(1, memory_bytes() // (WITHIN_A_ROUND * each))


def threads_that_fit(each: int) -> int:
    """How many threads this machine has room for that hold so many bytes each; at least one."""
    return max(1, memory_bytes() // max(1, each))


def cores_of(cores: int | None, devices: DeviceChoice = None) -> int:
    """How many cores may play at once; one where devices are given, which are cores of a CPU.

    Raises:
      ValueError: `cores` is no whole number, 1 or above, or it is given with devices; or the
        environment says something else.
    """
    given = size_or_none("cores", cores)
    if devices is None:
        return usable_cores() if given is None else given
    message = "cores must be None or 1 where devices are given, which share the work"
    require(given in (None, 1), f"{message}, got {shown(cores)}")
    return 1


def devices_of(devices: DeviceChoice) -> Devices:
    """A tuple of JAX devices of this process, or None for the default one."""
    if devices is None:
        return None
    local = tuple(jax.local_devices())
    if isinstance(devices, str):
        require(
            devices == "all",
            f"devices must be 'all', 1 to {len(local)}, or a sequence of devices",
            devices,
        )
        return local
    if is_whole(devices):
        chosen, number = operator.index(cast(SupportsIndex, devices)), len(local)
        message = f"devices must be 1 to {number}, got {chosen}: this process has {number}"
        require(1 <= chosen <= number, message)
        return local[:chosen]
    listed = isinstance(devices, list | tuple | np.ndarray) and np.shape(
        cast(Any, devices)
    ) not in ((), (0,))
    require(
        listed and all(device in local for device in devices),
        "devices must be 'all', a number, or some of this process",
        devices,
    )
    given = tuple(cast(Sequence[Device], devices))
    different = len(set(given)) == len(given)
    require(different, "devices must be different ones", devices)
    return given


def platform_of(devices: Devices) -> str:
    """The platform of the devices, such as "cpu"; None stands for the default device."""
    if devices is not None:
        return devices[0].platform
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    default = config.jax_default_device  # a device, or the name of a platform
    return jax.default_backend() if default is None else getattr(default, "platform", default)


def is_gpu(platform: str) -> bool:
    """Whether a platform is that of GPUs, whose name in JAX depends on who asks."""
    return platform in ("gpu", "cuda")


def check_engine_name(engine: str) -> None:
    """Raise unless the engine is one that a user can name."""
    check("engine", choice(*ENGINES), engine)


def check_engine(engine: str, devices: Devices) -> None:
    """Raise unless the engine is known, and the machine has what it needs."""
    check_engine_name(engine)
    platform = platform_of(devices)
    if engine == "native":
        require(platform == "cpu", f"engine 'native' is for a CPU, the device is a {platform}")
        message = (
            "engine 'native' needs a C++ compiler (g++, clang++, what CXX names, or the Python "
            "package ziglang), found none"
        )
        if named := os.environ.get("CXX"):
            message += f": CXX names {named!r}"
        require(compiler() is not None, message)
    if engine == "cuda":
        message = f"engine 'cuda' is for a GPU of NVIDIA, the device is a {platform}"
        require(is_gpu(platform), message)
        message = (
            "engine 'cuda' needs NVIDIA's run-time compiler (NVRTC), which comes with jax[cuda13], "
            "found none"
        )
        require(found_library() is not None, message)
