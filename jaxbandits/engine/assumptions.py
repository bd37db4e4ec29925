"""What an algorithm assumes of rewards, and an instance is known not to fulfil."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..feature_tables import is_concrete
from ..instances import Instance
from ..instances.instance import LINEAR, MOST_FITTED
from ..signatures import function_of, name_of, parameters_of

BUDGETED: tuple[str, ...] = ("budget", "per_arm")  # options of those that promise no error rate
NONLINEAR: str = "means that are in general not linear in the features"
COUNTS: str = "noise of counts, which is not sub-Gaussian"


def broken_assumption(problem: Any, build: Callable[..., Any]) -> str | None:
    """What an algorithm for noise of known variance assumes in vain, in a line, or None.

    It says nothing of algorithms that are told the family of the rewards or promise no error rate,
    and of a user's own.

    Args:
      problem: an `Instance`, of which all numbers are known or only their shapes.
      build: the constructor with its options.
    """
    counts = getattr(problem, "rewards", None) == "poisson"
    if not isinstance(problem, Instance) or (problem.family == "gaussian" and not counts):
        return None
    told = getattr(build, "keywords", {}).get("theta_norm", problem.theta_norm)
    norm = told if "theta_norm" in parameters_of(build) else None
    return _text(build, problem.family, _nonlinear(problem, norm), counts=counts)


def broken_by_family(family: str | None, build: Callable[..., Any]) -> str | None:
    """What an algorithm assumes in vain where rewards have this family, whatever their means."""
    nonlinear = None if family in (None, "gaussian") else NONLINEAR
    return _text(build, family, nonlinear, counts=family == "poisson")


def _text(build, family, nonlinear, *, counts):
    features = uses_features(build)
    reasons = [nonlinear] if features and nonlinear is not None else []
    reasons += [COUNTS] if counts else []
    if features is None or not reasons:
        return None
    options = parameters_of(build)
    if "noise_var" not in options or any(name in options for name in ("family", *BUDGETED)):
        return None
    return (
        f"{name_of(build)} assumes {'linear means and ' if features else ''}sub-Gaussian noise of "
        f"known variance, but rewards of family {family!r} have {' and '.join(reasons)}: "
        "what it promises does not hold; algorithms with an option family are for such rewards"
    )


def uses_features(build: Callable[..., Any]) -> bool | None:
    """Whether an algorithm uses the features of the arms; None: it is not known."""
    return getattr(function_of(build), "features", None)


def _nonlinear(instance, norm):
    """How means are not linear ones, whose parameter has at most this norm; None where they are."""
    if instance.family == "gaussian":
        return None
    arms, means = instance.arms, instance.means
    if not (is_concrete(arms) and is_concrete(means)) or np.size(arms) > MOST_FITTED:
        return NONLINEAR
    theta = np.linalg.lstsq(arms, means)[0]
    if np.abs(means - arms @ theta).max() > LINEAR * np.abs(means).max():
        return "means that are not linear in the features"
    if norm is not None and is_concrete(norm) and norm < (1.0 - LINEAR) * np.linalg.norm(theta):
        return "a theta_norm that is no bound for linear means"
    return None
