"""Algorithms, instances and experiments in one line each, from the docstrings."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..signatures import function_of, unknown
from ..system.plugins import Catalogue, PluginFile

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


def describe(function: Callable[..., Any]) -> str:
    """First sentence of the docstring and, where another line names it, the paper."""
    text = inspect.getdoc(function_of(function)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if PAPER.search(first):
        return first.rstrip(".")
    paper = PAPER.search(text.split("Args:")[0])
    return first.rstrip(".") + (f" ({' '.join(paper[1].split())})" if paper else "")


def _algorithms(plugins: Plugins) -> Lines:
    from ..sweeps.names import constructors

    return _lines(constructors("algorithm", plugins), sorted, describe)


def _instances(plugins: Plugins) -> Lines:
    from ..sweeps.names import constructors

    return _lines(constructors("instance", plugins), sorted, describe)


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


SECTIONS: dict[str, Callable[[Plugins], Lines]] = {
    "algorithms": _algorithms,
    "instances": _instances,
    "experiments": _experiments,
}


def section(name: str) -> str:
    """`name` itself; raises unless there is such a section."""
    if name not in SECTIONS:
        raise unknown("list", name, SECTIONS)
    return name
