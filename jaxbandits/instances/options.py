"""Options of constructors of instances: their checks, and the room that their tables take."""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from ..feature_tables import is_concrete, require
from ..parameters import Option, check, needing_values, options_of, size
from ..precision import CONFIG, THREEFRY
from ..signatures import hinting
from ..system.machine import in_gibibytes, memory_bytes
from ..whole_numbers import is_whole

P = ParamSpec("P")
R = TypeVar("R")

Pair: TypeAlias = Annotated[int, size(2)]  # of arms or dimensions, at least two
Triple: TypeAlias = Annotated[int, size(3)]

COPIES: int = 3  # of a table while it is built: the rows, those of the program, those that are kept


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a constructor of instances: the types of its signature are its checks.

    Options are declared as those of algorithms are, see `parameters`. Known values are checked and
    converted before anything is built; traced ones pass, and so does None where the type or the
    default allows it.

    Raises:
      ValueError: names the option, what it was and what is allowed; or the nearest option for a
        keyword that there is not.
    """
    signature, options = inspect.signature(function), options_of(function)
    needed = {p.name for p in needing_values(function)}

    @functools.wraps(function)
    def wrapped(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError:
            return hinted(*args, **keywords)  # Python's own error, or one with the nearest name
        if "key" in bound.arguments:
            check_key(bound.arguments["key"])
        given = {name: value for name, value in bound.arguments.items() if name in options}
        for name, value in given.items():
            (check_given if name in needed else check_option)(options[name], **{name: value})
            if value is not None and is_concrete(value):
                bound.arguments[name] = options[name].convert(value)
        return function(*bound.args, **bound.kwargs)

    hinted = hinting(function)
    return wrapped


def check_key(key: Any) -> None:
    """Raise unless this is a random key of JAX, a new or an old one."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    words = 2 if CONFIG.jax_default_prng_impl == THREEFRY else 4
    old = dtype == jnp.uint32 and shape == (words,)
    require(new or old, "key must be one key of JAX, jax.random.key(0) say", key)


def check_option(option: Option, **value: Any) -> None:
    """Raise unless the value of the one keyword is None or what `option` allows."""
    ((name, number),) = value.items()
    if number is not None:
        check(name, option, number)
        written = option.convert is not int or is_whole(number)
        require(written, f"{name} must be written as a whole number here", number)


def check_given(option: Option, **value: Any) -> None:
    """Raise unless the value of the one keyword is what `option` allows; None is not."""
    ((name, number),) = value.items()
    require(number is not None, f"{name} must be {option.allowed}, got None")
    check_option(option, **value)


def check_room(*shape: int, **sizes: Any) -> None:
    """Raise unless a table of this shape can be built in this machine's memory.

    Args:
      *shape: of the largest table.
      **sizes: the options that it follows from.
    """
    needed, memory = COPIES * 8 * math.prod(shape), memory_bytes()
    if needed > memory:
        raise ValueError(
            f"{' and '.join(sizes)} must be small enough for this machine: a table {list(shape)} "
            f"takes {in_gibibytes(needed)} while it is built, more than the memory of "
            f"{in_gibibytes(memory)}, got {' and '.join(map(str, sizes.values()))}"
        )
