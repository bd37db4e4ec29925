"""Regret of generalised linear bandits compared with an independent calculation.

The figures are mean regrets of that calculation and their standard errors, each over 32 redrawn
problems: a hundred arms in a cube of half width 1, and theta with variance 3/d or 3/d^2 per
coordinate. For variance 3/d^2 most standard errors are missing; the relative error of the same
algorithm and size at variance 3/d is used instead.

    python -m benchmarks.glm_regret [--only WORD ...] [--replications N] [--engine NAME]
"""

import math
from functools import partial
from pathlib import Path

import jaxbandits as jb
from jaxbandits.estimates import estimate

from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "glm-regret-cpu.json"
SEED = 17
KEY = ("setting", "algorithm")
PRIOR = {"ridge": 1.0}
ALGORITHMS = {
    "GLM-TSL": jb.glm_tsl,
    "GLM-TSL, ridge 1": partial(jb.glm_tsl, **PRIOR),
    "GLM-FPL": jb.glm_fpl,
    "GLM-FPL, ridge 1": partial(jb.glm_fpl, **PRIOR),
    "GLM-FPL, a 1, ridge 1": partial(jb.glm_fpl, a=1.0, **PRIOR),
    "UCB-GLM": jb.ucb_glm,
    "GLM-UCB": jb.glm_ucb,
    "GLM-TSL theory": partial(jb.glm_tsl, a="theory"),
    "GLM-FPL theory": partial(jb.glm_fpl, a="theory"),
    "UCB-GLM theory": partial(jb.ucb_glm, alpha="theory"),
    "GLM-UCB theory": partial(jb.glm_ucb, alpha="theory"),
}
NAMES = tuple(ALGORITHMS)
SMALL = ((44, 3.0), (42, 2.7), (51, 1.7), (50, 3.0), (90, 2.4), (49, 9.7), (26, 2.9))
SMALL_THEORY = ((245, 5.2), (268, 5.8), (49, 2.6), (678, 35))
LARGE = ((121, 9.6), (109, 9.1), (188, 10.1), (179, 10.8), (344, 9.7), (354, 57.8), (109, 24.6))
LARGE_THEORY = ((1214, 26), (1388, 31), (209, 15), (3622, 109))
FLAT = {  # theta of variance 3/d^2
    "GLM-TSL": (256, None),
    "GLM-FPL": (259, None),
    "UCB-GLM": (360, 74),
    "GLM-UCB": (139, 24),
    "GLM-TSL theory": (1200, None),
    "GLM-FPL theory": (1200, None),
    "UCB-GLM theory": (409, None),
    "GLM-UCB theory": (1705, None),
}


def cells():
    """All `(setting, algorithm, instance, horizon, figure, the figure's error)`."""
    cube = partial(jb.instances.logistic_cube, num_arms=100, half_width=1.0)
    large = dict(zip(NAMES, LARGE + LARGE_THEORY, strict=True))
    for name, figure in zip(NAMES, SMALL + SMALL_THEORY, strict=True):
        yield "d = 5, 2000 rounds", name, partial(cube, dim=5), 2000, *figure
    for name, figure in large.items():
        yield "d = 10, 10000 rounds", name, partial(cube, dim=10), 10_000, *figure
    for name, (figure, error) in FLAT.items():
        error = error or figure * large[name][1] / large[name][0]
        instance = partial(cube, dim=10, theta_var=0.03)
        yield "d = 10, 10000 rounds, variance 3/d^2", name, instance, 10_000, figure, error
    for name, figure in (("GLM-TSL", (166, 8)), ("GLM-FPL", (273, 8))):
        yield "d = 20, 10000 rounds", name, partial(cube, dim=20), 10_000, *figure


def measured(cell, replications, engine):
    """A row of the table."""
    *names, instance, horizon, figure, figure_error = cell
    settings = {"replications": replications, "horizon": horizon, "seed": SEED, "engine": engine}
    runs = jb.simulate(instance, ALGORITHMS[names[1]], **settings)
    last = runs.regret[:, -1]
    mean, error = last.mean(), last.std(ddof=1) / math.sqrt(replications)
    return {
        **dict(zip(KEY, names, strict=True)),
        "replications": replications,
        "regret": round(float(mean), 2),
        "standard_error": round(float(error), 2),
        "figure": figure,
        "figure_error": round(figure_error, 2),
        "deviations": round(float((mean - figure) / math.hypot(error, figure_error)), 2),
        "unconverged": int(runs.info["unconverged"].sum()),
        "microseconds_a_round": round(1e6 * runs.meta["seconds"] / replications / horizon, 2),
        "engine": engine,
    }


def main(arguments=None):
    parser = command(__doc__, replications=256, results=RESULTS)
    parser.add_argument("--engine", default="xla")
    chosen = parser.parse_args(arguments)
    rows = kept(chosen.out)
    for cell in cells():
        if not all(word in " ".join(cell[:2]) for word in chosen.only):
            continue
        row = stored(rows, KEY, **dict(zip(KEY, cell, strict=False)))
        if row is None or row["replications"] < chosen.replications:
            row = measured(cell, chosen.replications, chosen.engine)
            rows = keep(chosen.out, rows, row, KEY)
        print(
            f"{row['setting']:38} {row['algorithm']:22}"
            f"{estimate(row['regret'], row['standard_error']):>18}"
            f"{estimate(row['figure'], row['figure_error']):>18}{row['deviations']:+6.1f}"
            f"{row['microseconds_a_round']:8.1f} us",
            flush=True,
        )


if __name__ == "__main__":
    main()
