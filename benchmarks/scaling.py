"""Cost per unit of work by the number of replications and by the number of devices.

Run as a command, it times one program on one and on two host devices and prints the ratio.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from .tasks import engines, task_of

SIZES = (1_000, 10_000, 100_000)
BY_ROUNDS = ("lingape-soare",)  # per round; the others per replication
SCALED = ("lingape-soare", "gse-16")
ROOT = Path(__file__).parent.parent


def measure(names, sizes=SIZES):
    """Minimum CPU microseconds per unit of work, and lane use, by engine and replications."""
    results = {}
    for name in names:
        task, results[name] = task_of(name), {}
        for engine in engines():
            rows = results[name][engine] = {}
            for size in sizes:
                costs, use = zip(*(_cost(task, name, size, engine) for _ in range(3)), strict=True)
                rows[size] = {"microseconds": min(costs[1:]), "lane_use": use[0]}
                print(
                    f"{name:16s} {engine:8s} R = {size:7d}   {min(costs[1:]):9.4g} us   "
                    f"lane use {use[0]:.1%}",
                    flush=True,
                )
    return results


def _cost(task, name, size, engine):
    """CPU microseconds per unit of work, and lane use; the first call also compiles."""
    began = time.process_time()
    runs = task.play(size, engine=engine)
    seconds = time.process_time() - began
    work = int(runs.pulls.sum()) if name in BY_ROUNDS else size
    return 1e6 * seconds / work, runs.meta["lane_use"]


def lane_use(replications=20, lanes=128):
    """Share of lanes in use: LinGapE on Soare's instance with so many replications and lanes."""
    runs = task_of("lingape-soare").play(replications * lanes, batch=lanes)
    use = runs.meta["lane_use"]
    print(f"lane use at R = {replications} x {lanes} lanes: {use:.1%}", flush=True)
    return {"replications": replications * lanes, "lanes": lanes, "use": use}


def devices(quick=False):
    """Wall seconds of one and of two host devices on two cores, measured in a new process."""
    if (os.cpu_count() or 1) < 2:
        return None
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    command = [sys.executable, "-m", "benchmarks.scaling", *(["quick"] if quick else [])]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"two host devices: {found['ratio']:.2f} times one", flush=True)
    return found


def main():
    """Time one and two devices in turn."""
    if hasattr(os, "sched_setaffinity"):  # the calling process may be limited to one core
        os.sched_setaffinity(0, range(os.cpu_count()))
    quick = "quick" in sys.argv[1:]
    task, replications = task_of("lingape-soare"), 500 if quick else 20_000
    seconds = {1: [], 2: []}
    for again in range(2 if quick else 6):
        for number in seconds:
            began = time.perf_counter()
            task.play(replications, devices=number)
            if again:  # the first call compiles
                seconds[number].append(time.perf_counter() - began)
    best = {number: min(times) for number, times in seconds.items()}
    middle = {number: statistics.median(times) for number, times in seconds.items()}
    print(json.dumps({"seconds": best, "median": middle, "ratio": best[1] / best[2]}))


if __name__ == "__main__":
    main()
