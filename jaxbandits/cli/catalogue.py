"""Algorithms, instances and experiments in one line each, from the docstrings."""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ..signatures import function_of, unknown
from ..system.plugins import Catalogue, Kind, PluginFile, is_extended

Plugins: TypeAlias = Sequence[PluginFile]


class Lines(NamedTuple):
    """One section of the list.

    Attributes:
      shown: name and text of each entry.
      faults: what is wrong with plugins whose entries cannot be shown.
    """

    shown: list[tuple[str, str]]
    faults: list[str]


PAPER: re.Pattern[str] = re.compile(r"\(([^()]*\d{4}[a-z]?)\)")
# What this package has itself, as it was listed last: reading it takes no JAX.
STORED: Path = Path(__file__).with_name("catalogue.json")


def describe(function: Callable[..., Any]) -> str:
    """First sentence of the docstring and, where another line names it, the paper."""
    text = inspect.getdoc(function_of(function)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if PAPER.search(first):
        return first.rstrip(".")
    paper = PAPER.search(text.split("Args:")[0])
    return first.rstrip(".") + (f" ({' '.join(paper[1].split())})" if paper else "")


def _constructors(kind: Literal["algorithm", "instance"], plugins: Plugins) -> Lines:
    from ..sweeps.names import constructors

    return _lines(constructors(kind, plugins), sorted, describe)


def _experiments(plugins: Plugins) -> Lines:
    from ..reproduce import experiments

    return _lines(experiments(plugins), list, lambda experiment: experiment.title)


def _lines(
    known: Catalogue[Any], ordered: Callable[[Any], list[str]], describe: Callable[[Any], str]
) -> Lines:
    lines = Lines([], [])
    for name in ordered(known):
        try:
            text = describe(known[name])
        except ValueError as error:
            lines.faults.append(str(error))
        else:
            plugin = known.plugin(name)
            lines.shown.append((name, f"{text} [{plugin}]" if plugin else text))
    return lines


FOUND: dict[str, Callable[[Plugins], Lines]] = {
    "algorithms": partial(_constructors, "algorithm"),
    "instances": partial(_constructors, "instance"),
    "experiments": _experiments,
}
KINDS: dict[str, Kind] = {
    "algorithms": "algorithm",
    "instances": "instance",
    "experiments": "experiment",
}


def lines(section: str, plugins: Plugins = ()) -> Lines:
    """The lines of a section; plugins are imported, and with them JAX, where there are any."""
    if plugins or is_extended(KINDS[section]):
        return FOUND[section](plugins)
    stored = json.loads(STORED.read_text(encoding="utf-8"))[section]
    return Lines(list(stored.items()), [])


def own() -> str:
    """What `STORED` has to hold, where no plugins are installed."""
    found = {name: dict(find(()).shown) for name, find in FOUND.items()}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def section(name: str) -> str:
    """`name` itself; raises unless there is such a section."""
    if name not in FOUND:
        raise unknown("list", name, FOUND)
    return name
