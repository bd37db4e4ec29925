"""What was run, and where."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import estimates
from ..labels import value_text
from ..reading import Results
from .markup import Html, facts
from .tables import SECONDS

HIDDEN = ("constructor", "redraw")


def what_was_run(results: Results) -> Html:
    """Instances, algorithms, axes and numbers of the sweep."""
    attrs, dataset = results.dataset.attrs, results.dataset
    pairs = []
    for kind in ("instance", "algorithm"):
        for label in dataset[kind].values:
            table = results.options.get(f"[{kind}s.{label}]", {})
            pairs.append((f"{kind} {label}", part_text(table)))
    for name in results.axes:
        values = ", ".join(value_text(value.item()) for value in dataset[name].values)
        pairs.append((f"axis {name}", values))
    pairs += [
        ("replications", _replications(attrs)),
        ("seed", str(attrs["seed"])),
        ("horizon", f"{attrs['horizon']:,} rounds")
        if attrs["horizon"]
        else ("cut short at", f"{attrs['max_pulls']:,} pulls"),
    ]
    return facts(pairs)


def _replications(attrs: Mapping[str, Any]) -> str:
    number = f"{attrs['replications']:,}"
    rules = json.loads(attrs.get("until", "{}"))
    if not rules:
        return f"{number} in each cell"
    names = " and ".join(f"{name} ≤ {limit:g}" for name, limit in rules.items())
    return f"in each cell until {names}, at most {number}"


def part_text(table: Mapping[str, Any]) -> str:
    """A constructor with its options, as one would call it."""
    name = table.get("constructor")
    if isinstance(name, list) and name:
        name = name[0]  # of a `partial`: its function, before its arguments
    # A ready instance has arrays where others have a constructor's name.
    called = name.rsplit(".", 1)[-1] if isinstance(name, str) else "given as arrays"
    options = [f"{key}={option_text(value)}" for key, value in table.items() if key not in HIDDEN]
    if table.get("redraw") is False:
        options.append("redraw=false")
    return f"{called}({', '.join(options)})" if options or isinstance(name, str) else called


def option_text(value: Any) -> str:
    """An option as the results file has it; of an array, the type and the shape."""
    if isinstance(value, list) and len(value) == 3 and isinstance(value[1], list):
        return f"{value[0]} {value[1]}"
    return str(value)


def environment(results: Results) -> Html:
    """Versions, device, times."""
    attrs, dataset = results.dataset.attrs, results.dataset
    names = {"jaxbandits": "jaxbandits", "jax": "JAX", "device": "device"}
    pairs = [(title, attrs[name]) for name, title in names.items() if attrs.get(name)]
    for name, title in SECONDS.items():
        if name in dataset:
            pairs.append((f"{title} in all", estimates.number(float(np.nansum(dataset[name])), 3)))
    pairs.append(("results written", f"{results.written:%Y-%m-%d %H:%M} UTC"))
    return facts(pairs)
