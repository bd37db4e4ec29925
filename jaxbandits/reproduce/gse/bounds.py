"""What is proved of GSE's error beside what it is, and bounds against each other."""

import numpy as np

from ... import instances, theory
from ..base import Experiment, claim, from_files

FORMS = {"as printed": "paper", "with safe constants": "safe", "by normal tails": "normal"}
DRAWS = 2000  # replications of the bound by normal tails
EXPONENTS = {"q = 2": 2, "q = 3": 3}
DIM = 4


def _instance(plan):
    (part,) = plan.instances
    return part.build(**part.options)


def _with_bounds(dataset, plan):
    """The dataset with `error_bound`, one line for each form and one for OD-LinBAI."""
    instance, budgets = _instance(plan), plan.axes["budget"]
    rows = [
        [theory.gse_error_bound(instance, b, form=form, replications=DRAWS).value for b in budgets]
        for form in FORMS.values()
    ]
    rows.append([theory.od_linbai_error_bound(instance, b).value for b in budgets])
    names = [*(f"GSE's bound, {name}" for name in FORMS), "OD-LinBAI's bound"]
    table = (("bound", "budget"), np.array(rows))
    return dataset.assign_coords(bound=names).assign(error_bound=table)


def _holds(dataset):
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
    text = "The error is below the bound by normal tails."
    return claim(text, measured, False if broken else True if sure else None)


def _void(dataset):
    budgets = dataset.budget.values
    printed = dataset.error_bound.sel(bound="GSE's bound, as printed").values
    found = {str(int(b)): float(x) for b, x in zip(budgets, printed, strict=True)}
    known = 320 in budgets
    text = "The printed bound says nothing (it is above 1) at the paper's budget of 320."
    return claim(text, found, bool(printed[budgets == 320][0] > 1) if known else None)


def _against(num_arms, dim=DIM, small=1e-3):
    """Both bounds on arms of a sphere, at a budget where GSE's is `small`, or below."""
    import jax

    instance = instances.sphere(jax.random.key(0), num_arms, dim, mix=0.3)
    budget = 1
    while theory.gse_error_bound(instance, budget).value > small:
        budget *= 2
    return (
        theory.gse_error_bound(instance, budget).value,
        theory.od_linbai_error_bound(instance, budget).value,
    )


def _many_arms(dataset):
    """K = d^q."""
    found = {name: _against(DIM**q) for name, q in EXPONENTS.items()}
    measured = {name: {"GSE": one, "OD-LinBAI": two} for name, (one, two) in found.items()}
    holds = all(one < two for one, two in found.values())
    text = "GSE's bound is below OD-LinBAI's for K = d^q arms, q = 2, 3 (sphere, d = 4)."
    return claim(text, measured, holds)


def _few_arms(dataset):
    """K < d (d + 1) / 2."""
    one, two = _against(6)
    text = "OD-LinBAI's bound is below GSE's for K = 6 < d (d + 1) / 2 arms (sphere, d = 4)."
    return claim(text, {"GSE": one, "OD-LinBAI": two}, two < one)


def _very_many_arms(dataset):
    """K = d^q, B to infinity: better for q < 8 and worse for q > 8."""
    found = {f"q = {q}": _against(2**q, 2, small=1e-30) for q in (7, 9)}
    measured = {name: {"GSE": one, "OD-LinBAI": two} for name, (one, two) in found.items()}
    below = [one < two for one, two in found.values()]
    text = (
        "In two dimensions and for large budgets GSE's bound is below for 2^7 arms, above for 2^9."
    )
    return claim(text, measured, below == [True, False])


def _claims(dataset):
    return [rule(dataset) for rule in (_holds, _void, _many_arms, _few_arms, _very_many_arms)]


BOUNDS = Experiment(
    title="GSE's error and what is proved of it, on 16 independent arms",
    claims=_claims,
    quantities=("errors",),
    extended=_with_bounds,
    quick={"axes": {"budget": (80, 320)}, "replications": 5000},
    **from_files("gse/bounds.toml"),
)
