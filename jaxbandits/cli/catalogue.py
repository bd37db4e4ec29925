"""Algorithms, instances and experiments in one line each, from the docstrings."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from ..signatures import unknown
from ..sweeps.names import PartKind

Lines: TypeAlias = list[tuple[str, str]]  # name and text

PAPER: re.Pattern[str] = re.compile(r"\(([^()]*\d{4}[a-z]?)\)")


def describe(function: Callable[..., Any]) -> str:
    """First sentence of the docstring and, where another line names it, the paper."""
    text = inspect.getdoc(function) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if PAPER.search(first):
        return first.rstrip(".")
    paper = PAPER.search(text.split("Args:")[0])
    return first.rstrip(".") + (f" ({' '.join(paper[1].split())})" if paper else "")


def _constructors(kind: PartKind) -> Lines:
    from ..sweeps import names

    return [(name, describe(build)) for name, build in sorted(names.constructors(kind).items())]


def _experiments() -> Lines:
    from ..reproduce import EXPERIMENTS

    return [(name, experiment.title) for name, experiment in EXPERIMENTS.items()]


SECTIONS: dict[str, Callable[[], Lines]] = {
    "algorithms": lambda: _constructors("algorithm"),
    "instances": lambda: _constructors("instance"),
    "experiments": _experiments,
}


def section(name: str) -> str:
    """`name` itself; raises unless there is such a section."""
    if name not in SECTIONS:
        raise unknown("list", name, SECTIONS)
    return name
