"""How much faster is a simulation on all cores than on one? `python -m benchmarks.cores`

The machine should be idle. Each work is compiled first and then done on one core and on all in
turn, in pairs. A ratio of 1.9 means that all cores take 1 / 1.9 of the time of one; "in use" is how
many cores were at work on average, which tells a busy machine from a program that waits. Few
replications stay on one core, and must not take longer for it.
"""

import argparse
import statistics
import time
from pathlib import Path

import jax

from jaxbandits.system.cores import usable_cores

from .contest import save
from .tasks import engines, task_of

RESULTS = Path(__file__).parent / "results" / "cores-cpu.json"
MANY, FEW, QUICK = 20_000, 100, 400  # replications
PAIRS, PAIRS_OF_FEW = 5, 15
# RAGE on the sphere takes as long for a replication as the others for hundreds.
WORKS = {
    "lingape-soare": MANY,
    "lingape-sphere": MANY,
    "gse-16": MANY,  # it takes a fourteenth of a second, of which the first part is one core's
    "gse-64": MANY,
    "glm-tsl": MANY,
    "rage-soare": MANY,
    "rage-sphere": 1_000,
}


def timed(task, replications, engine, cores):
    """Wall and CPU seconds of one call, and its runs."""
    wall, used = time.perf_counter(), time.process_time()
    runs = task.play(replications, engine=engine, cores=cores)
    return time.perf_counter() - wall, time.process_time() - used, runs


def measured(task, replications, engine, pairs):
    """A row of the table: the ratios of wall seconds, one core over all of them."""
    numbers = (1, usable_cores())
    played = [timed(task, replications, engine, number)[2] for number in numbers]  # compiles
    assert (played[0].arm_pulls == played[1].arm_pulls).all()
    seconds = {number: [] for number in numbers}
    for pair in range(pairs):
        for number in numbers if pair % 2 == 0 else numbers[::-1]:
            seconds[number].append(timed(task, replications, engine, number)[:2])
    one, several = (list(zip(*seconds[number], strict=True)) for number in numbers)
    ratios = [alone / shared for alone, shared in zip(one[0], several[0], strict=True)]
    in_use = [used / wall for wall, used in zip(*several, strict=True)]
    return {
        "replications": replications,
        "cores": played[1].meta["cores"],
        "seconds": {"one": min(one[0]), "all": min(several[0])},
        "ratio": {"best": max(ratios), "median": statistics.median(ratios)},
        "in use": max(in_use),
        "cpu": min(several[1]) / min(one[1]),
    }


def main(arguments=None):
    """Measure, print a line for each work, write the file; returns the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=WORKS, help="some of the works")
    parser.add_argument("--engine", nargs="+", choices=("auto", *engines()), default=["auto"])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if usable_cores() < 2:
        parser.error("this process may use one core only")
    rows = {}
    for name in given.only or WORKS:
        for engine in given.engine:
            for number in (FEW, QUICK if given.quick else WORKS[name]):
                pairs = 1 if given.quick else PAIRS if number > FEW else PAIRS_OF_FEW
                row = measured(task_of(name), number, engine, pairs)
                rows[f"{name} {engine} {number}"] = row
                shown = ", ".join(f"{key}: {value}" for key, value in row.items())
                print(f"{name}, {engine}: {shown}", flush=True)
    save(given.out, rows, getattr(jax.devices()[0], "device_kind", "cpu"))
    print(f"written: {given.out}")
    return rows


if __name__ == "__main__":
    main()
