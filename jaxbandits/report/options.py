"""A part of a sweep as one would call it: the constructor with its options."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

OURS = __name__.partition(".")[0]
HIDDEN = ("constructor", "redraw")


def part_text(table: Mapping[str, Any]) -> str:
    """A constructor with its options, as one would call it.

    >>> part_text({"constructor": "jaxbandits.instances.soare", "dim": 5})
    'soare(dim=5)'
    >>> part_text({"constructor": ["jaxbandits.instances.soare", [5], {}], "angle": 0.3})
    'soare(5, angle=0.3)'
    """
    name, given = table.get("constructor"), []
    if isinstance(name, list) and name:  # of a `partial`: its function, and its arguments
        given = name[1] if len(name) > 1 and isinstance(name[1], list) else []
        name = name[0]
    # A ready instance has arrays where others have a constructor's name.
    called = name.rsplit(".", 1)[-1] if isinstance(name, str) else _arrays_text(name)
    options = [*map(option_text, given)]
    options += [f"{key}={option_text(value)}" for key, value in table.items() if key not in HIDDEN]
    if table.get("redraw") is False:
        options.append("redraw=false")
    return f"{called}({', '.join(options)})" if options or isinstance(name, str) else called


def defaults_text(table: Mapping[str, Any], *elsewhere: Collection[str]) -> str:
    """The options of a constructor of this package that a part leaves at their defaults.

    Args:
      table: of the part, as the results file has it.
      elsewhere: names of options that get their values elsewhere.
    Returns:
      Options with values; "" where there are none or the constructor is not found. Defaults that
      are no numbers or names are left out: None stands for something else.

    >>> defaults_text({"constructor": "jaxbandits.instances.soare", "dim": 5}, ["angle"])
    'scale=1.0, noise_var=1.0'
    """
    function = _constructor(table.get("constructor"))
    parameters = {} if function is None else inspect.signature(function).parameters
    known = set(table).union(*elsewhere)
    left = [p for p in parameters.values() if p.name not in known]
    plain = [p for p in left if isinstance(p.default, bool | int | float | str)]
    return ", ".join(f"{p.name}={p.default}" for p in plain)


def _constructor(name: Any) -> Callable[..., Any] | None:
    """The function of that name; only of this package, as a results file must not run code."""
    if not isinstance(name, str):
        return None
    from .. import algorithms, instances

    module, _, function = name.rpartition(".")
    shelf = {OURS: algorithms, f"{OURS}.instances": instances}.get(module)
    return None if shelf is None or function not in shelf.__all__ else getattr(shelf, function)


def _arrays_text(instance: Any) -> str:
    """A ready instance: the sizes of its arms, where its description has them."""
    try:
        num_arms, dim = instance["arms"][1]
        return f"{num_arms} arms in {dim} dimensions, {instance['rewards']} rewards"
    except (TypeError, KeyError, IndexError, ValueError):
        return "given as arrays"


def option_text(value: Any) -> str:
    """An option as the results file has it; of an array, the type and the shape."""
    if isinstance(value, list) and len(value) == 3 and isinstance(value[1], list):
        return f"{value[0]} {value[1]}"
    return str(value)
