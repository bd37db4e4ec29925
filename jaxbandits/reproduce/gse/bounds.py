"""The error of GSE beside the proved bounds on it, in a linear and in a logistic model."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ... import theory
from ...instances import Instance
from ..claims import Claim, Finding, checked, claim
from ..experiment import Experiment, from_files
from ..measures import values_not_run
from .between_bounds import BETWEEN_BOUNDS

if TYPE_CHECKING:
    from xarray import Dataset

    from ...sweeps import Sweep
    from ...theory.budget import LowerForm

Bound: TypeAlias = Callable[[Instance, int], float]

DRAWS = 2000  # replications of a bound that depends on the draws
PAIRWISE, PRINTED = "GSE's bound (2)", "GSE's bound (3)"
NORMAL_TAILS, PAIRWISE_LOG, PRINTED_LOG = "by normal tails", "GSE's bound (5)", "GSE's bound (6)"
LOWER: "dict[str, LowerForm]" = {
    "Kaufmann et al.": "kaufmann",
    "Carpentier and Locatelli": "carpentier_locatelli",
}


def _of_gse(**options) -> Bound:
    return lambda instance, budget: theory.gse_error_bound(instance, budget, **options).value


LINEAR_BOUNDS: Mapping[str, Bound] = {
    PAIRWISE: _of_gse(form="pairwise_paper", replications=DRAWS),
    PRINTED: _of_gse(form="paper"),
    "GSE's bound, with safe constants": _of_gse(form="safe"),
    f"GSE's bound, {NORMAL_TAILS}": _of_gse(form="normal", replications=DRAWS),
    "OD-LinBAI's bound": lambda *args: theory.od_linbai_error_bound(*args).value,
    **{
        f"lower bound of {name}": functools.partial(theory.error_lower_bound, form=form)
        for name, form in LOWER.items()
    },
}
LOGISTIC: Mapping[str, Bound] = {
    PAIRWISE_LOG: _of_gse(form="pairwise_paper", replications=DRAWS),
    PRINTED_LOG: _of_gse(form="paper"),
}


def _drawn_with(bounds: Mapping[str, Bound]) -> "Callable[[Dataset, Sweep], Dataset]":
    """Adds `error_bound` to a dataset, a line for each bound."""

    def extended(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
        (part,), budgets = sweep.instances, dataset.budget.values.tolist()
        instance = part.build(**part.options)
        table = [[bound(instance, budget) for budget in budgets] for bound in bounds.values()]
        drawn = dataset.assign_coords(bound=list(bounds))
        return drawn.assign(error_bound=(("bound", "budget"), np.array(table)))

    return extended


def error_below(
    name: str, budgets: Sequence[int] | None, text: str, paper: str = "", *, above: bool = False
) -> Claim:
    """The error is below a bound at some budgets, all by default, by its exact interval.

    Args:
      name: of the bound.
      budgets: those that count; None for all that were run.
      text, paper: see `Claim`.
      above: whether the error is to be above it instead.
    """

    def find(dataset: "Dataset") -> Finding:
        cells = dataset.squeeze(["instance", "algorithm"], drop=True)
        run = cells.budget.values.tolist()
        cells = cells.sel(budget=[b for b in run if budgets is None or b in budgets])
        bound = cells.error_bound.sel(bound=name).values
        low, high = cells.error_low.values, cells.error_high.values
        inside, outside = (low > bound, high < bound) if above else (high < bound, low > bound)
        measured = {
            "budget": cells.budget.values.tolist(),
            "bound": bound.tolist(),
            "error_low": low.tolist(),
            "error_rate": cells.error_rate.values.tolist(),
            "error_high": high.tolist(),
        }
        missing = [] if budgets is None else values_not_run(dataset, {"budget": list(budgets)})
        sure = bool(inside.all()) and not missing
        return Finding(measured, False if outside.any() else True if sure else None, missing)

    return Claim(text, find, paper)


@claim("The printed bound says nothing (it is above 1) at the paper's budget of 320.")
def printed_bound_is_vacuous(dataset: "Dataset") -> Finding:
    """Open where that budget was not run."""
    budgets = dataset.budget.values
    printed = dataset.error_bound.sel(bound=PRINTED).values
    found = {str(int(b)): float(x) for b, x in zip(budgets, printed, strict=True)}
    missing = values_not_run(dataset, {"budget": 320})
    return Finding(found, None if missing else bool(printed[budgets == 320][0] > 1), missing)


BOUNDS = Experiment(
    title="GSE's error and what is proved of it, on 16 independent arms",
    claims=checked(
        error_below(
            PRINTED,
            [1280, 2560],
            "The error is below Theorem 4.1 (3) where that is below 1 (budgets 1,280 and 2,560).",
            "Theorem 4.1 (3)",
        ),
        error_below(
            PAIRWISE,
            [2560],
            "The error is below Theorem 4.1 (2) where that is below 1 (budget 2,560).",
            "Theorem 4.1 (2)",
        ),
        *BETWEEN_BOUNDS,
        *(
            error_below(
                f"lower bound of {name}",
                [80, 160, 320, 480, 640],
                f"The error is above the lower bound of {name} (budgets 80 to 640).",
                above=True,
            )
            for name in LOWER
        ),
        printed_bound_is_vacuous,
        error_below(
            f"GSE's bound, {NORMAL_TAILS}", None, "The error is below the bound by normal tails."
        ),
    ),
    quantities=("errors",),
    extended=_drawn_with(LINEAR_BOUNDS),
    quick={"axes": {"budget": (80, 320, 1280, 2560)}, "replications": 10_000},
    **from_files("gse/bounds.toml"),
)

LOGISTIC_BOUNDS = Experiment(
    title="GSE's error and what is proved of it, in a logistic model",
    claims=checked(
        error_below(
            PRINTED_LOG,
            [320, 640],
            "The error is below Theorem 5.1 (6) where that is below 1 (budgets 320 and 640).",
            "Theorem 5.1 (6)",
        ),
        error_below(
            PAIRWISE_LOG,
            [320, 640],
            "The error is below Theorem 5.1 (5) where that is below 1 (budgets 320 and 640).",
            "Theorem 5.1 (5)",
        ),
    ),
    quantities=("errors",),
    extended=_drawn_with(LOGISTIC),
    quick={"axes": {"budget": (20, 320, 640)}, "replications": 2000},
    **from_files("gse/bounds_logistic.toml"),
)
