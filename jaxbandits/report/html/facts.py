"""What was run, and where."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import estimates
from ..labels import value_text
from ..options import part_text
from ..reading import Results
from .markup import Html, facts
from .tables import SECONDS


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
