"""The error of GSE beside the proved bounds on it, and the bounds against each other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ... import instances, theory
from ..claims import Finding, checked, claim
from ..experiment import Experiment, from_files
from ..measures import values_not_run

if TYPE_CHECKING:
    from xarray import Dataset

    from ...sweeps import Sweep
    from ...theory.elimination import Form

FORMS: "dict[str, Form]" = {
    "as printed": "paper",
    "with safe constants": "safe",
    "by normal tails": "normal",
}
DRAWS = 2000  # replications of the bound by normal tails
EXPONENTS = {"q = 2": 2, "q = 3": 3}
DIM = 4


def _with_bounds(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
    """The dataset with `error_bound`, one line for each form and one for OD-LinBAI."""
    (part,), budgets = sweep.instances, dataset.budget.values.tolist()
    instance = part.build(**part.options)
    rows = [
        [theory.gse_error_bound(instance, b, form=form, replications=DRAWS).value for b in budgets]
        for form in FORMS.values()
    ]
    rows.append([theory.od_linbai_error_bound(instance, b).value for b in budgets])
    names = [*(f"GSE's bound, {name}" for name in FORMS), "OD-LinBAI's bound"]
    table = (("bound", "budget"), np.array(rows))
    return dataset.assign_coords(bound=names).assign(error_bound=table)


@claim("The error is below the bound by normal tails.")
def error_below_bound(dataset: "Dataset") -> Finding:
    """Decided by the exact intervals of the error rates."""
    cells = dataset.squeeze(["instance", "algorithm"], drop=True)
    bound = dataset.error_bound.sel(bound="GSE's bound, by normal tails").values
    measured = {
        "bound": bound.tolist(),
        "error_low": cells.error_low.values.tolist(),
        "error_rate": cells.error_rate.values.tolist(),
        "budget": cells.budget.values.tolist(),
    }
    broken = bool((cells.error_low.values > bound).any())
    sure = bool((cells.error_high.values < bound).all())
    return Finding(measured, False if broken else True if sure else None)


@claim("The printed bound says nothing (it is above 1) at the paper's budget of 320.")
def printed_bound_is_vacuous(dataset: "Dataset") -> Finding:
    """Open where that budget was not run."""
    budgets = dataset.budget.values
    printed = dataset.error_bound.sel(bound="GSE's bound, as printed").values
    found = {str(int(b)): float(x) for b, x in zip(budgets, printed, strict=True)}
    missing = values_not_run(dataset, {"budget": 320})
    return Finding(found, None if missing else bool(printed[budgets == 320][0] > 1), missing)


def _both_bounds(num_arms: int, dim: int = DIM, small: float = 1e-3) -> dict[str, float]:
    """On arms of a sphere, at the first power of 2 where GSE's bound is at most `small`."""
    import jax

    instance = instances.sphere(jax.random.key(0), num_arms, dim, mix=0.3)
    budget = 1
    while theory.gse_error_bound(instance, budget).value > small:
        budget *= 2
    return {
        "GSE": theory.gse_error_bound(instance, budget).value,
        "OD-LinBAI": theory.od_linbai_error_bound(instance, budget).value,
    }


def _gse_is_below(found: Mapping[str, float]) -> bool:
    return bool(found["GSE"] < found["OD-LinBAI"])


@claim("GSE's bound is below OD-LinBAI's for K = d^q arms, q = 2, 3 (sphere, d = 4).")
def many_arms(dataset: "Dataset") -> Finding:
    """K = d^q."""
    found = {name: _both_bounds(DIM**q) for name, q in EXPONENTS.items()}
    return Finding(found, all(map(_gse_is_below, found.values())))


@claim("OD-LinBAI's bound is below GSE's for K = 6 < d (d + 1) / 2 arms (sphere, d = 4).")
def few_arms(dataset: "Dataset") -> Finding:
    """K < d (d + 1) / 2."""
    found = _both_bounds(6)
    return Finding(found, bool(found["OD-LinBAI"] < found["GSE"]))


@claim("In two dimensions and for large budgets GSE's bound is below for 2^7 arms, above for 2^9.")
def very_many_arms(dataset: "Dataset") -> Finding:
    """K = d^q, B to infinity: better for q < 8 and worse for q > 8."""
    found = {f"q = {q}": _both_bounds(2**q, 2, small=1e-30) for q in (7, 9)}
    below = [_gse_is_below(both) for both in found.values()]
    return Finding(found, below == [True, False])


BOUNDS = Experiment(
    title="GSE's error and what is proved of it, on 16 independent arms",
    claims=checked(
        error_below_bound, printed_bound_is_vacuous, many_arms, few_arms, very_many_arms
    ),
    quantities=("errors",),
    extended=_with_bounds,
    quick={"axes": {"budget": (80, 320)}, "replications": 5000},
    **from_files("gse/bounds.toml"),
)
