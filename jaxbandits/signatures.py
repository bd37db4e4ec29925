"""Options by name: what a constructor can be given, and which name was meant."""

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any


def function_of(build: Callable[..., Any]) -> Callable[..., Any]:
    """The constructor itself, without the options that `functools.partial` binds to it."""
    return build.func if isinstance(build, functools.partial) else build


def name_of(build: Callable[..., Any]) -> str:
    """What messages call a constructor."""
    function = function_of(build)
    return getattr(function, "__name__", repr(function))


def unknown(what: str, name: Any, known: Collection[str]) -> ValueError:
    """A `ValueError` that gives the nearest known name, and lists all of them."""
    near, listed = nearest(name, known), ", ".join(sorted(known)) or "none"
    hint = f"did you mean {near!r}? " if near else ""
    return ValueError(f"unknown {what} {name!r}; {hint}allowed: {listed}")


def nearest(name: Any, known: Collection[str]) -> str | None:
    """The known name that is most like `name`, or None."""
    if not isinstance(name, str):
        return None
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), None)


def check_options(role: str, build: Callable[..., Any], supplied: int = 1) -> None:
    """Raise unless a constructor has every option that is bound to it by name.

    Args:
      role: "algorithm", "instance" or "constructor", for messages.
      build: the constructor, or `functools.partial` of it.
      supplied: how many of its first arguments come from the simulator (the arms, the key) and
        are no options.
    Raises:
      ValueError: gives the option, the nearest one, and all that are allowed.
    """
    bound = isinstance(build, functools.partial)
    args, options = (build.args, build.keywords) if bound else ((), {})
    function, name = function_of(build), name_of(build)
    if hasattr(function, "convert") and args:
        raise ValueError(f"{role} {name} must have its options bound by name, not by position")
    try:
        parameters = _parameters(function)
    except (TypeError, ValueError):  # some callables have no signature that Python can read
        return
    if role != "instance" and [p.name for p in parameters[:1]] == ["algorithm"]:
        call = f"call it: {name}(lingape), say, in place of partial({name}, lingape)"
        raise ValueError(f"{role} {name} makes a constructor from another one; {call}")
    allowed = [p.name for p in parameters[len(args) + supplied :] if p.kind is not p.VAR_POSITIONAL]
    variable = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for option in () if variable else options:
        if option not in allowed:
            raise unknown(f"option of {name}", option, allowed)


@functools.lru_cache(maxsize=256)
def _parameters(function):
    return tuple(inspect.signature(function).parameters.values())


def first_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the first parameter, or None where there is none that Python can read."""
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):
        return None


def check_call(role: str, build: Callable[..., Any], /, *args: Any, **options: Any) -> None:
    """Raise unless a constructor can be called with these arguments.

    Raises:
      ValueError: names the argument that is missing or not expected.
    """
    try:
        inspect.signature(build).bind(*args, **options)
    except TypeError as error:
        raise ValueError(f"{role} {name_of(build)}: {error}") from None
