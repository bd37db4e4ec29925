"""RAGE with many arms or many dimensions: seconds and peak memory of whole runs.

python -m benchmarks.large [--only WORD ...] [--replications N]
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax

import jaxbandits as jb
from jaxbandits.estimates import estimate

from .rows import keep, kept

RESULTS = Path(__file__).parent / "results" / "large-cpu.json"
DELTA = 0.05
MOST = 2**40  # pulls
INSTANCES = {
    "sphere, 1000 arms": partial(jb.instances.sphere, num_arms=1000, dim=10, mix=0.0),
    "multivariate, 8 factors": partial(jb.instances.multivariate, factors=8),
}


def measured(name, replications):
    """A row of the table; call it in a new process, because it measures peak memory."""
    instance, begin = INSTANCES[name](jax.random.key(0)), time.perf_counter()
    build = partial(jb.rage, delta=DELTA)
    runs = jb.simulate(instance, build, replications=replications, max_pulls=MOST, cores=1)
    digest = runs.summary()
    return {
        "instance": name,
        "arms": list(instance.arms.shape),
        "replications": replications,
        "pulls_mean": digest["pulls_mean"],
        "pulls_se": digest["pulls_se"],
        "errors": digest["errors"],
        "cut_short": digest["cut_short"],
        "unsolved": int(runs.info["unsolved"].sum()),
        "phases": float(runs.info["phases"].mean()),
        "wall_seconds": time.perf_counter() - begin,
        "seconds": runs.meta["seconds"],
        "compile_seconds": runs.meta["compile_seconds"],
        "peak_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        help="only instances whose names contain all of these words",
    )
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        print(json.dumps(measured(chosen.alone, chosen.replications)))
        return
    rows = kept(chosen.out)
    for name in INSTANCES:
        if not all(word in name for word in chosen.only):
            continue
        command = [sys.executable, "-m", "benchmarks.large", "--alone", name]
        command += ["--replications", str(chosen.replications)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{name:34} {estimate(row['pulls_mean'], row['pulls_se']):>28} pulls  "
            f"{row['wall_seconds']:8.1f} s  {row['peak_mebibytes']:8.0f} MiB",
            flush=True,
        )
        rows = keep(chosen.out, rows, row, ("instance",))


if __name__ == "__main__":
    main()
