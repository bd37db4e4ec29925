"""Algorithms, instances and experiments in one line each, from the docstrings."""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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


def _found(kind: Kind, plugins: Plugins) -> Lines:
    """The lines of everything of a kind; it is imported, and with it JAX."""
    if kind == "experiment":
        from ..reproduce import experiments

        return _lines(experiments(plugins), list, lambda experiment: experiment.title)
    from ..sweeps.names import constructors

    return _lines(constructors(kind, plugins), sorted, describe)


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


KINDS: dict[str, Kind] = {
    "algorithms": "algorithm",
    "instances": "instance",
    "experiments": "experiment",
}


def lines(section: str, plugins: Plugins = ()) -> Lines:
    """The lines of a section; plugins are imported, and with them JAX, where there are any."""
    if plugins or is_extended(KINDS[section]):
        return _found(KINDS[section], plugins)
    stored = json.loads(STORED.read_text(encoding="utf-8"))[section]
    return Lines(list(stored.items()), [])


def own() -> str:
    """What `STORED` has to hold, where no plugins are installed."""
    found = {name: dict(_found(kind, ()).shown) for name, kind in KINDS.items()}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def section(name: str) -> str:
    """`name` itself; raises unless there is such a section."""
    if name not in KINDS:
        raise unknown("list", name, KINDS)
    return name
