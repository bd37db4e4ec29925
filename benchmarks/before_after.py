"""Has a change made the package slower? Times contests in this checkout and in another one.

`git worktree add /tmp/before HEAD~1 && python -m benchmarks.before_after /tmp/before lingape-soare`

Each checkout gets a process of its own, both on the same core. They do the work of a contest in
turn, as the speed of a machine changes from minute to minute. A ratio of 1.03 means that this
checkout takes 3% more CPU time than the other. The ratio of the least times is the most reliable;
the median of the ratios of neighbours and their range show how much to trust it.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .contest import NATIVE, OURS
from .contests import CONTESTS

ROOT = Path(__file__).parent.parent
# Run in either checkout, of which the other may not have this file: compiles, then does the work of
# the contestant named in each line that it reads.
PLAYER = f"""
import importlib.util, json, pathlib, sys, time
name, quick = sys.argv[1:]
here = pathlib.Path.cwd().resolve()
for package in ("jaxbandits", "benchmarks"):
    spec = importlib.util.find_spec(package)
    if spec is None or not pathlib.Path(spec.origin).resolve().is_relative_to(here):
        sys.exit(f"it does not contain {{package}}")
from benchmarks.speed import one_core
one_core()
from benchmarks.contests import CONTESTS
contestants = CONTESTS[name](quick=quick == "quick").contestants
ours = {{x: contestants[x] for x in {[OURS, NATIVE]!r} if x in contestants}}
for work in ours.values():
    work()
print(json.dumps(list(ours)), flush=True)
for line in sys.stdin:
    began = time.process_time()
    done = ours[line.strip()]()
    print((time.process_time() - began) / done, flush=True)
"""


@contextlib.contextmanager
def player(checkout, contest, *, quick=False):
    """A process that does the work of a contest in one checkout.

    Args:
      checkout: its folder.
      contest: one of `CONTESTS`.
      quick: small sizes.
    Returns:
      The names of its contestants, and a function that does the work of one of them and returns
      the CPU seconds for a unit of work.
    Raises:
      ValueError: the folder has no such contest; says what its process said last.
    """

    def answer():
        line = process.stdout.readline()
        if not line:
            errors.seek(0)
            said = errors.read().strip().splitlines() or ["it said nothing"]
            raise ValueError(f"{checkout} cannot play the contest {contest!r}: {said[-1]}")
        return line

    def seconds(contestant):
        process.stdin.write(contestant + "\n")
        process.stdin.flush()
        return float(answer())

    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-c", PLAYER, contest, "quick" if quick else "full"],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout), "JAXBANDITS_CORES": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield json.loads(answer()), seconds
        finally:
            process.kill()


def compared(before, after):
    """Ratios after / before of seconds that were measured in turn.

    >>> compared([2.0, 1.0, 4.0], [1.0, 1.5, 4.0])
    {'least': 1.0, 'median': 1.0, 'lowest': 0.5, 'highest': 1.5}
    """
    pairs = [new / old for old, new in zip(before, after, strict=True)]
    return {
        "least": min(after) / min(before),
        "median": statistics.median(pairs),
        "lowest": min(pairs),
        "highest": max(pairs),
    }


def measured(checkout, contest, *, rounds, quick=False):
    """`{contestant: ratios}` of one contest, this checkout over the other, see `compared`."""
    with (
        player(Path(checkout).resolve(), contest, quick=quick) as (old, before),
        player(ROOT, contest, quick=quick) as (new, after),
    ):
        return {name: _in_turn(before, after, name, rounds) for name in new if name in old}


def _in_turn(before, after, contestant, rounds):
    """The ratios of one contestant; each checkout begins every second round."""
    seconds = {before: [], after: []}
    for number in range(rounds):
        for timed in (before, after) if number % 2 == 0 else (after, before):
            seconds[timed].append(timed(contestant))
    return compared(seconds[before], seconds[after])


def main(arguments=None):
    """Print a line for each contest and engine; returns the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", help="the folder of the other checkout")
    parser.add_argument("contests", nargs="*", help=f"some of {', '.join(CONTESTS)}; all of them")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="a file for the ratios, JSON")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.contests) - set(CONTESTS))
    if unknown:
        parser.error(f"contests: {', '.join(unknown)} is none of {', '.join(CONTESTS)}")
    found = {}
    print("contest, engine, now / before: least times, median of pairs, range of pairs")
    for name in given.contests or CONTESTS:
        found[name] = measured(given.checkout, name, rounds=given.rounds, quick=given.quick)
        for contestant, r in found[name].items():
            spread = f"{r['lowest']:.3f} to {r['highest']:.3f}"
            print(f"{name}, {contestant}: {r['least']:.3f}, {r['median']:.3f}, {spread}")
        if given.out:
            given.out.write_text(json.dumps(found, indent=1) + "\n")
    return found


if __name__ == "__main__":
    main()
