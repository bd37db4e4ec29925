"""Very many arms: seconds of a round, a stage or a design, and the peak memory of the process.

    python -m benchmarks.many_arms [--only WORD ...] [--arms K ...] [--dim D]

A row is one replication on arms drawn from the sphere, or from a normal distribution where its name
says so, in a process of its own, by the second of two calls. The exponents at the end say how
seconds and memory grow with the number of arms, between the two largest of each algorithm.
"""

import argparse
import itertools
import json
import math
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import jaxbandits as jb

from .rows import keep, kept

RESULTS = Path(__file__).parent / "results" / "many-arms-cpu.json"
ARMS, DIM, HORIZON = (1_000, 10_000, 100_000, 1_000_000), 50, 50
KEY = ("algorithm", "arms", "dim")


def _stages(instance, **options):
    """`play(seed) -> stages` of GSE: half of the arms go on after each."""
    number, dim = instance.arms.shape
    build = partial(jb.gse, budget=20 * dim, **options)

    def play(seed):
        jb.simulate(instance, build, replications=1, seed=seed)
        return math.ceil(math.log2(number))

    return play


def _rounds(instance, build):
    def play(seed):
        jb.simulate(instance, build, horizon=HORIZON, replications=1, seed=seed)
        return HORIZON

    return play


def _sequential(instance):
    def play(seed):
        build = partial(jb.lingape, delta=0.05)
        runs = jb.simulate(instance, build, replications=1, seed=seed, max_pulls=HORIZON)
        return int(runs.pulls[0])

    return play


def _design(instance):
    def play(_):
        found = jb.design.fedorov(instance.arms, tol=1e-2)
        assert bool(found.converged)
        return 1

    return play


def _differences(instance):
    def play(_):
        found = jb.design.xy_optimal(instance.arms, instance.arms)
        assert bool(found.converged)
        return 1

    return play


WORKS = {
    "D-optimal design": ("design", _design),
    # Of all pairs of arms, as in the first phase of RAGE.
    "XY design": ("design", _differences),
    "XY design, normal arms": ("design", _differences),
    "gse, uniform": ("stage", _stages),
    "gse, d_opt": ("stage", partial(_stages, design="d_opt")),
    "lin_ucb": ("round", partial(_rounds, build=jb.lin_ucb)),
    "lin_ts": ("round", partial(_rounds, build=jb.lin_ts)),
    "lingape": ("round", _sequential),
}


def measured(name, number, dim):
    """A row; call it in a new process, because it measures peak memory."""
    unit, work = WORKS[name]
    arms = np.random.default_rng(0).standard_normal((number, dim))
    if "normal" not in name:
        arms /= np.linalg.norm(arms, axis=1)[:, None]
    play = work(jb.instances.linear(arms, arms[0], noise_var=1.0))
    play(0)
    began = time.perf_counter()
    units = play(1)
    seconds = (time.perf_counter() - began) / units
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "algorithm": name,
        "arms": number,
        "dim": dim,
        "unit": unit,
        "seconds": float(f"{seconds:.3g}"),
        "peak_gibibytes": round(memory, 2),
        "arms_gibibytes": round(arms.nbytes / 2**30, 3),
    }


def exponents(rows):
    """`(algorithm, dim, growth of the seconds, growth of the memory)`, in powers of the arms."""
    found = []
    for name, dim in itertools.product(WORKS, sorted({row["dim"] for row in rows})):
        mine = [row for row in rows if (row["algorithm"], row["dim"]) == (name, dim)]
        mine.sort(key=lambda row: row["arms"])
        for one, two in list(itertools.pairwise(mine))[-1:]:
            times = math.log(two["arms"] / one["arms"])
            growth = (math.log(two[x] / one[x]) / times for x in ("seconds", "peak_gibibytes"))
            found.append((name, dim, *(round(x, 2) for x in growth)))
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="only rows with all of these words")
    parser.add_argument("--arms", nargs="+", type=int, default=ARMS)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--within", type=float, default=600.0, help="seconds for a row")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        print(json.dumps(measured(chosen.alone, chosen.arms[0], chosen.dim)))
        return
    rows = kept(chosen.out)
    for name in WORKS:
        if not all(word in name for word in chosen.only):
            continue
        for number in chosen.arms:
            command = [sys.executable, "-m", "benchmarks.many_arms", "--alone", name]
            command += ["--arms", str(number), "--dim", str(chosen.dim)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, timeout=chosen.within
                )
            except subprocess.TimeoutExpired:
                print(f"{name:22} {number:9,} arms: not within {chosen.within:.0f} s", flush=True)
                break
            row = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{name:22} {number:9,} arms {row['seconds']:10.3g} s a {row['unit']:7}"
                f"{row['peak_gibibytes']:8.2f} GiB",
                flush=True,
            )
            rows = keep(chosen.out, rows, row, KEY)
    for name, dim, seconds, memory in exponents(rows):
        print(f"{name:22} {dim:3} dimensions: seconds ~ K^{seconds}, memory ~ K^{memory}")


if __name__ == "__main__":
    main()
