"""What a sweep may name: constructors, and the options their signatures list."""

import inspect

SUPPLIED = {"instance": ("key",), "algorithm": ("arms", "targets")}  # by the simulator
TOLD = ("theta",)  # by it too, unless a table says otherwise


def constructors(kind):
    """Constructors by name; `kind` is "instance" or "algorithm"."""
    from .. import algorithms, instances

    shelf = {"instance": instances, "algorithm": algorithms}[kind]
    things = {name: getattr(shelf, name) for name in shelf.__all__}
    return {name: thing for name, thing in things.items() if not isinstance(thing, type)}


def options(kind, constructor):
    """Names of what a table may set."""
    names = inspect.signature(constructor).parameters
    return [name for name in names if name not in SUPPLIED[kind]]


def may_be_inside(kind, constructor):
    """Whether a constructor of another of its kind takes what this one makes."""
    from ..instances.contextual import CONSTRUCTORS  # no arms with means that stay

    return not takes_another(kind, constructor) and constructor not in CONSTRUCTORS


def takes_another(kind, constructor):
    """True for what makes a constructor of another of its kind: `at_budget`, `stressed`."""
    return kind in inspect.signature(constructor).parameters


def is_random(constructor):
    """True where the first parameter is a random key."""
    return next(iter(inspect.signature(constructor).parameters), None) == "key"


def required(kind, constructor):
    """Names of the options without a default."""
    parameters = inspect.signature(constructor).parameters
    return {
        name
        for name in options(kind, constructor)
        if parameters[name].default is inspect.Parameter.empty
        and not (kind == "algorithm" and name in TOLD)
    }
