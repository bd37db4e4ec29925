"""What an algorithm assumes of rewards, and an instance is known not to fulfil."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..feature_tables import is_concrete
from ..instances import Instance
from ..instances.instance import LINEAR, MOST_FITTED
from ..signatures import function_of, name_of

BUDGETED: tuple[str, ...] = ("budget", "per_arm")  # options of those that promise no error rate
COUNTS: str = "noise of counts, which is not sub-Gaussian"


def broken_assumption(problem: Any, build: Callable[..., Any]) -> str | None:
    """What an algorithm for noise of known variance assumes in vain, in a line, or None.

    It says nothing of algorithms that are told the family of the rewards or promise no error rate,
    and of a user's own.

    Args:
      problem: an `Instance`, of which all numbers are known or only their shapes.
      build: the constructor with its options.
    """
    options, features = inspect.signature(build).parameters, uses_features(build)
    if not isinstance(problem, Instance) or features is None:
        return None
    if "noise_var" not in options or any(name in options for name in ("family", *BUDGETED)):
        return None
    told = getattr(build, "keywords", {}).get("theta_norm", problem.theta_norm)
    norm = told if "theta_norm" in options else None
    reasons = [_nonlinear(problem, norm) if features else None]
    reasons += [COUNTS] if problem.rewards == "poisson" else []
    reasons = [reason for reason in reasons if reason is not None]
    if not reasons:
        return None
    return (
        f"{name_of(build)} assumes {'linear means and ' if features else ''}sub-Gaussian noise of "
        f"known variance, but rewards of family {problem.family!r} have {' and '.join(reasons)}: "
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
        return "means that are in general not linear in the features"
    theta = np.linalg.lstsq(arms, means)[0]
    if np.abs(means - arms @ theta).max() > LINEAR * np.abs(means).max():
        return "means that are not linear in the features"
    if norm is not None and is_concrete(norm) and norm < (1.0 - LINEAR) * np.linalg.norm(theta):
        return "a theta_norm that is no bound for linear means"
    return None
