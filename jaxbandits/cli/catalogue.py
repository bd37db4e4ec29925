"""What there is, in one line each, from the docstrings."""

import inspect
import re

from ..signatures import unknown

PAPER = re.compile(r"\(([^()]*\d{4}[a-z]?)\)")


def describe(function):
    """First sentence of the docstring and, where another line names it, the paper."""
    text = inspect.getdoc(function) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if PAPER.search(first):
        return first.rstrip(".")
    paper = PAPER.search(text.split("Args:")[0])
    return first.rstrip(".") + (f" ({' '.join(paper[1].split())})" if paper else "")


def _constructors(kind):
    from ..sweeps import names

    return [(name, describe(build)) for name, build in sorted(names.constructors(kind).items())]


def _experiments():
    from ..reproduce import EXPERIMENTS

    return [(name, experiment.title) for name, experiment in EXPERIMENTS.items()]


SECTIONS = {
    "algorithms": lambda: _constructors("algorithm"),
    "instances": lambda: _constructors("instance"),
    "experiments": _experiments,
}


def section(name):
    """`name` itself, if there is such a section."""
    if name not in SECTIONS:
        raise unknown("list", name, SECTIONS)
    return name
