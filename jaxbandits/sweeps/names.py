"""What a sweep may name: constructors, and the options that their signatures list."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from ..signatures import first_parameter
from ..system.plugins import Catalogue, PluginFile

Constructor: TypeAlias = Callable[..., Any]
PartKind: TypeAlias = Literal["instance", "algorithm"]

# Arguments that the simulator supplies, and which are no options; the second, unless it is bound.
SUPPLIED: dict[PartKind, tuple[str, ...]] = {
    "instance": ("key",),
    "algorithm": ("arms", "targets"),
}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # no names
SUPPLIED_UNLESS_BOUND = ("theta",)


def constructors(kind: PartKind, plugins: Sequence[PluginFile] = ()) -> Catalogue[Constructor]:
    """Constructors by name: those of this package, of installed plugins, and of plugin files."""
    from .. import algorithms, instances

    module = {"instance": instances, "algorithm": algorithms}[kind]
    found = {name: getattr(module, name) for name in module.__all__}
    own = {name: thing for name, thing in found.items() if not isinstance(thing, type)}
    allowed = "a constructor, its options bound by name if at all"
    return Catalogue(kind, own, plugins, allowed=allowed, fits=_is_constructor)


def _is_constructor(thing: Any) -> bool:
    """Whether a sweep can use what a plugin offers: its signature says which options there are."""
    bound = isinstance(thing, functools.partial)
    if (bound and thing.args) or isinstance(thing, type) or not callable(thing):
        return False
    try:
        inspect.signature(thing)
    except (TypeError, ValueError):
        return False
    return True


def options(kind: PartKind, constructor: Constructor) -> list[str]:
    """Names of what a table may set."""
    parameters = inspect.signature(constructor).parameters.values()
    return [p.name for p in parameters if p.name not in SUPPLIED[kind] and p.kind not in VARIABLE]


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
