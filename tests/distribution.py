"""How the tests are grouped, because those that share compiled programs belong together.

For pytest-xdist, which runs each group in one process, a group holds all tests of an algorithm's
cases, in whatever file, and the example in its docstring; all other tests are grouped by file. A
part of the tests (`--part`) holds whole groups too, but not whole files.
"""

import math
from collections import defaultdict

from cases import CASES
from xdist.scheduler import LoadScopeScheduling

# Name of a case -> name of its constructor. Variants of an algorithm share the docstring's example.
CONSTRUCTORS = {case.name: case.constructor for case in CASES}
CONSTRUCTORS |= {name: name for name in CONSTRUCTORS.values()}
FILES = ("protocol", "symmetries", "engine", "guarantees", "live")
LAWS = tuple(f"test_{name}.py" for name in FILES)


def scope_of(nodeid):
    """The group of a test."""
    file, _, rest = nodeid.partition("::")
    parameters = rest.partition("[")[2].rstrip("]").partition("-")[0]
    if parameters in CONSTRUCTORS and file.endswith(LAWS):
        return f"cases of {CONSTRUCTORS[parameters]}"
    example = rest.rpartition(".")[2]
    if file.startswith("jaxbandits/algorithms/") and example in CONSTRUCTORS:
        return f"cases of {CONSTRUCTORS[example]}"
    return file


def part(nodeids, number, parts):
    """The ids of one of the `parts` of the tests, which hold about equally many."""
    groups = defaultdict(list)
    for nodeid in nodeids:
        scope, function = scope_of(nodeid), nodeid.partition("[")[0]
        groups[scope if scope.startswith("cases of") else function].append(nodeid)
    pieces = []
    for name, group in groups.items():  # a long table of a function's parameters is divided
        size = len(group) if name.startswith("cases of") else math.ceil(len(group) / parts)
        pieces += [group[i : i + size] for i in range(0, len(group), size)]
    found = [[] for _ in range(parts)]
    for piece in sorted(pieces, key=len, reverse=True):
        min(found, key=len).extend(piece)
    return found[number - 1]


class ByCase(LoadScopeScheduling):
    """Schedules whole groups; those with many tests start first, so that processes end together."""

    def _split_scope(self, nodeid):
        return scope_of(nodeid)
