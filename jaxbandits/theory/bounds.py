"""Lower bounds of pulls for all algorithms, with a certificate, and an upper bound of RAGE."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..design import oracle
from ..design.optimal import unit_of
from ..instances import Instance
from ..instances.fields import entered
from ..kernels.allocate.rounding_by_name import ROUNDINGS
from ..kernels.design import directions
from ..kernels.design.xy.by_name import named
from ..kernels.linalg import scaling
from ..messages import brief
from ..parameters import choice, positive, real, require
from ..precision import double, is_traced, kernel, on_host
from ..system.kept_calls import kept
from ..types import Scalar
from .given import given, warn_of_estimates

__all__ = ["Bound", "PullBound", "characteristic_time", "pull_lower_bound", "rage_pull_bound"]

TOLERANCE: float = 1e-6  #: relative accuracy of the characteristic time
ROUNDING: float = 1e-9  #: relative error of means that count as linear
#: the factor of delta in `log(1 / (2.4 delta))`, a lower bound of the divergence of two coins
CONFIDENCE: float = 2.4


class Bound(NamedTuple):
    """Bounds of an optimum: `lower <= optimum <= value`.

    >>> import jaxbandits as jb
    >>> found = characteristic_time(jb.instances.soare(2, angle=0.5))
    >>> found.lower <= found.value <= 1.001 * found.lower
    True
    """

    value: float | Float[Array, ""]  #: at the solution found
    lower: float | Float[Array, ""]  #: proved by duality


class PullBound(NamedTuple):
    """Upper bounds of the pulls of an algorithm, `value <= closed_form`.

    >>> import jaxbandits as jb
    >>> bound = rage_pull_bound(jb.instances.soare(2, angle=0.5), 0.05)
    >>> bound.value <= bound.closed_form
    True
    """

    value: float  #: the sum over phases
    closed_form: float  #: the bound as the theorem prints it


@kernel()
def characteristic_time(instance: Instance, *, tol: Scalar = TOLERANCE) -> Bound:
    """`psi* = min over designs w of max over z of ||z* - z||^2 / gap_z^2` in A(w)^-1.

    With normal rewards of variance s^2, an algorithm that errs with probability delta at most
    takes `2 s^2 psi* log(1 / (2.4 delta))` pulls or more on average.

    Args:
      instance: an `Instance` with normal rewards, linear in the features.
      tol: relative width of the certificate.
    Returns:
      `Bound(value, lower)`, both infinite where two targets are best. Gaps of 1e-160, or of 1e170,
      give numbers beyond double precision: both are then infinite, or 0.
    Raises:
      ValueError: rewards are not normal, or the values are not linear in the targets; the latter
        is not checked where the instance is traced.
    Composes:
      As `design.oracle`, whose value it is; under a trace both numbers are arrays. In float32 they
      differ by some 1e-3.
    Deviations:
      The paper's Theorem 1 lacks the factor 2, which its Gaussian divergence omits.
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
    found = oracle(instance, tol=tol)
    if is_traced(found):
        return Bound(found.value, found.bound)
    return Bound(float(found.value), float(found.bound))


def pull_lower_bound(instance: Instance, delta: Scalar) -> float | Float[Array, ""]:
    """A lower bound of the mean pulls of an algorithm that errs with probability delta at most.

    Args:
      instance: as in `characteristic_time`.
      delta: error probability.
    Returns:
      `2 noise_var psi* log(1 / (2.4 delta))`, from the lower end of psi*; 0 from delta = 1/2.4 on.
    Raises:
      ValueError: see `characteristic_time`; a delta outside (0, 1).
    Composes:
      As `characteristic_time`; delta may be traced too.

    >>> import jaxbandits as jb
    >>> round(pull_lower_bound(jb.instances.canonical(2, gap=0.5), 0.05), 2)
    67.85
    """
    if is_traced(delta):
        factor = jnp.maximum(0.0, -jnp.log(CONFIDENCE * delta))
        return jnp.where(factor > 0, pull_time(instance) * factor, 0.0)
    delta = _given_delta(delta)
    time = pull_time(instance)
    return time * confidence(delta) if confidence(delta) else 0.0


@on_host
@double
@np.errstate(over="ignore")
def rage_pull_bound(
    instance: Instance,
    delta: float,
    *,
    rounding: str = "efficient",
    rounding_epsilon: float = 0.1,
    log_factor: float = 2.0,
    tol: float = 1e-3,
) -> PullBound:
    """A bound of the pulls of RAGE that holds unless one of its confidence intervals fails.

    After phase t all active targets have gaps up to `2 2^-t`, in units of the standard deviation
    of a reward. With `S_1` all targets and `S_t = {z: gap_z <= 4 2^-t}` it takes no more than
    `sum over t with |S_t| > 1 of max(ceil(2 4^t rho(S_t) (1 + eps) log(c M^2 t^2 / delta)), r)`
    pulls. All intervals hold with probability `1 - delta`.

    Args:
      instance: an `Instance` whose values are linear in the targets.
      delta: error probability.
      rounding, rounding_epsilon, log_factor, tol: those of `rage`, with its own designs. r is
        `2 K / eps` for "efficient", as every arm may be supported.
    Returns:
      `PullBound(value, closed_form)`: the sum, and
      `128 (1 + eps) psi* P log(c M^2 P^2 / delta) + (1 + r) P` with gaps in the same unit, where P
      is `log2(4 / gap_min)`, or 1 if that is less. Both are infinite where two targets are best.
    Raises:
      ValueError: values that are not linear in the targets, bad options.
      TypeError: traced arguments; it is computed on the host.
    Deviations:
      The paper assumes variance 1 and gaps up to 2. Larger gaps do not change the sum, and in the
      closed form the part of the first phase grows by `(gap_max / 2)^2`. Designs are optimal up to
      `1 + tol`, and so are both bounds. Equal targets count as one, as in `rage`.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019. https://arxiv.org/abs/1906.08399

    >>> import jaxbandits as jb
    >>> found = rage_pull_bound(jb.instances.canonical(2, gap=1.0), 0.05)
    >>> int(found.value), int(found.closed_form)
    (1090, 7374)
    """
    delta = _given_delta(delta)
    given(choice(*ROUNDINGS), rounding=rounding)
    rounding_epsilon = given(positive, rounding_epsilon=rounding_epsilon)
    log_factor = given(positive, log_factor=log_factor)
    tol = given(positive, tol=tol)
    most = ROUNDINGS[rounding].largest
    require(rounding_epsilon <= most, f"rounding_epsilon must be at most {most:.3g} for {rounding}")
    problem = _why_not_linear(instance)
    require(problem is None, f"instance: {problem}")
    warn_of_estimates(instance)
    instance = _in_units_of_noise(instance)
    (num_arms, dim), number = np.shape(instance.arms), len(instance.targets)
    gaps, distinct = _gaps(instance)
    if len(gaps) == 1:
        return PullBound(0.0, 0.0)
    if np.sort(gaps)[1] <= 0:
        return PullBound(math.inf, math.inf)
    least = float(ROUNDINGS[rounding].least(num_arms, dim, rounding_epsilon))
    factor = 2.0 * (1.0 + rounding_epsilon) * (1.0 + tol)

    def log_term(phase):
        return math.log(log_factor * number**2 * phase**2 / delta)

    targets = jnp.asarray(instance.targets)[distinct]
    features = scaling.equilibrated(jnp.asarray(instance.arms), targets)
    total, phase, alive = 0.0, 1, np.ones(len(gaps), bool)
    while alive.sum() > 1 and total < math.inf:
        rho = float(_rho(*features, alive, tol))
        draws = np.ldexp(factor * rho * log_term(phase), 2 * phase)
        total += float(np.ceil(max(draws, least)))
        phase += 1
        alive = gaps <= 4.0 * 2.0**-phase
    problem = dataclasses.replace(instance, targets=targets, values=targets @ instance.theta)
    problem, unit = _in_a_unit(problem)
    psi = float(oracle(problem, tol=TOLERANCE).value)
    phases = max(1.0, math.log2(4.0 / np.sort(gaps)[1]))
    half = gaps.max() / 2.0
    parts = (phases - 1.0) / unit + max(1.0 / unit, half * (half / unit))
    closed = 64.0 * factor / unit * (1.0 + tol) * psi * parts * log_term(phases)
    return PullBound(total, float(closed + (1.0 + least) * phases))


def _in_a_unit(instance):
    """The instance in a unit of rewards in which squares of its gaps are in range, and the unit.

    Its `noise_var` stays as it was, for the square of the unit may be out of range: bounds are
    divided by the unit twice.
    """
    unit = unit_of(instance.values)
    return _divided(instance, unit), unit


def _in_units_of_noise(instance):
    """The instance with rewards in units of their standard deviation."""
    return dataclasses.replace(_divided(instance, np.sqrt(instance.noise_var)), noise_var=1.0)


def _divided(instance, unit):
    """The instance with means in another unit; its `noise_var` stays."""
    tables = {name: getattr(instance, name) / unit for name in ("theta", "means", "values")}
    return dataclasses.replace(instance, **tables)


def _gaps(instance):
    """Gaps of the distinct targets, and a mask of these."""
    distinct = np.asarray(directions.distinct(jnp.asarray(instance.targets)))
    values = np.asarray(instance.values)[distinct]
    return values.max() - values, distinct


@kept
def _rho(arms, targets, alive, tol):
    return named("interior_point", tol).between(arms, targets, alive).value


def pull_time(instance: Instance) -> float | Float[Array, ""]:
    """`2 noise_var psi*`, from the lower end of psi*; raises as `characteristic_time`.

    >>> import jaxbandits as jb
    >>> instance = jb.instances.soare(2, angle=0.5)
    >>> bool(pull_time(instance) == 2 * characteristic_time(instance).lower)
    True
    """
    problem = why_not(instance)
    require(problem is None, f"instance: {problem}")
    dtype = instance.means.dtype
    instance = entered(instance)
    variance = instance.noise_var if is_traced(instance.noise_var) else float(instance.noise_var)
    instance, unit = _in_a_unit(instance)
    time = 2.0 * variance / unit * characteristic_time(instance).lower / unit
    # The variance may have 64 bits where traced tables have 32.
    return jnp.asarray(time, dtype) if is_traced(time) else time


def confidence(delta: Scalar) -> float:
    """`log(1 / (2.4 delta))`, not below 0.

    Args:
      delta: a probability of errors, above 0 and at most 1.
    Raises:
      ValueError: it is none.

    >>> round(confidence(0.05), 3)
    2.12
    """
    delta = given(real("above 0 and at most 1", lambda v: 0 < v <= 1), delta=delta)
    return max(0.0, float(-np.log(CONFIDENCE * delta)))


def why_not(instance: Any) -> str | None:
    """Why an instance has no characteristic time, or None if it has one.

    >>> import jaxbandits as jb
    >>> why_not(jb.instances.soare(2, angle=0.5)) is None
    True
    """
    if isinstance(instance, Instance) and instance.rewards != "normal":
        return f"its rewards must be normal, got {brief(instance.rewards)}"
    if isinstance(instance, Instance) and instance.stress is not None:
        return "it must not be under stress"
    return _why_not_linear(instance)


def _why_not_linear(instance):
    if not isinstance(instance, Instance):
        return f"it must be an Instance, got {brief(instance)}"
    if is_traced(instance):
        return None
    instance = entered(instance)
    theta = np.asarray(instance.theta)
    tables = {
        "means": (instance.arms, instance.means),
        "values": (instance.targets, instance.values),
    }
    for name, (features, numbers) in tables.items():
        error = np.abs(np.asarray(features) @ theta - numbers).max()
        if error > ROUNDING * max(float(np.abs(numbers).max()), np.finfo(float).tiny):
            return f"its {name} must be linear in the features"
    return None


def _given_delta(delta):
    return given(real("above 0 and below 1", lambda v: 0 < v < 1), delta=delta)
