"""Figure 5, cars and motors."""

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ... import instances
from ...instances.data.local_files import CAR_FILE, MOTOR_FILES
from .. import measures
from ..claims import Claim, Finding, best_of, change, claim, compare
from ..experiment import Builders
from .names import (
    BAYES,
    D_ROUND,
    FORMS,
    FWG_ROUND,
    GAPE,
    GAPE_GREEDY,
    LIN,
    OD,
    PAPER,
    PEACE,
    UCB,
    d_optimal_is_as_good,
    figure,
    rounding_changes_little,
)

if TYPE_CHECKING:
    from xarray import Dataset

OTHERS = (OD, PEACE, BAYES, GAPE, UCB)
AHEAD = (
    'Appendix E.2: "GSE variants outperform others or have competing performance with '
    'LinGapE-Greedy"'
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


def _ahead(name: str, instance: str) -> list[Claim]:
    """A form of GSE is ahead of all but LinGapE-Greedy, and ahead of that or level with it."""
    where = {"instance": instance}
    return [
        best_of(
            f"{name}: a form of GSE is ahead of all others but LinGapE-Greedy.",
            FORMS,
            OTHERS,
            where=where,
            by=0.0,
            paper=AHEAD,
        ),
        best_of(
            f"{name}: a form of GSE is ahead of LinGapE-Greedy, or level with it within 2%.",
            FORMS,
            GAPE_GREEDY,
            where=where,
            paper=AHEAD,
        ),
        best_of(
            f"{name}: a form of GSE is best among all but BayesGap.",
            FORMS,
            [other for other in (*OTHERS, GAPE_GREEDY) if other != BAYES],
            where=where,
        ),
    ]


def _leads(dataset: "Dataset", point: measures.Where, others: Sequence[str]) -> measures.Verdict:
    """Whether a form of GSE is clearly ahead of all others at a point, or clearly not."""
    best = measures.most_accurate(dataset, FORMS, point)
    leads = (measures.accuracy_difference(dataset, best, other, point) for other in others)
    return measures.all_hold(lead.above(0.0) for lead in leads)


@claim(
    "A form of GSE is the most accurate in more than half of the cases.",
    'Appendix E.2: "our algorithm has the highest accuracy in most of the cases"',
)
def most_cases(dataset: "Dataset") -> Finding:
    """A case is a data set at a point of the axes; one in which the order is unclear is open."""
    others = [*OTHERS, GAPE_GREEDY]
    absent = measures.not_run(dataset, [*FORMS, *others])
    axes = ("instance", "num_arms", "per_arm")
    verdicts = {
        ", ".join(map(str, corner)): _leads(
            dataset,
            dict(zip(axes, corner, strict=True)),
            [other for other in others if other not in absent],
        )
        for corner in itertools.product(*(dataset[axis].values.tolist() for axis in axes))
    }
    counts = {
        word: sum(found is verdict for found in verdicts.values())
        for word, verdict in (("ahead", True), ("not ahead", False), ("unclear", None))
    }
    half = len(verdicts) / 2
    verdict = False if counts["not ahead"] >= half else None
    verdict = True if counts["ahead"] > half else verdict
    missing = [*absent, *measures.average_not_run(dataset, {})]
    names = [name for name, found in verdicts.items() if found]
    # A part of the cases, or of the others, decides nothing.
    return Finding({**counts, "ahead in": names}, None if missing else verdict, missing)


DATA = figure(
    f"The dearest car and the hottest motor, {PAPER} 5",
    ["fig5a", "fig5b"],
    *_ahead("Cars", "cars"),
    *_ahead("Motor", "motor"),
    most_cases,
    d_optimal_is_as_good(D_ROUND, FWG_ROUND),
    rounding_changes_little(),
    compare("GSE gains from a larger budget.", change("per_arm"), FORMS, least=0.05),
    from_folder=_from_folder,
    stand_in=_stands_in,
    quick={
        "algorithms": (LIN, FWG_ROUND, GAPE_GREEDY, UCB),
        "axes": {"num_arms": (8,), "per_arm": (10, 50)},
        "replications": 100,
    },
)
