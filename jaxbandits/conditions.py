"""Conditions between the options of a constructor, and between options and arms.

Each is given the bound arguments of a constructor by name and raises a `ValueError` that names the
option, what it was and what is allowed. What is traced cannot be looked at, and passes.
"""

from collections.abc import Collection, Mapping

import numpy as np

from .feature_tables import is_concrete, require
from .parameters import Values
from .types import Rows, Scalar

LEAST_GROWTH: float = 2.0**-40  # of `|x|^2 / v0`: a draw is then 4,000 times what is rounded away


def fewer_than_arms(values: Values) -> None:
    """Raise unless the size of the set, `m`, is below the number of arms."""
    m, num_arms = values["m"], values["arms"].shape[0]
    require(m is not None and m < num_arms, f"m must be below the {num_arms} arms, got {m}")


def theta_fits(values: Values) -> None:
    """Raise where theta is unknown, or no vector of the arms' features."""
    theta, shape = values["theta"], np.shape(values["arms"])[1:]
    require(theta is not None, "theta must be given, got None (unknown)")
    require(np.shape(theta) == shape, f"theta must have shape {shape}, got {np.shape(theta)}")


def theta_norm_given(values: Values) -> None:
    """Raise where theta_norm is unknown."""
    require(values["theta_norm"] is not None, "theta_norm must be given, got None (unknown)")


def theta_norm_known(
    values: Values, thresholds: Collection[str], option: str = "threshold"
) -> None:
    """Raise where the chosen threshold is one of `thresholds` and theta_norm is unknown."""
    named = values[option] if isinstance(values[option], str) else None
    unknown = values["theta_norm"] is None and named in thresholds
    require(not unknown, f"theta_norm must be given for {option} {named!r}, got None (unknown)")


def ridge_in_reach(values: Values, v0: Scalar | None = None, most: float = 2.0**28) -> None:
    """Raise where the ridge is too small or too large beside the arms for updates draw by draw.

    The first draws take `x^T V^-1 x` from `|x|^2 / v0` to about 1, and leave the rounding of the
    former: measured, the variance of a difference of arms is wrong by `n eps |x|^2 / v0` of itself
    after n draws, times the square of the arms' condition number. Where `|x|^2 / v0` is about
    eps itself, a draw is rounded away.

    Args:
      values: the bound arguments.
      v0: the ridge, `values["v0"]` by default.
      most: the largest `|x|^2 / v0` to allow. Updates of a square root lose only its root.
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
        f"arms must be {shortest:.2g} to {longest:.2g} long (the longest of them) where the ridge "
        f"v0 is {v0:.6g}, beyond which rounding hides what draws tell, got {length:.6g}: give them "
        f"in another unit (theta_norm then changes too), or v0 from {low:.2g} to {high:.2g}"
    )


def horizon_unless(given: int | None, horizon: Scalar | None, name: str) -> int:
    """The size `given` as the option `name`, or that of all rounds."""
    require(horizon is not None, "horizon must be given, got None")
    known = given is not None or is_concrete(horizon)
    require(known, f"{name} must be given where the horizon is traced, got None")
    assert horizon is not None  # as was asked for above
    return int(horizon) if given is None else given


def in_reach(values: Values, largest: Mapping[str, float]) -> None:
    """Raise where `rounding_epsilon` is above the largest that the chosen rounding promises."""
    epsilon, most = values["rounding_epsilon"], largest[values["rounding"]]
    fine = not is_concrete(epsilon) or epsilon <= most
    require(fine, f"rounding_epsilon must be at most {most:.3g} for this rounding, got {epsilon}")


def ratios_known(values: Values, bases: int, most: int) -> None:
    """Raise where a table of ratios does not fit the arms, or takes more than `most` bases."""
    arms, given = values["arms"], values["ratios"]
    num_arms, dim = arms.shape
    used = given is None or values["selection"] == "ratio"
    require(used, f"ratios must go with selection 'ratio', got {values['selection']!r}")
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
    """Raise unless one of `budget` and `per_arm` is given, and covers the number of stages."""
    budget, per_arm = values["budget"], values["per_arm"]
    one = (budget is None) != (per_arm is None)
    require(one, f"budget or per_arm must be given, one of the two, got {budget!r} and {per_arm!r}")
    if is_concrete(budget) and is_concrete(per_arm):
        total = total_draws(values["arms"], budget, per_arm)
        require(total >= least, f"budget must be at least the {least} {what}, got {total}")


def total_draws(arms: Rows, budget: Scalar | None, per_arm: Scalar | None) -> Scalar:
    """The budget, whichever way it was given."""
    if per_arm is not None:
        return per_arm * np.shape(arms)[0]
    assert budget is not None  # a condition asked for one of the two
    return budget
