"""A part of a sweep as one would call it: the constructor with its options."""

from collections.abc import Mapping
from typing import Any

HIDDEN = ("constructor", "redraw")


def part_text(table: Mapping[str, Any]) -> str:
    """A constructor with its options, as one would call it.

    >>> part_text({"constructor": "jaxbandits.instances.soare", "dim": 5})
    'soare(dim=5)'
    """
    name = table.get("constructor")
    if isinstance(name, list) and name:
        name = name[0]  # of a `partial`: its function, before its arguments
    # A ready instance has arrays where others have a constructor's name.
    called = name.rsplit(".", 1)[-1] if isinstance(name, str) else _arrays_text(name)
    options = [f"{key}={option_text(value)}" for key, value in table.items() if key not in HIDDEN]
    if table.get("redraw") is False:
        options.append("redraw=false")
    return f"{called}({', '.join(options)})" if options or isinstance(name, str) else called


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
