"""Grid search for BayesGap's kernel and LinGapE's delta, which GSE's paper chose by results.

`python -m benchmarks.tuning` runs every kernel and length scale, and every delta, on every
experiment of the paper at one size and budget. The sweep files use the best of each. fig5a and
fig5b form one figure and share one kernel: the one that loses least on both.
"""

from functools import partial
from pathlib import Path

import jaxbandits as jb

from .rows import whole_table

RESULTS = Path(__file__).parent / "results" / "tuning-cpu.json"
KERNELS = ("linear", "exponential", "squared_exponential", "matern32")
LENGTHS = (1e-3, 1e-1, 1.0, 10.0, 1e3)
DELTAS = (0.01, 0.1, 0.4, 0.5, 0.9)
make = jb.instances
# One size of each figure, with the draws per arm.
TASKS = {
    "fig1": (make.canonical(16, gap=0.5, noise_var=10.0), 20),
    "fig2": (make.soare(15, angle=0.1, noise_var=10.0), 20),
    "fig3": (partial(make.sphere, num_arms=32, dim=10, noise_var=10.0), 20),
    "fig4": (partial(make.logistic_cube, num_arms=8, dim=7), 20),
    "fig5a": (partial(make.cars, num_arms=16), 20),
    "fig5b": (partial(make.motor, num_arms=16), 20),
}


def kernels():
    """Options of BayesGap; the linear kernel has no length scale."""
    yield {"kernel": "linear"}
    for kernel in KERNELS[1:]:
        for length in LENGTHS:
            yield {"kernel": kernel, "length_scale": length}


def settings(name):
    """All `(algorithm, options, constructor)` that are tried on a task."""
    for options in kernels():
        yield "BayesGap", options, partial(jb.bayes_gap, prior_scale=50.0, **options)
    if name != "fig4":
        known = {"theta_norm": 1.0} if name.startswith("fig5") else {}
        for delta in DELTAS:
            yield (
                "LinGapE",
                {"delta": delta},
                jb.at_budget(partial(jb.lingape, delta=delta, **known)),
            )


def rows(replications):
    """Accuracies of all settings."""
    for name, (instance, per_arm) in TASKS.items():
        for algorithm, options, build in settings(name):
            runs = jb.simulate(instance, partial(build, per_arm=per_arm), replications=replications)
            right = float(runs.correct.mean())
            yield {"task": name, "algorithm": algorithm, **options, "accuracy": round(right, 4)}


def main(arguments=None):
    """Run all rows and write the table."""
    whole_table(arguments, __doc__, rows, replications=2000, results=RESULTS)


if __name__ == "__main__":
    main()
