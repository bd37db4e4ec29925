"""What a sweep may name: constructors, and the options that their signatures list."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from ..signatures import first_parameter

Constructor: TypeAlias = Callable[..., Any]
PartKind: TypeAlias = Literal["instance", "algorithm"]

# Arguments that the simulator supplies, and which are no options; the second, unless it is bound.
SUPPLIED: dict[PartKind, tuple[str, ...]] = {
    "instance": ("key",),
    "algorithm": ("arms", "targets"),
}
SUPPLIED_UNLESS_BOUND = ("theta",)


def constructors(kind: PartKind) -> dict[str, Constructor]:
    """Constructors by name."""
    from .. import algorithms, instances

    module = {"instance": instances, "algorithm": algorithms}[kind]
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in found.items() if not isinstance(thing, type)}


def options(kind: PartKind, constructor: Constructor) -> list[str]:
    """Names of what a table may set."""
    names = inspect.signature(constructor).parameters
    return [name for name in names if name not in SUPPLIED[kind]]


def may_be_inside(kind: PartKind, constructor: Constructor) -> bool:
    """Whether a constructor of another of its kind takes what this one makes."""
    from ..instances.contextual import CONSTRUCTORS  # their arms have no fixed means

    return not takes_another(kind, constructor) and constructor not in CONSTRUCTORS


def takes_another(kind: PartKind, constructor: Constructor) -> bool:
    """Whether it makes a constructor from another of its kind: `at_budget`, `stressed`."""
    return kind in inspect.signature(constructor).parameters


def is_random(constructor: Constructor) -> bool:
    """Whether the first parameter is a random key."""
    return first_parameter(constructor) == "key"


def required(kind: PartKind, constructor: Constructor) -> set[str]:
    """Names of the options without a default."""
    parameters = inspect.signature(constructor).parameters
    return {
        name
        for name in options(kind, constructor)
        if parameters[name].default is inspect.Parameter.empty
        and not (kind == "algorithm" and name in SUPPLIED_UNLESS_BOUND)
    }
