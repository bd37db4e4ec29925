"""GSE: Azizi, Kveton and Ghavamzadeh, "Fixed-budget best-arm identification in structured bandits".

IJCAI 2022. The sweep files of this folder say what is run, and `jaxbandits run` takes them as well;
this module holds the claims of the paper. "Wynn" takes Fedorov's steps, as the published program
does. The paper chose the kernel of BayesGap and the delta of LinGapE by its results; here
`benchmarks/tuning.py` chooses them.
"""

import itertools
from functools import partial
from pathlib import Path
from typing import Any

from ... import instances
from ...instances.data.local_files import CAR_FILE, MOTOR_FILES
from ..claims import Claim, accuracy, best_of, change, checked, compare, seconds
from ..experiment import Builders, Experiment, from_files
from .bounds import BOUNDS

PAPER = "Azizi et al. (2022), Figure"
LIN, FWG, GREEDY, WYNN, D = (
    "GSE-Lin",
    *(f"GSE-Lin-{design}" for design in ("FWG", "Greedy", "Wynn", "D")),
)
LOG, LOG_FWG, LOG_D = "GSE-Log", "GSE-Log-FWG", "GSE-Log-D"
OD, PEACE, BAYES, HALVING = "OD-LinBAI", "Peace", "BayesGap", "Sequential halving"
GAPE, GAPE_GREEDY, UCB, UCB_GLM = "LinGapE", "LinGapE-Greedy", "LinUCB", "UCB-GLM"
LARGE_K = {"num_arms": [64, 128]}
NOISY, QUIET = {"instance": "variance 10"}, {"instance": "variance 1"}


def _figure(title: str, files: list[str], *claims: Claim, **rest: Any) -> Experiment:
    run = from_files(*(f"gse/{file}.toml" for file in files))
    return Experiment(title=title, claims=checked(*claims), quantities=("accuracy",), **run, **rest)


STATIC = _figure(
    f"Independent arms, {PAPER} 1",
    ["fig1"],
    compare(
        "All forms of GSE are alike: they are sequential halving here.",
        accuracy(),
        (LIN, FWG, GREEDY, WYNN, HALVING),
        least=-0.03,
        most=0.03,
    ),
    compare(
        "LinUCB is best for small gaps (0.01 to 0.05).",
        accuracy({**NOISY, "gap": [0.01, 0.03, 0.05]}),
        UCB,
        (LIN, FWG, OD, PEACE, BAYES, GAPE, GAPE_GREEDY),
        least=0.0,
    ),
    compare(
        "GSE is ahead of all but LinUCB for the largest gap of the paper (0.3).",
        accuracy({**NOISY, "gap": 0.3}),
        LIN,
        (OD, PEACE, BAYES, GAPE, GAPE_GREEDY),
        least=0.0,
    ),
    compare(
        "BayesGap, LinGapE and Peace do not gain from a gap of 0.3 instead of 0.01 (under 5%).",
        change("gap", start=0.01, end=0.3, where=NOISY),
        (BAYES, GAPE, PEACE),
        most=0.05,
    ),
    compare(
        "With less noise GSE gains more than 30% from a gap of 0.3 instead of 0.01.",
        change("gap", start=0.01, end=0.3, where=QUIET),
        (LIN, FWG),
        least=0.3,
    ),
    quick={"algorithms": (LIN, HALVING, UCB), "axes": {"gap": (0.3, 1.0)}, "replications": 200},
)

ADAPTIVE = _figure(
    f"K = dim + 1 arms, the last almost the best, {PAPER} 2",
    ["fig2"],
    compare(
        "LinGapE is best for few arms (dim = 7).",
        accuracy({"dim": 7}),
        (GAPE, GAPE_GREEDY),
        (LIN, FWG, GREEDY, WYNN, OD, PEACE, BAYES, UCB),
        least=0.0,
    ),
    compare(
        "GSE-Lin-FWG is second for few arms (dim = 7).",
        accuracy({"dim": 7}),
        FWG,
        (GREEDY, WYNN, OD, PEACE, BAYES, UCB),
        least=0.0,
    ),
    compare(
        "GSE-Lin-FWG is best for many arms (dim = 127).",
        accuracy({"dim": 127}),
        FWG,
        (GREEDY, WYNN, OD, BAYES, GAPE, GAPE_GREEDY, UCB),
        least=0.0,
    ),
    compare("LinGapE gets worse with more arms.", change("dim"), (GAPE, GAPE_GREEDY), most=0.0),
    compare(
        "BayesGap is poor: behind all others.",
        accuracy(),
        (LIN, FWG, GREEDY, WYNN, GAPE, UCB),
        BAYES,
        least=0.0,
    ),
    compare(
        "Peace is behind all forms of GSE.", accuracy(), (LIN, FWG, GREEDY, WYNN), PEACE, least=0.0
    ),
    compare(
        "Peace takes more than ten times the time of any other (dim = 15).",
        seconds({"dim": 15}),
        PEACE,
        (LIN, FWG, GREEDY, WYNN, OD, BAYES, GAPE, GAPE_GREEDY, UCB),
        least=10.0,
    ),
    compare(
        "The D-optimal design does as well as FWG.", accuracy(), (D, FWG), least=-0.03, most=0.03
    ),
    compare(
        "FWG is as good as equal shares, which it does not leave here.",
        accuracy(),
        (LIN, FWG),
        least=-0.01,
        most=0.01,
    ),
    quick={
        "algorithms": (LIN, FWG, GREEDY, GAPE_GREEDY, UCB, PEACE),
        "axes": {"dim": (7, 15), "per_arm": (20,)},
        "replications": 100,
    },
)

SPHERE = _figure(
    f"Arms on a sphere, {PAPER} 3",
    ["fig3"],
    compare(
        "The G-optimal designs are alike.",
        accuracy(),
        (FWG, GREEDY, WYNN, D),
        least=-0.03,
        most=0.03,
    ),
    compare(
        "FWG is best among the forms of GSE.", accuracy(), FWG, (LIN, GREEDY, WYNN, D), least=0.0
    ),
    compare("LinGapE gets worse with more arms.", change("num_arms"), GAPE_GREEDY, most=0.0),
    compare(
        "OD-LinBAI gets worse beyond 55 arms, dim (dim + 1) / 2.",
        change("num_arms", start=32),
        OD,
        most=0.0,
    ),
    compare(
        "GSE-Lin-FWG is ahead of OD-LinBAI for many arms.", accuracy(LARGE_K), FWG, OD, least=0.0
    ),
    quick={
        "algorithms": (LIN, FWG, OD, GAPE_GREEDY),
        "axes": {"num_arms": (8, 32), "per_arm": (20,)},
        "replications": 100,
    },
)

LOGISTIC = _figure(
    f"Logistic rewards, {PAPER} 4",
    ["fig4"],
    compare("GSE-Log is ahead of GSE-Lin.", accuracy(), LOG, LIN, least=0.0),
    compare("GSE-Log-FWG is ahead of GSE-Lin-FWG.", accuracy(), LOG_FWG, FWG, least=0.0),
    compare(
        "GSE-Log is ahead of GSE-Lin where arms depend on each other (dim = 5, 7).",
        accuracy({"dim": [5, 7]}),
        LOG,
        LIN,
        least=0.0,
    ),
    compare(
        "GSE-Log is GSE-Lin where arms are independent (dim = 10, 12).",
        accuracy({"dim": [10, 12]}),
        (LOG, LIN),
        least=-0.01,
        most=0.01,
    ),
    compare(
        "FWG is ahead of equal shares in the logistic model.", accuracy(), LOG_FWG, LOG, least=0.0
    ),
    compare("FWG is ahead of equal shares in the linear model.", accuracy(), FWG, LIN, least=0.0),
    compare(
        "UCB-GLM is poor: behind all others.",
        accuracy(),
        (LOG, LOG_FWG, LIN, FWG, BAYES),
        UCB_GLM,
        least=0.0,
    ),
    compare(
        "BayesGap is behind GSE with 50 pulls an arm.",
        accuracy({"per_arm": 50}),
        (LOG, LOG_FWG),
        BAYES,
        least=0.0,
    ),
    compare(
        "GSE gains from a larger budget.", change("per_arm"), (LOG, LOG_FWG, LIN, FWG), least=0.05
    ),
    quick={
        "algorithms": (LOG, LIN, UCB_GLM),
        "axes": {"dim": (5, 12), "per_arm": (10, 50)},
        "replications": 200,
    },
)


def _from_folder(folder: Path) -> Builders:
    """Recorded cars and motors, or what stands in for those that the folder lacks."""
    cars, motor = _file(folder, "automobile", CAR_FILE), _motor_file(folder)
    return {
        "cars": partial(instances.automobile, path=str(cars)) if cars else instances.cars,
        "motor": partial(instances.electric_motor, path=str(motor)) if motor else instances.motor,
    }


def _file(folder: Path, inner: str, name: str) -> Path | None:
    files = (folder / name, folder / inner / name)
    return next((file for file in files if file.is_file()), None)


def _motor_file(folder: Path) -> Path | None:
    names = itertools.product(("electric_motor", "motor"), MOTOR_FILES)
    return next((file for inner, name in names if (file := _file(folder, inner, name))), None)


def _stands_in(folder: Path | None) -> str:
    missing = [
        name
        for name, file in (
            ("cars", folder and _file(folder, "automobile", CAR_FILE)),
            ("motor records", folder and _motor_file(folder)),
        )
        if not file
    ]
    return f"made-up {' and '.join(missing)}" if missing else ""


DATA = _figure(
    f"The dearest car and the hottest motor, {PAPER} 5",
    ["fig5a", "fig5b"],
    best_of(
        "Cars: a form of GSE is best, or level with LinGapE-Greedy.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, BAYES, GAPE_GREEDY, UCB),
        where={"instance": "cars"},
    ),
    best_of(
        "Cars: a form of GSE is best among all but BayesGap.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, GAPE_GREEDY, UCB),
        where={"instance": "cars"},
    ),
    best_of(
        "Motor: a form of GSE is best, or level with LinGapE-Greedy.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, BAYES, GAPE_GREEDY, UCB),
        where={"instance": "motor"},
    ),
    compare(
        "GSE gains from a larger budget.", change("per_arm"), (LIN, FWG, GREEDY, WYNN), least=0.05
    ),
    from_folder=_from_folder,
    stand_in=_stands_in,
    quick={
        "algorithms": (LIN, FWG, GAPE_GREEDY, UCB),
        "axes": {"num_arms": (8,), "per_arm": (10, 50)},
        "replications": 100,
    },
)

AGAINST_OD = (
    compare(
        "GSE is ahead of OD-LinBAI for budget = 100 and many arms (num_arms = 32, 64).",
        accuracy({"budget": 100, "num_arms": [32, 64]}),
        FWG,
        OD,
        least=0.0,
    ),
    compare(
        "OD-LinBAI is ahead of GSE for budget = 500.", accuracy({"budget": 500}), OD, FWG, least=0.0
    ),
)
QUICK_6 = {
    "algorithms": (LIN, OD),
    "axes": {"num_arms": (8, 32), "budget": (100, 500)},
    "replications": 200,
}
SPHERE_OD = _figure(
    f"GSE and OD-LinBAI on a sphere, {PAPER} 6", ["fig6"], *AGAINST_OD, quick=QUICK_6
)
SPHERE_OD_PER_ARM = _figure(
    f"GSE and OD-LinBAI on a sphere, budgets per arm, {PAPER} 6",
    ["fig6_per_arm"],
    compare(
        "With so many pulls both are alike, within 2%.",
        accuracy(),
        (FWG, OD),
        least=-0.02,
        most=0.02,
    ),
    quick={
        "algorithms": (LIN, OD),
        "axes": {"num_arms": (8, 16), "per_arm": (100,)},
        "replications": 200,
    },
)

FWG_25, OD_25 = "GSE-Lin-FWG, 25 K pulls", "OD-LinBAI, 25 K pulls"
CORNER = _figure(
    f"Two dimensions and 25 pulls, {PAPER} 7",
    ["fig7"],
    compare(
        "OD-LinBAI is clearly better: by more than 10% from three arms on.",
        accuracy(),
        OD,
        (LIN, FWG),
        least=0.1,
    ),
    compare("With 25 pulls an arm OD-LinBAI is still ahead.", accuracy(), OD_25, FWG_25, least=0.0),
    compare("GSE gets worse with more arms.", change("num_arms"), (LIN, FWG), most=-0.2),
    quick={"algorithms": (LIN, OD), "axes": {"num_arms": (3, 12)}, "replications": 200},
)

ETAS = tuple(f"η = {eta}" for eta in ("2", "3", "4", "K"))
ETA = _figure(
    "How fast GSE eliminates, on the arms of Figure 2 of Azizi et al. (2022)",
    ["eta"],
    best_of("η = 2 is best, or within 2% of it.", ETAS[:1], ETAS[1:]),
    quick={"axes": {"dim": (7,), "per_arm": (20,)}, "replications": 200},
)

EXPERIMENTS: dict[str, Experiment] = {
    "gse/fig1": STATIC,
    "gse/fig2": ADAPTIVE,
    "gse/fig3": SPHERE,
    "gse/fig4": LOGISTIC,
    "gse/fig5": DATA,
    "gse/fig6": SPHERE_OD,
    "gse/fig6_per_arm": SPHERE_OD_PER_ARM,
    "gse/fig7": CORNER,
    "gse/eta": ETA,
    "gse/bounds": BOUNDS,
}
