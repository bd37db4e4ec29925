"""What was run, and where."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ... import estimates
from ...show.labels import texts_of
from ...sweeps.selection import replications_text
from ...sweeps.stated import stated
from ...version import VERSION
from ..options import defaults_text, part_text
from ..reading import Results

if TYPE_CHECKING:
    from xarray import Dataset

# Attributes of the results, with the words of the page; those that are missing are left out.
VERSIONS = {
    "command": "command",
    "jaxbandits": "jaxbandits",
    "jax": "JAX",
    "numpy": "NumPy",
    "python": "Python",
    "machine": "machine",
    "device": "device",
    "engine": "engine",
}
# What a simulation gives an algorithm that has no value of its own for it: `facts` of a
# `ProblemType` with a horizon. They are named here, as those need an instance.
FROM_INSTANCE = ("targets", "family", "noise_var", "theta_norm", "horizon", "theta")
TIMES = {"compile_seconds": "compile time", "seconds": "run time"}


class Fact(NamedTuple):
    """A name and what is said of it."""

    name: str
    text: str
    code: bool = False  # whether the text is a command
    rest: str = ""  # of less weight


def description(results: Results, kind: str, label: str) -> str:
    """An instance or algorithm as one would call it."""
    return part_text(results.options.get(f"[{kind}s.{label}]", {}))


def _rest(results: Results, kind: str, label: str) -> str:
    """The options that were left at their defaults, where this version is the one that ran."""
    if results.dataset.attrs.get("jaxbandits") != VERSION:
        return ""  # whose defaults may be others
    table = results.options.get(f"[{kind}s.{label}]", {})
    text = defaults_text(table, FROM_INSTANCE if kind == "algorithm" else (), results.axes)
    return f"defaults: {text}" if text else ""


def what_was_run(results: Results) -> list[Fact]:
    """Instances, algorithms, axes and numbers of the sweep."""
    attrs, dataset = results.dataset.attrs, results.dataset
    found = [
        Fact(f"{kind} {label}", description(results, kind, label), rest=_rest(results, kind, label))
        for kind in ("instance", "algorithm")
        for label in dataset[kind].values.tolist()
    ]
    for name in results.axes:
        values = dataset[name].values.tolist()
        found.append(Fact(f"axis {name}", ", ".join(map(texts_of(values), values))))
    return [
        *found,
        Fact("replications", _replications(dataset)),
        Fact("horizon", f"{attrs['horizon']:,} rounds")
        if attrs["horizon"]
        else Fact("limit", f"{attrs['max_pulls']:,} pulls; what reaches it is cut short"),
    ]


def _replications(dataset: "Dataset") -> str:
    number = f"{replications_text(dataset)} in each cell"
    rules = stated(dataset.attrs, "until")
    if not rules:
        return number
    names = " and ".join(f"{name} ≤ {limit:g}" for name, limit in rules.items())
    return f"{number}, until {names}, at most {dataset.attrs['replications']:,}"


def provenance(results: Results) -> list[Fact]:
    """Command, versions, machine, seed and times."""
    attrs, dataset = results.dataset.attrs, results.dataset
    found = [
        Fact(title, str(attrs[name]), name == "command")
        for name, title in VERSIONS.items()
        if attrs.get(name)
    ]
    found.append(Fact("seed", str(attrs["seed"])))
    for name, title in TIMES.items():
        if name in dataset:
            seconds = estimates.number(float(np.nansum(dataset[name])), 3)
            found.append(Fact(title, f"{seconds} s in all cells"))
    return [*found, Fact("results written", f"{results.written:%Y-%m-%d %H:%M} UTC")]
