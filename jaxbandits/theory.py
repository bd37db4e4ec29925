"""What no algorithm can beat: the characteristic time of an instance, with a certificate."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .instances import Instance
from .kernels.oracle import oracle
from .kernels.xy_designs import named
from .options import require
from .precision import double

__all__ = ["Bound", "characteristic_time", "pull_lower_bound"]

TOLERANCE, ROUNDING = 1e-6, 1e-9
CONFIDENCE = 2.4  # of log(1 / (2.4 delta)), a lower bound of the divergence of two coins


class Bound(NamedTuple):
    """A number between two others: `lower <= optimum <= value`."""

    value: float
    lower: float


@double
def characteristic_time(instance, *, tol=TOLERANCE):
    """`psi* = min over designs w of max over z of ||z* - z||^2 / gap_z^2` in A(w)^-1.

    With normal rewards of variance s^2, the pulls of an algorithm that errs with probability
    delta at most are `2 s^2 psi* log(1 / (2.4 delta))` or more, in the mean.

    Args:
      instance: an `Instance` with normal rewards, linear in the features.
      tol: relative width of the certificate.
    Returns:
      `Bound(value, lower)`, both infinite where two targets are best.
    Raises:
      ValueError: rewards are not normal, or the values are not linear in the targets.
    Deviations:
      The paper's Theorem 1 lacks the factor 2, lost in its Gaussian divergence.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, Theorem 1. https://arxiv.org/abs/1906.08399

    >>> import jaxbandits as jb
    >>> found = characteristic_time(jb.instances.canonical(2, gap=0.5))
    >>> round(float(found.value), 3), bool(found.lower <= found.value)
    (16.0, True)
    """
    problem = why_not(instance)
    require(problem is None, f"instance: {problem}")
    value, lower = _characteristic_time(
        jnp.asarray(instance.arms), jnp.asarray(instance.targets), jnp.asarray(instance.values), tol
    )
    return Bound(float(value), float(lower))


def pull_lower_bound(instance, delta):
    """The least mean number of pulls of an algorithm that errs with probability delta at most.

    Args:
      instance: as in `characteristic_time`.
      delta: error probability.
    Returns:
      `2 noise_var psi* log(1 / (2.4 delta))`, from the lower end of psi*; 0 from delta = 1/2.4 on.
    Raises:
      ValueError: see `characteristic_time`; a delta outside (0, 1).

    >>> import jaxbandits as jb
    >>> round(pull_lower_bound(jb.instances.canonical(2, gap=0.5), 0.05), 2)
    67.85
    """
    number = isinstance(delta, float | int | np.floating)
    require(number and 0 < delta < 1, f"delta must be above 0 and below 1, got {delta!r}")
    time = pull_time(instance)
    return time * confidence(delta) if confidence(delta) else 0.0


def pull_time(instance):
    """`2 noise_var psi*`, from the lower end of psi*; raises as `characteristic_time`."""
    return 2.0 * float(instance.noise_var) * characteristic_time(instance).lower


def confidence(delta):
    """`log(1 / (2.4 delta))`, not below 0."""
    return max(0.0, float(-np.log(CONFIDENCE * delta)))


def why_not(instance):
    """What keeps an instance from having a characteristic time, or None."""
    if not isinstance(instance, Instance):
        return f"it must be an Instance, got {instance!r}"
    if instance.rewards != "normal":
        return f"its rewards must be normal, got {instance.rewards!r}"
    theta = np.asarray(instance.theta)
    tables = {"means": (instance.arms, instance.means)}
    tables["values"] = instance.targets, instance.values
    for name, (features, numbers) in tables.items():
        off = np.abs(np.asarray(features) @ theta - numbers).max()
        if off > ROUNDING * max(float(np.abs(numbers).max()), np.finfo(float).tiny):
            return f"its {name} must be linear in the features"
    return None


@jax.jit
def _characteristic_time(arms, targets, values, tol):
    found = oracle(arms, targets, values, named("interior_point", tol))
    return found.value, found.bound
