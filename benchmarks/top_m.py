"""Top-m identification compared with an independent program, on the paper's instances.

Figures are means and standard errors of that program at delta = 0.05, in three conventions.
"paper": the test comes before the draw, the ridge is sigma / 20. "code": as the published program,
which tests the pair drawn last, with its own ridge and threshold. "fresh": the ridge of the
published program, with the correct test and threshold. Some runs do not end, for example if several
of the best means are equal. They are counted separately; means are over the runs that end.

    python -m benchmarks.top_m [--only WORD ...] [--replications N] [--data FOLDER]
"""

import math
from functools import partial
from pathlib import Path

import numpy as np

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler
from jaxbandits.estimates import estimate

from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "top-m-cpu.json"
DELTA, SEED = 0.05, 47
KEY = ("instance", "threshold", "algorithm", "column")
SIXTH, THIRD = np.pi / 6, np.pi / 3
LV = "largest_variance"


def _random(folder):
    """The authors' random instance: ten arms in five dimensions, theta is the first unit vector."""
    arms = np.loadtxt(Path(folder, "top_m_random_instance", "features_5x10.csv")).T
    return jb.instances.linear(arms, np.eye(arms.shape[1])[0], noise_var=0.25)


INSTANCES = {  # name: folder -> instance, m, most pulls
    "K = 4, pi/6": (lambda _: jb.instances.classic_top_m(4, 2, angle=SIXTH), 2, 10**6),
    "K = 4, pi/3": (lambda _: jb.instances.classic_top_m(4, 2, angle=THIRD), 2, 10**6),
    "K = 3, 0.1": (lambda _: jb.instances.classic_top_m(3, 1, angle=0.1), 1, 2**31 - 1),
    "K = 10, pi/6": (lambda _: jb.instances.classic_top_m(10, 3, angle=SIXTH), 3, 10**6),
    "drugs": (lambda x: jb.instances.drug_repurposing(Path(x) / "drug_repurposing"), 5, 10**6),
    "random, m = 3": (_random, 3, 10**7),
    "random, m = 8": (_random, 8, 10**7),
}
RECORDED = ("drugs", "random, m = 3", "random, m = 8")
_ALONE = {"selection": LV, "indices": "individual"}
ALGORITHMS = {
    "LUCB both": partial(jb.lucb, selection="both"),
    "LUCB lv": partial(jb.lucb, selection=LV),
    "UGapE": jb.ugape,
    "m-LinGapE lv": partial(jb.m_lingape, selection=LV),
    "m-LinGapE greedy": jb.m_lingape,
    "m-LinGapE optimized": partial(jb.m_lingape, selection="ratio"),
    "LinGIFA lv": partial(jb.lin_gifa, selection=LV),
    "LinGIFA greedy": jb.lin_gifa,
    "LinGIFA tau_LUCB lv": partial(jb.lin_gifa, selection=LV, stopping="lucb"),
    "LinGIFA tau_LUCB greedy": partial(jb.lin_gifa, stopping="lucb"),
    "LinGIFA individual lv": partial(jb.lin_gifa, **_ALONE),
}
HEURISTIC = {  # columns "paper" and "code"
    "K = 4, pi/6": {
        "LUCB both": ((1620, 80), (1225, 80)),
        "LUCB lv": ((1570, 14), (1129, 16)),
        "UGapE": ((1571, 14), (1572, 14)),
        "m-LinGapE lv": ((749, 10), (697, 10)),
        "m-LinGapE greedy": ((533, 8), (439, 8)),
        "m-LinGapE optimized": ((533, 8), (434, 7)),
        "LinGIFA lv": ((725, 9), (722, 10)),
        "LinGIFA greedy": ((529, 8), (522, 8)),
        "LinGIFA tau_LUCB lv": ((725, 9), (552, 11)),
        "LinGIFA tau_LUCB greedy": ((529, 8), (345, 8)),
        "LinGIFA individual lv": ((1557, 14), (1556, 14)),
    },
    "K = 3, 0.1": {
        "LUCB both": ((905498, 43221), (310262, 31025)),
        "LUCB lv": ((846777, 47471), (307097, 36716)),
        "UGapE": ((716409, 96870), (716410, 96870)),
        "m-LinGapE greedy": ((958, 15), (322, 14)),
        "m-LinGapE optimized": ((953, 15), (360, 14)),
        "LinGIFA lv": ((337936, 25954), (355811, 27137)),
        "LinGIFA greedy": ((961, 16), (956, 15)),
        "LinGIFA tau_LUCB greedy": ((961, 16), (242, 12)),
    },
    "K = 10, pi/6": {
        "LUCB both": ((2018, 16), (617, 14)),
        "LUCB lv": ((2035, 16), (646, 14)),
        "UGapE": ((2029, 19), (2031, 19)),
        "m-LinGapE lv": ((975, 12), (477, 10)),
        "m-LinGapE greedy": ((1185, 290), (319, 8)),
        "m-LinGapE optimized": ((807, 9), (263, 7)),
        "LinGIFA lv": ((1004, 30), (971, 11)),
        "LinGIFA greedy": ((807, 12), (817, 10)),
        "LinGIFA tau_LUCB lv": ((1004, 30), (250, 8)),
        "LinGIFA tau_LUCB greedy": ((807, 12), (198, 6)),
        "LinGIFA individual lv": ((2033, 18), (2018, 17)),
    },
    "drugs": {
        "LUCB both": ((14823, 12), (14800, 12)),
        "LUCB lv": ((15006, 20), (14989, 20)),
        "UGapE": ((15012, 21), (15015, 21)),
        "m-LinGapE lv": ((7634, 8), (7579, 8)),
        "m-LinGapE greedy": ((7633, 8), (7581, 8)),
        "m-LinGapE optimized": ((7629, 8), (7579, 9)),
        "LinGIFA lv": ((7642, 9), (7645, 9)),
        "LinGIFA greedy": ((7631, 9), (7640, 9)),
        "LinGIFA tau_LUCB lv": ((7643, 9), (7622, 9)),
        "LinGIFA tau_LUCB greedy": ((7634, 9), (7621, 9)),
        "LinGIFA individual lv": ((14997, 18), (15038, 18)),
    },
    "random, m = 3": {
        "m-LinGapE greedy": ((1088, 13), (1051, 13)),
        "m-LinGapE optimized": ((1070, 13), (1021, 12)),
        "LinGIFA lv": ((1166, 18), (1194, 19)),
        "LinGIFA greedy": ((1054, 13), (1068, 13)),
    },
    "random, m = 8": {
        "m-LinGapE greedy": ((11703, 331), (11558, 328)),
        "m-LinGapE optimized": ((12193, 339), (11679, 315)),
        "LinGIFA lv": ((14444, 462), (13137, 433)),
        "LinGIFA greedy": ((11893, 415), (12409, 405)),
    },
}
PROVED = {  # columns "paper", "fresh" and "code"
    "K = 4, pi/6": {
        "LUCB both": ((13808, 43), None, (10683, 56)),
        "LUCB lv": ((14039, 54), None, (10663, 60)),
        "UGapE": ((13975, 54), None, (13976, 54)),
        "m-LinGapE lv": ((3443, 22), (4442, 26), (4104, 24)),
        "m-LinGapE greedy": ((2502, 17), (3128, 20), (2964, 19)),
        "m-LinGapE optimized": ((2495, 18), (3117, 20), (2941, 18)),
        "LinGIFA lv": ((3505, 22), None, (4188, 24)),
        "LinGIFA greedy": ((2537, 18), (3030, 19), (3031, 19)),
        "LinGIFA tau_LUCB lv": ((3505, 22), None, (4177, 24)),
        "LinGIFA tau_LUCB greedy": ((2537, 18), None, (3000, 19)),
        "LinGIFA individual lv": ((7605, 33), None, (8973, 35)),
    },
    "K = 4, pi/3": {
        "LUCB both": ((746, 3), None, (719, 3)),
        "LUCB lv": ((762, 3), None, (730, 3)),
        "UGapE": ((764, 3), None, (765, 3)),
        "m-LinGapE lv": ((200, 1), (248, 2), (244, 2)),
        "m-LinGapE greedy": ((167, 1), (200, 1), (199, 1)),
        "m-LinGapE optimized": ((177, 1), (212, 1), (208, 1)),
        "LinGIFA lv": ((199, 1), None, (250, 2)),
        "LinGIFA greedy": ((169, 1), (209, 1), (210, 1)),
        "LinGIFA tau_LUCB lv": ((199, 1), None, (245, 2)),
        "LinGIFA tau_LUCB greedy": ((169, 1), None, (204, 1)),
        "LinGIFA individual lv": ((442, 2), None, (543, 2)),
    },
    "K = 3, 0.1": {
        "m-LinGapE greedy": ((3365, 29), (4784, 35), (3226, 44)),
        "m-LinGapE optimized": ((3354, 30), (4797, 35), (3322, 43)),
        "LinGIFA greedy": ((3360, 29), (3921, 31), (3922, 31)),
        "LinGIFA tau_LUCB greedy": ((3360, 29), None, (2983, 46)),
    },
}
TABLES = {
    "heuristic": (("paper", "code"), HEURISTIC),
    "proved": (("paper", "fresh", "code"), PROVED),
}


def cells():
    """All `(instance, threshold, algorithm, column, figure)`."""
    for threshold, (columns, table) in TABLES.items():
        for instance, algorithms in table.items():
            for algorithm, figures in algorithms.items():
                for column, figure in zip(columns, figures, strict=True):
                    if figure is not None:
                        yield instance, threshold, algorithm, column, figure


def constructor(algorithm, threshold, column, m):
    """The algorithm in a convention."""
    build = partial(ALGORITHMS[algorithm], m=m, delta=DELTA, stale_pair=column == "code")
    averages = algorithm.startswith(("LUCB", "UGapE"))
    if not averages:
        build = partial(build, v0="paper" if column == "paper" else "code")
    proved = "self_normalised_code" if column == "code" else "self_normalised"
    names = {"heuristic": "heuristic", "proved": "lucb1" if averages else proved}
    return partial(build, threshold=names[threshold])


def measured(cell, replications, folder):
    """A row of the table."""
    instance, threshold, algorithm, column, figure = cell
    make, m, most = INSTANCES[instance]
    runs = jb.simulate(
        make(folder),
        constructor(algorithm, threshold, column, m),
        replications=replications,
        seed=SEED,
        max_pulls=most,
        engine="native" if compiler() else "xla",
    )
    pulls = runs.pulls[runs.stopped]
    error = pulls.std(ddof=1) / math.sqrt(pulls.size)
    digest = runs.summary()
    return {
        **dict(zip(KEY, cell[:4], strict=True)),
        "replications": replications,
        "mean": pulls.mean(),
        "standard_error": error,
        "quantiles": np.quantile(pulls, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(),
        **{k: digest[k] for k in ("errors", "error_low", "error_high", "cut_short")},
        "figure": figure[0],
        "figure_error": figure[1],
        "deviations": (pulls.mean() - figure[0]) / math.hypot(error, figure[1]),
        "seconds": runs.meta["seconds"],
        "compile_seconds": runs.meta["compile_seconds"],
    }


def main(arguments=None):
    parser = command(__doc__, replications=5000, results=RESULTS)
    parser.add_argument("--data", type=Path, help="folder of the recorded data")
    chosen = parser.parse_args(arguments)
    rows = kept(chosen.out)
    for cell in cells():
        known = dict(zip(KEY, cell, strict=False))
        missing = known["instance"] in RECORDED and chosen.data is None
        if missing or not all(word in " ".join(cell[:4]) for word in chosen.only):
            continue
        row = stored(rows, KEY, **known)
        if row is None or row["replications"] < chosen.replications:
            row = measured(cell, chosen.replications, chosen.data)
            rows = keep(chosen.out, rows, row, KEY)
        print(
            f"{row['instance']:14} {row['threshold']:10} {row['algorithm']:24} {row['column']:6}"
            f"{estimate(row['mean'], row['standard_error']):>25}"
            f"{estimate(row['figure'], row['figure_error']):>22}{row['deviations']:+6.1f}"
            f"{row['errors']:7} errors {row['cut_short']:4} cut short",
            flush=True,
        )


if __name__ == "__main__":
    main()
