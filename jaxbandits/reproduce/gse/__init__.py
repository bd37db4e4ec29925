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
from ..claims import (
    Claim,
    accuracy_falls,
    accuracy_rises,
    accuracy_stays,
    checked,
    more_accurate,
    not_less_accurate,
    similar_accuracy,
    slower,
)
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
    similar_accuracy(
        "All forms of GSE are alike: they are sequential halving here.",
        (LIN, FWG, GREEDY, WYNN, HALVING),
    ),
    more_accurate(
        "LinUCB is best for small gaps (0.01 to 0.05).",
        UCB,
        (LIN, FWG, OD, PEACE, BAYES, GAPE, GAPE_GREEDY),
        where={**NOISY, "gap": [0.01, 0.03, 0.05]},
    ),
    more_accurate(
        "GSE is ahead of all but LinUCB for the largest gap of the paper (0.3).",
        LIN,
        (OD, PEACE, BAYES, GAPE, GAPE_GREEDY),
        where={**NOISY, "gap": 0.3},
    ),
    accuracy_stays(
        "BayesGap, LinGapE and Peace do not gain from a gap of 0.3 instead of 0.01 (under 5%).",
        (BAYES, GAPE, PEACE),
        "gap",
        start=0.01,
        end=0.3,
        where=NOISY,
    ),
    accuracy_rises(
        "With less noise GSE gains more than 30% from a gap of 0.3 instead of 0.01.",
        (LIN, FWG),
        "gap",
        start=0.01,
        end=0.3,
        where=QUIET,
        by=0.3,
    ),
    quick={"algorithms": (LIN, HALVING, UCB), "axes": {"gap": (0.3, 1.0)}, "replications": 200},
)

ADAPTIVE = _figure(
    f"K = dim + 1 arms, the last almost the best, {PAPER} 2",
    ["fig2"],
    more_accurate(
        "LinGapE is best for few arms (dim = 7).",
        (GAPE, GAPE_GREEDY),
        (LIN, FWG, GREEDY, WYNN, OD, PEACE, BAYES, UCB),
        where={"dim": 7},
    ),
    more_accurate(
        "GSE-Lin-FWG is second for few arms (dim = 7).",
        FWG,
        (GREEDY, WYNN, OD, PEACE, BAYES, UCB),
        where={"dim": 7},
    ),
    more_accurate(
        "GSE-Lin-FWG is best for many arms (dim = 127).",
        FWG,
        (GREEDY, WYNN, OD, BAYES, GAPE, GAPE_GREEDY, UCB),
        where={"dim": 127},
    ),
    accuracy_falls("LinGapE gets worse with more arms.", (GAPE, GAPE_GREEDY), "dim"),
    more_accurate(
        "BayesGap is poor: behind all others.", (LIN, FWG, GREEDY, WYNN, GAPE, UCB), BAYES
    ),
    more_accurate("Peace is behind all forms of GSE.", (LIN, FWG, GREEDY, WYNN), PEACE),
    slower(
        "Peace takes more than ten times the time of any other (dim = 15).",
        PEACE,
        (LIN, FWG, GREEDY, WYNN, OD, BAYES, GAPE, GAPE_GREEDY, UCB),
        10.0,
        where={"dim": 15},
    ),
    similar_accuracy("The D-optimal design does as well as FWG.", (D, FWG)),
    similar_accuracy(
        "FWG is as good as equal shares, which it does not leave here.", (LIN, FWG), within=0.01
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
    similar_accuracy("The G-optimal designs are alike.", (FWG, GREEDY, WYNN, D)),
    more_accurate("FWG is best among the forms of GSE.", FWG, (LIN, GREEDY, WYNN, D)),
    accuracy_falls("LinGapE gets worse with more arms.", GAPE_GREEDY, "num_arms"),
    accuracy_falls(
        "OD-LinBAI gets worse beyond 55 arms, dim (dim + 1) / 2.", OD, "num_arms", start=32
    ),
    more_accurate("GSE-Lin-FWG is ahead of OD-LinBAI for many arms.", FWG, OD, where=LARGE_K),
    quick={
        "algorithms": (LIN, FWG, OD, GAPE_GREEDY),
        "axes": {"num_arms": (8, 32), "per_arm": (20,)},
        "replications": 100,
    },
)

LOGISTIC = _figure(
    f"Logistic rewards, {PAPER} 4",
    ["fig4"],
    more_accurate("GSE-Log is ahead of GSE-Lin.", LOG, LIN),
    more_accurate("GSE-Log-FWG is ahead of GSE-Lin-FWG.", LOG_FWG, FWG),
    more_accurate(
        "GSE-Log is ahead of GSE-Lin where arms depend on each other (dim = 5, 7).",
        LOG,
        LIN,
        where={"dim": [5, 7]},
    ),
    similar_accuracy(
        "GSE-Log is GSE-Lin where arms are independent (dim = 10, 12).",
        (LOG, LIN),
        where={"dim": [10, 12]},
        within=0.01,
    ),
    more_accurate("FWG is ahead of equal shares in the logistic model.", LOG_FWG, LOG),
    more_accurate("FWG is ahead of equal shares in the linear model.", FWG, LIN),
    more_accurate("UCB-GLM is poor: behind all others.", (LOG, LOG_FWG, LIN, FWG, BAYES), UCB_GLM),
    more_accurate(
        "BayesGap is behind GSE with 50 pulls an arm.", (LOG, LOG_FWG), BAYES, where={"per_arm": 50}
    ),
    accuracy_rises("GSE gains from a larger budget.", (LOG, LOG_FWG, LIN, FWG), "per_arm", by=0.05),
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
    not_less_accurate(
        "Cars: a form of GSE is best, or level with LinGapE-Greedy.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, BAYES, GAPE_GREEDY, UCB),
        where={"instance": "cars"},
    ),
    not_less_accurate(
        "Cars: a form of GSE is best among all but BayesGap.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, GAPE_GREEDY, UCB),
        where={"instance": "cars"},
    ),
    not_less_accurate(
        "Motor: a form of GSE is best, or level with LinGapE-Greedy.",
        (LIN, FWG, GREEDY, WYNN),
        (OD, PEACE, BAYES, GAPE_GREEDY, UCB),
        where={"instance": "motor"},
    ),
    accuracy_rises("GSE gains from a larger budget.", (LIN, FWG, GREEDY, WYNN), "per_arm", by=0.05),
    from_folder=_from_folder,
    stand_in=_stands_in,
    quick={
        "algorithms": (LIN, FWG, GAPE_GREEDY, UCB),
        "axes": {"num_arms": (8,), "per_arm": (10, 50)},
        "replications": 100,
    },
)

AGAINST_OD = (
    more_accurate(
        "GSE is ahead of OD-LinBAI for budget = 100 and many arms (num_arms = 32, 64).",
        FWG,
        OD,
        where={"budget": 100, "num_arms": [32, 64]},
    ),
    more_accurate(
        "OD-LinBAI is ahead of GSE for budget = 500.",
        OD,
        FWG,
        where={"budget": 500},
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
    similar_accuracy("With so many pulls both are alike, within 2%.", (FWG, OD), within=0.02),
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
    more_accurate(
        "OD-LinBAI is clearly better: by more than 10% from three arms on.",
        OD,
        (LIN, FWG),
        by=0.1,
    ),
    more_accurate("With 25 pulls an arm OD-LinBAI is still ahead.", OD_25, FWG_25),
    accuracy_falls("GSE gets worse with more arms.", (LIN, FWG), "num_arms", by=0.2),
    quick={"algorithms": (LIN, OD), "axes": {"num_arms": (3, 12)}, "replications": 200},
)

ETAS = tuple(f"η = {eta}" for eta in ("2", "3", "4", "K"))
ETA = _figure(
    "How fast GSE eliminates, on the arms of Figure 2 of Azizi et al. (2022)",
    ["eta"],
    not_less_accurate("η = 2 is best, or within 2% of it.", ETAS[:1], ETAS[1:]),
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
