"""Which tests one process plays, one after the other: those of an algorithm, else of a file.

All laws of a case, wherever they stand, and the example in its algorithm's docstring play the same
compiled programs.
"""

from cases import CASES
from xdist.scheduler import LoadScopeScheduling

# The constructor of each case, under its own name too: variants share an example.
CONSTRUCTORS = {case.name: case.constructor for case in CASES}
CONSTRUCTORS |= {name: name for name in CONSTRUCTORS.values()}
FILES = ("protocol", "symmetries", "engine", "guarantees", "live")
LAWS = tuple(f"test_{name}.py" for name in FILES)


def scope_of(nodeid):
    """What a test belongs to, by its name."""
    file, _, rest = nodeid.partition("::")
    parameters = rest.partition("[")[2].rstrip("]").partition("-")[0]
    if parameters in CONSTRUCTORS and file.endswith(LAWS):
        return f"cases of {CONSTRUCTORS[parameters]}"
    example = rest.rpartition(".")[2]
    if file.startswith("jaxbandits/algorithms/") and example in CONSTRUCTORS:
        return f"cases of {CONSTRUCTORS[example]}"
    return file


class ByCase(LoadScopeScheduling):
    """Whole cases and whole files; those of many tests first, so that the end is shared evenly."""

    def _split_scope(self, nodeid):
        return scope_of(nodeid)
