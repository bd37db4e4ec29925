"""Conditions between the options of a constructor, and between options and arms.

Each function gets the bound arguments of a constructor by name and raises a `ValueError` that names
the option, its value and what is allowed. Traced values cannot be checked, and pass.
"""

from collections.abc import Collection, Mapping

import numpy as np

from .feature_tables import is_concrete, require
from .parameters import LARGEST, Values
from .types import Rows, Scalar

THETA_NORM: str = (
    "a bound on the norm of theta, given by the instance or as theta_norm=... in functools.partial "
    "or in Live (the page 'Use data of your own' says how to choose it)"
)
# By the option that names a threshold, which algorithm of that kind needs no theta_norm.
NEEDS_NONE: dict[str, str] = {"threshold": "; rage, for the best arm, needs none"}
# Smallest `|x|^2 / v0`: what a draw adds is then 4,000 times the rounding error.
LEAST_GROWTH: float = 2.0**-40


def fewer_than_arms(values: Values) -> None:
    """Raise unless the size of the set, `m`, is below the number of arms."""
    m, num_arms = values["m"], values["arms"].shape[0]
    require(m is not None and m < num_arms, f"m must be below the {num_arms} arms, got {m}")


def theta_fits(values: Values) -> None:
    """Raise where theta is unknown or has not one entry for each feature of the arms."""
    theta, shape = values["theta"], np.shape(values["arms"])[1:]
    require(theta is not None, "theta must be given, got None (unknown)")
    require(np.shape(theta) == shape, f"theta must have shape {shape}, got {np.shape(theta)}")


def theta_norm_given(values: Values) -> None:
    """Raise where theta_norm is None, which means that it is unknown."""
    require(
        values["theta_norm"] is not None,
        f"theta_norm must be given, got None (unknown): {THETA_NORM}",
    )


def horizon_given(values: Values) -> None:
    """Raise where the horizon is None: it is filled in by a regret run, not by others."""
    require(values["horizon"] is not None, "horizon must be given, got None")


def theta_norm_known(
    values: Values, thresholds: Collection[str], option: str = "threshold"
) -> None:
    """Raise where the chosen threshold needs theta_norm, and theta_norm is unknown.

    Args:
      values: the bound arguments.
      thresholds: those that need theta_norm.
      option: the option that names the threshold.
    """
    name = values[option] if isinstance(values[option], str) else None
    unknown = values["theta_norm"] is None and name in thresholds
    require(
        not unknown,
        f"theta_norm must be given for {option} {name!r}, got None (unknown): {THETA_NORM}"
        f"{NEEDS_NONE.get(option, '')}",
    )


def ridge_in_range(values: Values, v0: Scalar | None = None, most: float = 2.0**28) -> None:
    """Raise where the ridge is too small or too large for rank-one updates with these arms.

    The first draws reduce `x^T V^-1 x` from `|x|^2 / v0` to about 1, and the rounding error of the
    large number remains. Measured: after n draws, the relative error of the variance of a
    difference of arms is `n eps |x|^2 / v0` times the square of the arms' condition number. Where
    `|x|^2 / v0` is about eps, the effect of a draw is lost to rounding.

    Args:
      values: the bound arguments.
      v0: the ridge, `values["v0"]` by default.
      most: the largest allowed `|x|^2 / v0`. For updates of a square root of V, the rounding error
        is that of the root of this number.
    """
    arms, v0 = values["arms"], values["v0"] if v0 is None else v0
    if not (is_concrete(arms) and is_concrete(v0)):
        return
    arms, v0 = np.asarray(arms, float), float(v0)
    length = np.sqrt((arms**2).sum(1).max())
    shortest, longest = np.sqrt(LEAST_GROWTH * v0), np.sqrt(most * v0)
    if length == 0 or shortest <= length <= longest:
        return
    with np.errstate(over="ignore"):
        low, high = length**2 / most, length**2 / LEAST_GROWTH
    raise ValueError(
        f"arms must have a largest norm of {shortest:.2g} to {longest:.2g} where the ridge v0 is "
        f"{v0:.6g}, because outside this range rounding errors hide the effect of draws, got "
        f"{length:.6g}: give the arms in another unit (theta_norm then changes too), or a v0 from "
        f"{low:.2g} to {high:.2g}"
    )


def size_or_horizon(given: int | None, horizon: Scalar | None, name: str) -> int:
    """The size that was given as the option `name`, or the horizon where that is None."""
    horizon_given({"horizon": horizon})
    known = given is not None or is_concrete(horizon)
    require(known, f"{name} must be given where the horizon is traced, got None")
    assert horizon is not None  # checked above
    return int(horizon) if given is None else given


def rounding_epsilon_in_range(values: Values, largest: Mapping[str, float]) -> None:
    """Raise where `rounding_epsilon` is above the largest value that the rounding guarantees."""
    epsilon, most = values["rounding_epsilon"], largest[values["rounding"]]
    fine = not is_concrete(epsilon) or epsilon <= most
    require(fine, f"rounding_epsilon must be at most {most:.3g} for this rounding, got {epsilon}")


def ratios_fit(values: Values, bases: int, most: int) -> None:
    """Raise where a given table of ratios does not fit the arms, or would take too long to compute.

    Args:
      values: the bound arguments.
      bases: the number of bases that the computation goes through.
      most: the largest allowed number.
    """
    arms, given = values["arms"], values["ratios"]
    num_arms, dim = arms.shape
    used = given is None or values["selection"] == "ratio"
    require(used, "ratios must go with selection 'ratio'", values["selection"])
    positive = given is None or not is_concrete(given) or (np.asarray(given) >= 0).all()
    require(positive, "ratios must be 0 or above, got a negative one")
    fits = given is None or np.shape(given) == (num_arms,) * 3
    require(fits, f"ratios must have shape {(num_arms,) * 3}, got {np.shape(given)}")
    if values["selection"] == "ratio" and given is None and not is_concrete(arms):
        require(
            bases <= most,
            f"selection must be 'greedy' for {num_arms} arms in {dim} dimensions that are drawn "
            f"anew ('ratio' goes through at most {most} bases, not {bases}), got 'ratio'",
        )


def budget_covers(values: Values, least: int, what: str = "stages") -> None:
    """Raise unless one of `budget` and `per_arm` is given, and the budget is at least `least`.

    Args:
      values: the bound arguments.
      least: the smallest budget.
      what: what there are so many of, for the error message.
    """
    budget, per_arm = values["budget"], values["per_arm"]
    one_budget(budget, per_arm)
    if is_concrete(budget) and is_concrete(per_arm):
        num_arms = np.shape(values["arms"])[0]
        fits = per_arm is None or int(per_arm) * num_arms <= LARGEST
        most = LARGEST // num_arms
        require(fits, f"per_arm must be at most {most} for the {num_arms} arms, got {per_arm}")
        total = total_draws(values["arms"], budget, per_arm)
        require(total >= least, f"budget must be at least the {least} {what}, got {total}")


def one_budget(budget: Scalar | None, per_arm: Scalar | None) -> None:
    """Raise unless one of the two is given."""
    exactly_one = (budget is None) != (per_arm is None)
    require(
        exactly_one,
        f"budget or per_arm must be given, one of the two, got {budget} and {per_arm}",
    )


def total_draws(arms: Rows, budget: Scalar | None, per_arm: Scalar | None) -> Scalar:
    """The total number of draws: the budget, or `per_arm` times the number of arms."""
    if per_arm is not None:
        return per_arm * np.shape(arms)[0]
    assert budget is not None  # `budget_covers` requires one of the two
    return budget
