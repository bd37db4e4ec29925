"""Stopping times compared with those of independent programs, on the same fixed instances.

The figures are means and standard errors at delta = 0.05: of the RAGE authors' published program
("code"), and of an independent simulator with the same constants ("check").

    python -m benchmarks.agreement [--only WORD ...] [--replications N]
"""

import functools
import math
from functools import partial
from pathlib import Path

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler
from jaxbandits.estimates import estimate

from . import paper_instances as fixed
from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "agreement-cpu.json"
DELTA = 0.05
LIMIT = 2**31 - 1  # pulls
KEY = ("instance", "algorithm", "column")


def _soare(dim, angle):
    return jb.instances.soare(dim, angle=angle, scale=2.0)


INSTANCES = {
    **{f"soare {d}, angle 0.1": partial(_soare, d, 0.1) for d in (3, 5, 10, 15)},
    **{f"soare {d}, angle 0.01": partial(_soare, d, 0.01) for d in (3, 5, 10, 15)},
    **{f"many arms {n}": partial(fixed.many_arms, n) for n in (10, 100, 1000)},
    **{f"sphere {n}": partial(fixed.sphere, n) for n in (20, 50, 100)},
    **{f"transductive {d}": partial(jb.instances.transductive, d) for d in (6, 12, 20)},
    **{f"multivariate {f}": partial(fixed.multivariate, f) for f in (3, 4, 5)},
}
CODE = {"powers": "odd", "singular": "ignore", "design": "frank_wolfe"}
CHECK = {"powers": "odd", "design": "frank_wolfe"}
ALGORITHMS = {
    "RAGE": jb.rage,
    "RAGE, Frank-Wolfe": partial(jb.rage, design="frank_wolfe"),
    "XY-adaptive": jb.xy_adaptive,
    "LinGapE, ratio": partial(jb.lingape, selection="ratio"),
    "LinGapE, greedy": jb.lingape,
    "XY-static, as published": partial(jb.xy_static, **CODE),
    "XY-static, rank waited for": partial(jb.xy_static, **CHECK),
    "XY-static": jb.xy_static,
    "XY-oracle, as published": partial(jb.xy_oracle, **CODE),
    "XY-oracle, rank waited for": partial(jb.xy_oracle, **CHECK),
    "XY-oracle, rounded": partial(jb.xy_oracle, allocation="rounded", **CHECK),
    "XY-oracle": jb.xy_oracle,
}
"""By algorithm and column: mean and standard error for each instance of a family, None: missing."""
FIGURES = {
    ("RAGE", "check"): {
        "soare, angle 0.1": [(6494, 212), (7315, 213), (9405, 231), (10965, 227)],
        "soare, angle 0.01": [(760e3, 16e3), (830e3, 17e3), (942e3, 17e3), (1009e3, 19e3)],
        "many arms": [(712, 25), (994, 30), (1344, 78)],
        "sphere": [(3669, 104), (4182, 78), (6797, 116)],
        "transductive": [(27742, 826), (30438, 787), (34808, 788)],
        "multivariate": [(66634, 2098), (8912, 197), (212664, 5088)],
    },
    ("RAGE, Frank-Wolfe", "code"): {
        "soare, angle 0.1": [(7063, 216), (7438, 419), (9860, 534), (10401, 510)],
        "many arms": [(688, 50), (1043, 27), None],
        "sphere": [(3599, 177), (4093, 226), (5971, 540)],
        "transductive": [(25885, 1628), (31591, 1934), (33475, 1830)],
        "multivariate": [(54449, 6092), (8578, 704), (194946, 1640)],
    },
    ("XY-adaptive", "check"): {
        "soare, angle 0.1": [(6505, 265), (7304, 265), (7675, 335), (8480, 259)],
        "many arms": [(776, 31), None, None],
        "sphere": [(6612, 226), (7252, 119), None],
        "multivariate": [(76270, 1546), (14140, 315), None],
    },
    ("LinGapE, ratio", "check"): {
        "soare, angle 0.1": [(6018, 113), (7429, 124), (10837, 170), (14235, 182)],
        "soare, angle 0.01": [(647e3, 12e3), (767e3, 15e3), (1017e3, 60e3), (1450e3, 88e3)],
        "multivariate": [(87271, 1159), (14697, 135), (540e3, 18e3)],
    },
    ("LinGapE, ratio", "code"): {
        "many arms": [(396, 18), (571, 25), None],
        "sphere": [(4560, 258), (5584, 142), (6974, 209)],
    },
    ("LinGapE, greedy", "check"): {
        "soare, angle 0.1": [(6077, 116), (7355, 130), (10711, 164), (14563, 176)],
    },
    ("XY-static, as published", "code"): {
        "soare, angle 0.1": [(10018, 506), (20008, 917), (42153, 1884), (68117, 3480)],
        "many arms": [(1090, 47), (1439, 53), None],
        "sphere": [(5995, 204), (5680, 232), (9715, 786)],
        "transductive": [(539e3, 30e3), (1272e3, 167e3), (1891e3, 267e3)],
        "multivariate": [(138e3, 7e3), (12178, 460), (662e3, 90e3)],
    },
    ("XY-static, rank waited for", "check"): {
        "soare, angle 0.1": [(10710, 230), (19060, 401), (41964, 890), (69333, 1344)],
        "soare, angle 0.01": [(1153e3, 23e3), (2172e3, 43e3), (4559e3, 86e3), (7290e3, 133e3)],
    },
    ("XY-oracle, as published", "code"): {
        "soare, angle 0.1": [(3314, 136), (3658, 151), (3885, 159), (4195, 158)],
        "many arms": [(327, 14), (399, 15), (443, 27)],
        "sphere": [(2817, 68), (2810, 62), (3402, 74)],
        "transductive": [(14563, 578), (15750, 544), (17267, 587)],
        "multivariate": [(46613, 1117), (6090, 157), (143571, 4398)],
    },
    ("XY-oracle, rank waited for", "check"): {
        "soare, angle 0.1": [(3430, 71), (3619, 73), (4076, 80), (4302, 75)],
        "soare, angle 0.01": [(340e3, 6e3), (335e3, 6e3), (355e3, 7e3), (380e3, 7e3)],
        "transductive": [(15300, 284), (26937, 613), (64170, 1320)],
        "multivariate": [(45791, 538), (6140, 66), (141721, 1566)],
    },
    ("XY-static", None): {"soare, angle 0.1": [None] * 4, "transductive": [None] * 3},
    ("XY-oracle", None): {"soare, angle 0.1": [None] * 4, "transductive": [None] * 3},
    ("XY-oracle, rounded", None): {"transductive": [None] * 3},
}


def _family(name):
    word, *rest = name.split(", ")
    return ", ".join([word.rsplit(" ", 1)[0], *rest])


def cells():
    """All `(instance, algorithm, column, figure)`; the figure is None where there is none."""
    for (algorithm, column), families in FIGURES.items():
        for family, figures in families.items():
            names = [name for name in INSTANCES if _family(name) == family]
            for name, figure in zip(names, figures, strict=True):
                if figure is not None or column is None:
                    yield name, algorithm, column, figure


@functools.cache
def measured(name, algorithm, replications):
    """Mean pulls, their standard error, errors, and seconds with and without compiling."""
    build = partial(ALGORITHMS[algorithm], delta=DELTA)
    options = {"replications": replications, "seed": 43, "max_pulls": LIMIT}
    # The native engine is faster for sequential algorithms and gives the same replications.
    engine = "native" if algorithm.startswith("LinGapE") and compiler() else "xla"
    runs = jb.simulate(INSTANCES[name](), build, engine=engine, **options)
    digest = runs.summary()
    mean = digest["pulls_mean"]
    # The published program counts d draws per phase that it does not make.
    if algorithm == "XY-adaptive":
        mean += INSTANCES[name]().arms.shape[1] * float(runs.info["phases"].mean())
    return {
        "mean": mean,
        "standard_error": digest["pulls_se"],
        "errors": digest["errors"],
        "cut_short": digest["cut_short"],
        "replications": replications,
        "seconds": runs.meta["seconds"],
        "compile_seconds": runs.meta["compile_seconds"],
    }


@functools.cache
def bound(name):
    """The certified lower bound on the mean pulls of any algorithm with error probability DELTA."""
    return jb.theory.pull_lower_bound(INSTANCES[name](), DELTA)


def compared(name, algorithm, column, figure, replications):
    """A row of the table."""
    row = {"instance": name, "algorithm": algorithm, "column": column}
    row |= measured(name, algorithm, replications)
    row["over_the_bound"] = row["mean"] / bound(name)
    if figure is not None:
        error = math.hypot(row["standard_error"], figure[1])
        row |= {"figure": figure[0], "figure_error": figure[1]}
        row["deviations"] = (row["mean"] - figure[0]) / error
    return row


def main(arguments=None):
    parser = command(__doc__, replications=400, results=RESULTS)
    chosen = parser.parse_args(arguments)
    rows = kept(chosen.out)
    for name, algorithm, column, figure in cells():
        if not all(word in f"{name} {algorithm} {column}" for word in chosen.only):
            continue
        row = stored(rows, KEY, instance=name, algorithm=algorithm, column=column)
        if row is None or row["replications"] < chosen.replications:
            row = compared(name, algorithm, column, figure, chosen.replications)
        print(
            f"{name:22} {algorithm:28} {estimate(row['mean'], row['standard_error']):>25}"
            + (f" {column:6} {estimate(*figure):>25}" if figure else " " * 33)
            + (f"{row['deviations']:+6.1f}" if figure else ""),
            flush=True,
        )
        rows = keep(chosen.out, rows, row, KEY)


if __name__ == "__main__":
    main()
