"""Accuracy of GSE and OD-LinBAI compared with an independent calculation, as in GSE's paper.

The figures are the accuracies of that calculation, which rounds D-optimal designs by regret
minimisation. The package is measured with that rounding and with its default. Sections are those of
the paper: 8.1, Soare's instance (the figures' number of replications is not known; 1000 is assumed,
but it may be 300); 8.2, unit vectors; 8.3, arms on a sphere, drawn anew for each
replication; 8.4, logistic rewards; figure 6, the sphere for fixed budgets; figure 7, the corner.

    python -m benchmarks.fixed_budget [--only WORD ...] [--replications N]
"""

import math
from functools import partial
from pathlib import Path

import jaxbandits as jb
from jaxbandits.estimates import estimate

from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "fixed-budget-cpu.json"
SEED = 61
KEY = ("section", "setting", "algorithm")
UNIFORM, D_OPT, OD = "GSE uniform", "GSE D-optimal", "OD-LinBAI"
REGRET = "GSE D-optimal, regret rounding"
ALGORITHMS = {
    UNIFORM: jb.gse,
    D_OPT: partial(jb.gse, design="d_opt", tol=1e-3),
    REGRET: partial(jb.gse, design="d_opt", rounding="regret", tol=1e-3),
    OD: partial(jb.od_linbai, tol=1e-3),
}
COLUMNS = {UNIFORM: 0, D_OPT: 1, REGRET: 1, OD: 2}
LOG = {"family": "logistic"}
LIN = {"family": "gaussian"}
LOGISTIC_ALGORITHMS = {
    "GSE-Log uniform": partial(jb.gse, **LOG),
    "GSE-Log D-optimal": partial(jb.gse, design="d_opt", tol=1e-3, **LOG),
    "GSE-Lin uniform": partial(jb.gse, **LIN),
    "GSE-Lin D-optimal": partial(jb.gse, design="d_opt", tol=1e-3, **LIN),
}
GAPS = (0.01, 0.03, 0.05, 0.1, 0.3, 0.5, 1.0)
STATIC = {
    1.0: (0.062, 0.075, 0.099, 0.160, 0.464, 0.759, 0.976),
    10.0: (0.076, 0.077, 0.068, 0.090, 0.164, 0.219, 0.499),
}
ADAPTIVE = {  # {draws per arm: {K: (uniform, D-optimal)}}
    10: {8: (0.33, 0.31), 16: (0.25, 0.28), 32: (0.24, 0.23), 64: (0.22, 0.16)},
    20: {8: (0.40, 0.41), 16: (0.37, 0.37), 32: (0.33, 0.31), 64: (0.35, 0.30)},
    50: {8: (0.45, 0.43), 16: (0.44, 0.45), 32: (0.47, 0.39), 64: (0.46, 0.40)},
}
SIZES = (8, 16, 32, 64, 128)
SPHERE = {  # variance, draws per arm: uniform, D-optimal and OD-LinBAI for each size
    (1.0, 20): ((91, 86, 83), (86, 81, 85), (79, 84, 83), (84, 85, 87), (77, 78, 87)),
    (1.0, 50): ((96, 96, 97), (96, 96, 95), (94, 93, 94), (92, 93, 92), (93, 95, 99)),
    (10.0, 20): ((51, 50, 47), (39, 40, 36), (43, 42, 28), (41, 41, 44), (46, 49, 50)),
    (10.0, 50): ((60, 62, 61), (54, 58, 58), (61, 60, 60), (65, 58, 67), (58, 64, 67)),
}
BUDGETS = {  # the same with variance 1, by the total budget
    100: ((81, 81, 84), (67, 64, 59), (50, 43, 40), (34, 31, 36)),
    200: ((93, 93, 91), (79, 78, 74), (61, 62, 67), (53, 49, 51)),
    500: ((98, 97, 98), (91, 88, 88), (83, 78, 84), (72, 65, 69)),
}
LOGISTIC = {  # dimension, draws per arm: the four of `LOGISTIC_ALGORITHMS`
    (5, 10): (39, 44, 35, 38),
    (5, 20): (47, 55, 44, 47),
    (5, 50): (63, 65, 56, 57),
    (7, 50): (59, 65, 59, 56),
    (10, 50): (58, 60, 59, 59),
    (12, 50): (68, 66, 62, 62),
}
CORNER = {3: (67, 70, 90), 6: (30, 34, 87), 12: (14, 15, 86), 24: (6, 11, 87)}


def cells():
    """All `(section, setting, algorithm, instance, budget, figure, the figure's replications)`."""
    for noise_var, figures in STATIC.items():
        for gap, figure in zip(GAPS, figures, strict=True):
            instance = jb.instances.canonical(16, gap=gap, noise_var=noise_var)
            for name in (UNIFORM, D_OPT):
                yield "8.2", f"variance {noise_var:g}, gap {gap}", name, instance, 320, figure, 1000
    for num_arms in (8, 16, 32, 64):
        instance = jb.instances.soare(num_arms - 1, angle=0.1, noise_var=10.0)
        for per_arm, table in ADAPTIVE.items():
            for name, figure in zip((UNIFORM, D_OPT), table[num_arms], strict=True):
                setting = f"K = {num_arms}, {per_arm} per arm"
                yield "8.1", setting, name, instance, per_arm * num_arms, figure, 1000
    for index, num_arms in enumerate(SIZES):
        for name, which in COLUMNS.items():  # cells that share a program follow each other
            for (noise_var, per_arm), figures in SPHERE.items():
                setting = f"K = {num_arms}, variance {noise_var:g}, {per_arm} per arm"
                figure, budget = figures[index][which] / 100, per_arm * num_arms
                yield "8.3", setting, name, _sphere(num_arms, noise_var), budget, figure, 300
            for budget, figures in BUDGETS.items():
                if num_arms < 128:
                    setting, figure = f"K = {num_arms}, budget {budget}", figures[index][which]
                    instance = _sphere(num_arms, 1.0)
                    yield "figure 6", setting, name, instance, budget, figure / 100, 300
    for (dim, per_arm), figures in LOGISTIC.items():
        instance = partial(jb.instances.logistic_cube, num_arms=8, dim=dim)
        for name, figure in zip(LOGISTIC_ALGORITHMS, figures, strict=True):
            yield (
                "8.4",
                f"d = {dim}, {per_arm} per arm",
                name,
                instance,
                8 * per_arm,
                figure / 100,
                200,
            )
    for num_arms, figures in CORNER.items():
        instance = partial(jb.instances.corner, num_arms=num_arms)
        for name, which in COLUMNS.items():
            yield "figure 7", f"K = {num_arms}", name, instance, 25, figures[which] / 100, 1000


def _sphere(num_arms, noise_var):
    options = {"dim": 10, "mix": 0.01, "noise_var": noise_var}
    return partial(jb.instances.sphere, num_arms=num_arms, **options)


def deviations(one, runs, other, others):
    """The difference of two proportions in standard errors, if both have the same probability."""
    share = (one * runs + other * others) / (runs + others)
    return (one - other) / math.sqrt(share * (1 - share) * (1 / runs + 1 / others))


def measured(cell, replications):
    """A row of the table."""
    *names, instance, budget, figure, many = cell
    build = partial({**ALGORITHMS, **LOGISTIC_ALGORITHMS}[names[2]], budget=budget)
    runs = jb.simulate(instance, build, replications=replications, seed=SEED)
    accuracy = float(runs.correct.mean())
    error = math.sqrt(accuracy * (1 - accuracy) / replications)
    other = math.sqrt(figure * (1 - figure) / many)
    assert runs.pulls.max() <= budget
    assert names[2] == OD or runs.pulls.min() == budget
    return {
        **dict(zip(KEY, names, strict=True)),
        "replications": replications,
        "budget": budget,
        "accuracy": accuracy,
        "standard_error": error,
        "figure": figure,
        "figure_error": other,
        "deviations": deviations(accuracy, replications, figure, many),
        "pulls": [int(runs.pulls.min()), int(runs.pulls.max())],
        **{name: float(values.mean()) for name, values in runs.info.items()},
        "seconds": runs.meta["seconds"],
        "compile_seconds": runs.meta["compile_seconds"],
    }


def main(arguments=None):
    parser = command(__doc__, replications=10_000, results=RESULTS)
    chosen = parser.parse_args(arguments)
    rows = kept(chosen.out)
    for cell in cells():
        if not all(word in " ".join(cell[:3]) for word in chosen.only):
            continue
        row = stored(rows, KEY, **dict(zip(KEY, cell, strict=False)))
        if row is None or row["replications"] < chosen.replications:
            row = measured(cell, chosen.replications)
            rows = keep(chosen.out, rows, row, KEY)
        print(
            f"{row['section']:9} {row['setting']:32} {row['algorithm']:30}"
            f"{estimate(row['accuracy'], row['standard_error']):>18}"
            f"{estimate(row['figure'], row['figure_error']):>18}{row['deviations']:+6.1f}"
            f"{row['seconds']:9.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
