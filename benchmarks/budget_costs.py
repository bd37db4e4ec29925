"""Run times with fixed budgets on the arms of GSE's section 8.1: Peace, and 100,000 runs of GSE.

python -m benchmarks.budget_costs [--replications N]
"""

import time
from functools import partial
from pathlib import Path

import jaxbandits as jb

from .rows import whole_table

RESULTS = Path(__file__).parent / "results" / "budget-costs-cpu.json"
RUNS, SIZES = 100, (16, 32, 64)
PER_ARM = 20
# Seconds that the paper gives for 100 runs of Peace, and at most for any other algorithm.
PAPER = {16: (530, 18), 32: (14 * 3600, None)}
PEACE = {"gamma": jb.peace, "rho": partial(jb.peace, objective="rho")}
DESIGNS = ("uniform", "fwg", "d_opt", "d_opt_fw", "wynn", "fedorov", "greedy", "kmeans")


def adaptive(num_arms):
    """Soare's instance with K arms."""
    return jb.instances.soare(num_arms - 1, angle=0.1, noise_var=10.0)


def timed(num_arms, build, replications):
    """Accuracy and times of runs on the instance with K arms."""
    began = time.perf_counter()
    build = partial(build, per_arm=PER_ARM)
    runs = jb.simulate(adaptive(num_arms), build, replications=replications, cores=1)
    digest = runs.summary()
    found = {
        "arms": num_arms,
        "replications": replications,
        "accuracy": round(1 - digest["error_rate"], 4),
        "wall_seconds": round(time.perf_counter() - began, 2),
        "compile_seconds": round(runs.meta["compile_seconds"], 2),
        "seconds": round(runs.meta["seconds"], 3),
        "most_pulls": int(runs.pulls.max()),
    }
    if "optimisations" in runs.info:
        found["optimisations"] = round(float(runs.info["optimisations"].mean()), 2)
    return found


def rows(replications):
    """A row for each algorithm and size."""
    for num_arms in SIZES:
        for name, build in PEACE.items():
            yield {"algorithm": f"Peace, {name}", **timed(num_arms, build, RUNS)}
        yield {"algorithm": "GSE, uniform", **timed(num_arms, jb.gse, RUNS)}
    for design in DESIGNS:
        build = partial(jb.gse, design=design)
        yield {"algorithm": f"GSE, {design}", **timed(16, build, replications)}


def main(arguments=None):
    """Run all rows and write the table."""
    about = {"per_arm": PER_ARM, "paper_seconds": PAPER}
    whole_table(arguments, __doc__, rows, replications=100_000, results=RESULTS, about=about)


if __name__ == "__main__":
    main()
