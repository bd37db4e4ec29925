"""The cost of compiling, in new processes, without and with the disk cache of compiled programs.

Run as a command, it measures one program and prints the CPU seconds.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .tasks import engines, task_of

REPLICATIONS = 64
REPEATS = 3
ROOT = Path(__file__).parent.parent


def measure(names):
    """`{name: {engine: {"cold": CPU seconds, "kept": CPU seconds}}}`, the minimum of `REPEATS`."""
    results = {}
    for name in names:
        results[name] = {}
        for engine in engines():
            cold, kept = map(min, zip(*(_once(name, engine) for _ in range(REPEATS)), strict=True))
            results[name][engine] = {"cold": cold, "kept": kept}
            seconds = f"cold {cold:7.2f} s   kept on disk {kept:7.2f} s"
            print(f"{name:16s} {engine:8s} {seconds}", flush=True)
    return results


def _once(name, engine):
    with tempfile.TemporaryDirectory() as folder:  # the second run loads what the first one stored
        return [_in_new_process(name, folder, engine) for _ in range(2)]


def _in_new_process(name, folder, engine):
    command = [sys.executable, "-m", "benchmarks.compiling", name, engine]
    here = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=here, capture_output=True, text=True, check=True, timeout=900
    )
    return float(done.stdout.split()[-1])


def _spent():
    """CPU seconds used so far by this process and the compilers that it called."""
    return sum(os.times()[:4])


def main():
    """Print the CPU seconds of the first call minus those of the second, which compiles nothing."""
    task, engine = task_of(sys.argv[1]), sys.argv[2]
    if task.horizon is not None:
        task = task._replace(horizon=50)
    marks = [_spent()]
    for seed in (0, 1):
        task.play(REPLICATIONS, seed=seed, engine=engine)
        marks.append(_spent())
    print(max(0.0, marks[1] - marks[0] - (marks[2] - marks[1])))


if __name__ == "__main__":
    main()
