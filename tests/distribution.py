"""How the tests are grouped, because those that share compiled programs belong together.

For pytest-xdist, which runs each group in one process, a group holds all tests of an algorithm's
cases, in whatever file, and the example in its docstring; all other tests are grouped by file. A
part of the tests (`--part`) holds cases together too, and neighbours in the table of a function's
parameters. How long the slow tests take is stored; to measure it anew:

    pytest -q -m slow --junitxml=slow.xml
    python tests/distribution.py slow.xml
"""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from cases import CASES
from xdist.scheduler import LoadScopeScheduling

# Name of a case -> name of its constructor. Variants of an algorithm share the docstring's example.
CONSTRUCTORS = {case.name: case.constructor for case in CASES}
CONSTRUCTORS |= {name: name for name in CONSTRUCTORS.values()}
FILES = ("protocol", "symmetries", "engine", "guarantees", "live", "one_lane", "optimised")
FILES += ("reward_units",)
CASES_OF = "cases of "  # begins the name of a group
SECONDS, USUAL = Path(__file__).parent / "slow_seconds.json", 2.0  # measured; of an unknown test
LAWS = tuple(f"test_{name}.py" for name in FILES)


def scope_of(nodeid):
    """The group of a test."""
    file, _, rest = nodeid.partition("::")
    parameters = rest.partition("[")[2].rstrip("]").partition("-")[0]
    if parameters in CONSTRUCTORS and file.endswith(LAWS):
        return CASES_OF + CONSTRUCTORS[parameters]
    example = rest.rpartition(".")[2]
    if file.startswith("jaxbandits/algorithms/") and example in CONSTRUCTORS:
        return CASES_OF + CONSTRUCTORS[example]
    return file


def group_of(nodeid):
    """The group that a part holds: an algorithm's cases, or a function with all its parameters."""
    scope = scope_of(nodeid)
    return scope if scope.startswith(CASES_OF) else nodeid.partition("[")[0]


def part(nodeids, number, parts, seconds=None):
    """The ids of one of the `parts` of the tests, which take about equally long.

    Args:
      seconds: that a group takes, by default those of `SECONDS`; an unknown test counts as `USUAL`.
    """
    known = json.loads(SECONDS.read_text()) if seconds is None else seconds
    groups = defaultdict(list)
    for nodeid in nodeids:
        groups[group_of(nodeid)].append(nodeid)
    pieces = []
    for name, group in groups.items():  # a long table of a function's parameters is divided
        size = len(group) if name.startswith(CASES_OF) else math.ceil(len(group) / parts)
        each = known.get(name, USUAL * len(group)) / len(group)
        pieces += [(each * len(x), x) for x in batched(group, size)]
    found = [[0.0] for _ in range(parts)]
    for taken, piece in sorted(pieces, key=lambda x: -x[0]):
        least = min(found, key=lambda one: one[0])
        least[0] += taken
        least.extend(piece)
    return found[number - 1][1:]


def batched(items, size):
    """The items in lists of `size`; `itertools.batched` needs Python 3.12."""
    return [items[i : i + size] for i in range(0, len(items), size)]


class ByCase(LoadScopeScheduling):
    """Schedules whole groups; those with many tests start first, so that processes end together."""

    def _split_scope(self, nodeid):
        return scope_of(nodeid)


def measured(report):
    """The seconds that each group took, from a report by pytest's `--junitxml`."""
    found = defaultdict(float)
    for test in ElementTree.parse(report).iter("testcase"):
        file = test.get("classname").replace(".", "/") + ".py"
        found[group_of(f"{file}::{test.get('name')}")] += float(test.get("time"))
    return {name: round(taken, 1) for name, taken in sorted(found.items())}


if __name__ == "__main__":
    SECONDS.write_text(json.dumps(measured(sys.argv[1]), indent=0) + "\n")
