"""JAX's options on which numbers rest: the same in every call, whatever the caller has set.

An option of JAX may change which random numbers a key gives, how arrays of unlike shapes or types
combine, or whether programs may be compiled at all. What is computed here depends on the arguments
alone, so each entry of the package begins a block under `pinned`, as does each thread. Functions of
a user that are called inside are traced under these options too; after the block the caller's own
hold again. Inside a caller's `jit` the width of numbers, the precision of products and the mesh of
devices are the caller's: a program has one of each.

Options that only say how well XLA optimises, where it runs, or what it reports stay the caller's.
`jax_no_tracing` and `jax_no_execution` do too: they say that nothing is to be traced, or played.
"""

import atexit
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

import jax

from ..messages import brief
from .forks import check_not_forked
from .interrupts import end_in_order

P = ParamSpec("P")
R = TypeVar("R")

atexit.register(end_in_order)  # after what JAX has registered, so that it comes before

CONFIG: Any = jax.config  # JAX adds its options as attributes when it is imported
# Options that a caller's program keeps.
WIDTH: dict[str, Any] = {"jax_enable_x64": True, "jax_default_matmul_precision": None}
# Options that hold inside a caller's program too; some versions of JAX lack some of them.
ALWAYS: dict[str, Any] = {
    # Which random numbers a key gives.
    "jax_threefry_partitionable": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_enable_custom_prng": False,
    "jax_random_seed_offset": 0,
    "jax_high_dynamic_range_gumbel": False,
    "jax_safer_randint": True,
    "jax_accurate_erf_inv": False,
    # Which operations are errors, or are others.
    "jax_numpy_rank_promotion": "allow",
    "jax_numpy_dtype_promotion": "standard",
    "jax_legacy_prng_key": "allow",
    "jax_softmax_custom_jvp": False,
    "jax_scan3": False,
    # Whether an infinite index of an arm, a key that two functions get, or a compiled program is
    # allowed.
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_debug_key_reuse": False,
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_disable_jit": False,
    # Whether arrays may go to a device, and come back.
    "jax_transfer_guard_host_to_device": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
}
# None is no value of its own for a block: it stands for what holds outside of it.
UNSET: dict[str, Any] = dict.fromkeys((x for x in ALWAYS if "guard" in x), "allow")
NO_MESH: Any = jax.sharding.AbstractMesh((), ())
NO_DEVICE = RuntimeError, AssertionError  # what JAX raises where a device is not there


class _Options:
    """Some of JAX's options, and the values that they are to have."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._wanted = {x: value for x, value in wanted.items() if hasattr(CONFIG, x)}
        self._values = list(self._wanted.values())
        self._but_wide = [x != "jax_enable_x64" and y for x, y in self._wanted.items()]
        # Where JAX has them, its objects of options are read in half the time.
        holders = getattr(CONFIG, "_value_holders", {})
        known = all(x in holders for x in self._wanted)
        self._holders = [holders[x] for x in self._wanted] if known else None

    def changes(self) -> Sequence[AbstractContextManager[Any]]:
        """Blocks that give each option its value where it has another."""
        if self._holders is None:
            found = [getattr(CONFIG, x) for x in self._wanted]
        else:
            found = [holder.value for holder in self._holders]
        if found == self._values:
            return ()
        if found == self._but_wide:  # as for most callers; this is the quick way
            return (jax.enable_x64(True),)
        pairs = zip(self._wanted.items(), found, strict=True)
        return [_block(name, value) for (name, value), now in pairs if now != value]


def _block(name, value):
    """A block in which an option of JAX has a value; one of a thread where JAX has such blocks."""
    block = getattr(jax, name.removeprefix("jax_"), None)
    block = getattr(CONFIG, "_value_holders", {}).get(name) if block is None else block
    if block is None:
        raise ValueError(f"JAX's option {name} must be {value!r}, got {getattr(CONFIG, name)}")
    return block(UNSET.get(name, value))


ALL: _Options = _Options(WIDTH | ALWAYS)
BUT_WIDTH: _Options = _Options(ALWAYS)


class pinned:
    """A block in which JAX's options are those on which this package's numbers rest.

    Args:
      width: whether float64 is enabled too. Else that is as it is outside.
    Raises:
      RuntimeError: in a forked process in which JAX would hang.
      ValueError: JAX has none of the devices that its settings name.
    """

    __slots__ = ("_blocks", "_options")

    def __init__(self, *, width: bool = True) -> None:
        self._options = ALL if width else BUT_WIDTH
        self._blocks: Sequence[AbstractContextManager[Any]] = ()

    def __enter__(self) -> None:
        check_not_forked()
        self._blocks = self._options.changes()
        if self._options is ALL and not jax.sharding.get_abstract_mesh().empty:
            self._blocks = [*self._blocks, jax.sharding.use_abstract_mesh(NO_MESH)]
        for number, block in enumerate(self._blocks):
            try:
                block.__enter__()
            except BaseException:
                _leave(self._blocks[:number])
                raise

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _leave(self._blocks)
        if isinstance(error, NO_DEVICE):
            check_devices()


def _leave(blocks):
    """Leave blocks, the last first."""
    for block in reversed(blocks):
        block.__exit__(None, None, None)


def check_devices() -> None:
    """Raise where the settings of JAX name devices that are not there.

    Raises:
      ValueError: the setting and what JAX says of it.
    """
    try:
        jax.default_backend()
    except NO_DEVICE as error:
        names = CONFIG.jax_platforms or CONFIG.values.get("jax_platform_name")
        if not names:
            raise
        why = " ".join(str(error).split()) or "it is not there"
        message = (
            f"JAX_PLATFORMS must name devices of this machine, such as 'cpu', got {brief(names)}"
        )
        raise ValueError(f"{message}: {why}") from None


def pinning(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate an entry of the package: all in it but the width of numbers is pinned."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with pinned(width=False):
            return function(*args, **kwargs)

    return wrapped
