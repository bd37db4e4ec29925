"""What a first call costs, of every algorithm: compiling, reading what was kept, and a second call.

A row is a new process with an empty folder of kept programs ("cold"), another one with what the
first has kept ("kept"), and a second call in that ("warm"). `python -m benchmarks.speed --part
compiling` prints and stores them; this module as a command is the process that is measured.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPLICATIONS, HORIZON = 200, 200
ROOT = Path(__file__).parent.parent
CALLS = {"cold": 0, "kept": 0, "warm": 1}  # which call of its process


def measure(names, repeats=3):
    """Rows of the algorithms of these problems, the least of `repeats`, with both engines."""
    from .algorithms import problems
    from .tasks import engines

    rows = []
    for problem, found in problems().items():
        for algorithm in found.algorithms:
            for engine in engines() if chosen(names, problem, algorithm) else ():
                if engine == "native" and problem == "contextual":
                    continue  # it makes no difference there
                row = {"problem": problem, "algorithm": algorithm, "engine": engine}
                rows.append(row | least([once(problem, algorithm, engine) for _ in range(repeats)]))
                print(text_of(rows[-1]), flush=True)
    return rows


def chosen(names, problem, algorithm):
    """Whether the row ends with one of the names, if there are any: "rage" or "best arm, rage"."""
    return not names or any(f"{problem}, {algorithm}".endswith(name) for name in names)


def least(figures):
    """The least of each figure."""
    return {name: min(one[name] for one in figures) for name in figures[0]}


def text_of(row):
    """A row in one line."""
    seconds = [f"{call} {row[f'{call}_cpu']:6.2f} ({row[f'{call}_wall']:.2f})" for call in CALLS]
    name = f"{row['algorithm']} [{row['engine']}]"
    return f"{name:44} {'  '.join(seconds)}  {row['kernels']:4} kernels, {row['loops']} loops"


def once(problem, algorithm, engine):
    """The figures of one row."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (in_new_process(folder, problem, algorithm, engine) for _ in range(2))
    processes = {"cold": first, "kept": second, "warm": second}
    found = {}
    for call, number in CALLS.items():
        for clock in ("cpu", "wall"):
            found[f"{call}_{clock}"] = processes[call][clock][number]
    return found | {name: first[name] for name in ("kernels", "loops")}


def in_new_process(folder, *row):
    """What a process that plays a row prints."""
    command = [sys.executable, "-m", "benchmarks.compiling", "--once", *row]
    here = os.environ | {"JAXBANDITS_CACHE": folder}
    done = subprocess.run(
        command, cwd=ROOT, env=here, capture_output=True, text=True, check=True, timeout=900
    )
    return json.loads(done.stdout.splitlines()[-1])


def play_twice(problem, algorithm, engine):
    """Seconds of two calls in this process, and the size of the program."""
    import jaxbandits as jb
    from jaxbandits.system import keeping

    from .algorithms import problems

    programs, whole = [], keeping.program
    keeping.program = lambda *args: programs.append(whole(*args)) or programs[-1]
    task = problems()[problem]
    settings = {"horizon": None if task.horizon is None else HORIZON, "engine": engine}
    clocks = {"cpu": lambda: sum(os.times()[:4]), "wall": time.perf_counter}  # children too
    marks = {name: [clock()] for name, clock in clocks.items()}
    for seed in range(2):
        build = task.algorithms[algorithm]
        jb.simulate(task.instance, build, replications=REPLICATIONS, seed=seed, **settings)
        for name, clock in clocks.items():
            marks[name].append(clock())
    steps = {name: itertools.pairwise(found) for name, found in marks.items()}
    found = {name: [round(b - a, 3) for a, b in pairs] for name, pairs in steps.items()}
    return found | size(programs[0].as_text())


def size(text):
    """How many kernels and loops an optimised program has: each costs some 15 ms to compile."""
    return {"kernels": text.count(" fusion("), "loops": text.count(" while(")}


def main(arguments=None):
    """Print one row's figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--once", nargs=3, required=True)
    print(json.dumps(play_twice(*parser.parse_args(arguments).once)))


if __name__ == "__main__":
    main()
