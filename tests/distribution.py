"""How pytest-xdist groups the tests: each group runs in one process.

A group holds all tests of an algorithm's cases, in whatever file, and the example in its docstring,
because they share compiled programs. All other tests are grouped by file.
"""

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


class ByCase(LoadScopeScheduling):
    """Schedules whole groups; those with many tests start first, so that processes end together."""

    def _split_scope(self, nodeid):
        return scope_of(nodeid)
