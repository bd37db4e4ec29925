"""Fields of an instance: checked, and of double precision, whoever has set them.

Constructors check what they are given. `dataclasses.replace` checks nothing, so whatever plays an
instance or computes with one takes it from `entered`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..feature_tables import check_arms, is_concrete, require
from ..kernels.estimate.links import FAMILIES
from ..parameters import Option, check, choice, nonnegative, normal, positive, real, size
from ..precision import check_real, owned
from ..system.traces import TraceCache
from .environments.finite import LAWS, TIED
from .instance import Instance, check_finite
from .simulator_code import check_code
from .stress import LATE, OPTIONS, RANGES, Stress

TABLES: tuple[str, ...] = ("arms", "targets", "means", "values", "theta")
OPTIONAL: tuple[str, ...] = ("theta_norm", "samples", "standard_errors")
SAME_VALUES: float = 1e-9  # of the largest mean: less is rounding
NOISE: Option = real(f"0, or {normal.allowed}", lambda v: v == 0 or normal.accepts(v))
LAW: Option = choice(*LAWS)
FAMILY: Option = choice(*FAMILIES)
# Beyond double precision it is infinite.
NORM: Option = real("a number, 0 or above", lambda v: v >= 0)
# By law of rewards, which field it draws from.
SOURCES: dict[str, str] = {
    "recorded": "samples",
    "simulated": "simulator",
    "heteroscedastic": "stress",
    "student": "stress",
}


def entered(instance: Instance, traces: TraceCache | None = None) -> Instance:
    """The instance with all fields checked and its numbers in double precision.

    Traced numbers are converted too, but only their shapes are checked.

    Args:
      instance: any, also one that `dataclasses.replace` has changed.
      traces: of the call that it is for; by default its simulator is read anew.
    Raises:
      ValueError: names the field, what it was and what is allowed.
    """
    names = [*TABLES, "noise_var", *(n for n in OPTIONAL if getattr(instance, n) is not None)]
    given = {name: getattr(instance, name) for name in names}
    for name, table in given.items():
        check_real(name, table)
    doubles = {id(table): _doubles(table) for table in given.values()}  # some are two fields
    changed = {n: doubles[id(x)] for n, x in given.items() if doubles[id(x)] is not x}
    instance = dataclasses.replace(instance, **changed) if changed else instance
    check_instance(instance)
    check_code(instance, traces or TraceCache())
    return instance


def _doubles(table):
    if isinstance(table, jax.ShapeDtypeStruct):
        return table
    if isinstance(table, jax.Array | np.ndarray) and table.dtype == float:
        return table
    if not is_concrete(table):
        return jnp.asarray(table, float)
    return owned(np.asarray(table, np.float64), np.float64)


def check_instance(instance: Instance) -> None:
    """Raise unless known numbers are finite, and shapes and laws fit each other.

    Args:
      instance: whose numbers are known, traced, or only their shapes.
    """
    check_arms(instance.arms, instance.targets)
    (num_arms, dim), num_targets = np.shape(instance.arms), np.shape(instance.targets)[0]
    for name, shape in (("means", (num_arms,)), ("values", (num_targets,)), ("theta", (dim,))):
        check_finite(name, getattr(instance, name), shape)
    check("noise_var", NOISE, number(instance.noise_var))
    check("rewards", LAW, instance.rewards)
    check("family", FAMILY, instance.family)
    if instance.standard_errors is not None:
        _check_accuracy(instance, (num_arms,))
    if instance.theta_norm is not None:
        check("theta_norm", NORM, number(instance.theta_norm))
    if instance.samples is not None:
        shape = np.shape(instance.samples)
        fits = len(shape) == 2 and shape[0] == num_arms and shape[1] > 0
        require(fits, f"samples must be a table [{num_arms}, N], got shape {shape}")
        check_finite("samples", instance.samples, shape)
    _check_law(instance)
    _check_values(instance)
    _check_stress(instance.stress, instance.rewards, num_arms)


def _check_accuracy(instance, shape):
    """Raise unless there is a standard error for each mean, and a number of draws behind them."""
    found = np.shape(instance.standard_errors)
    require(found == shape, f"standard_errors must have shape {shape}, got {found}")
    if is_concrete(instance.standard_errors):
        fine = (np.asarray(instance.standard_errors) >= 0).all()  # infinite for a single draw
        require(fine, "standard_errors must be 0 or above, got another number")
    require(instance.draws is not None, "draws must be given with standard_errors, got None")
    check("draws", size(1), number(instance.draws))


def number(x: Any) -> Any:
    """A known number as one of Python, for messages."""
    return np.asarray(x).item() if is_concrete(x) and np.ndim(x) == 0 else x


def _check_law(instance):
    """Raise unless rewards of this law have what they are drawn from, and can have these means."""
    rewards, means = instance.rewards, instance.means
    source = SOURCES.get(rewards)
    given = source is None or getattr(instance, source) is not None
    require(given, f"{source} must be given for rewards {rewards!r}, got None")
    if rewards == "simulated":
        method = callable(getattr(instance.simulator, "reward", None))
        require(method, "simulator must have a method `reward(key, arm)`, got none")
    low, high = RANGES.get(rewards, (-np.inf, np.inf))
    if is_concrete(means):
        least, most = np.min(means), np.max(means)
        require(
            low - TIED <= least and most <= high + TIED,
            f"means must lie in [{low:g}, {high:g}] for {rewards} rewards, got {least:.6g} to "
            f"{most:.6g}",
        )


def _check_values(instance):
    """Raise where the targets are the arms, and the values are not their means."""
    tables = instance.arms, instance.targets, instance.means, instance.values
    if not all(map(is_concrete, tables)) or not np.array_equal(instance.arms, instance.targets):
        return
    apart = np.abs(np.asarray(instance.values) - np.asarray(instance.means))
    arm = int(apart.argmax())
    if apart[arm] <= SAME_VALUES * np.abs(instance.means).max():
        return
    values, means = np.asarray(instance.values, float), np.asarray(instance.means, float)
    value, mean = values[arm].item(), means[arm].item()
    hint = "where one is replaced, replace both"
    if np.array_equal(np.float32(values), np.float32(means)):
        single = np.array_equal(np.float32(means), means)
        name = "means" if single else "values"
        hint = f"the {name} are rounded to float32: give them as float64, or replace both"
    raise ValueError(
        f"values must be the means where the targets are the arms, got {value} and {mean} for "
        f"arm {arm}: {hint}"
    )


def _check_stress(stress: Any, rewards: str, num_arms: int) -> None:
    """Raise unless stress is what `stressed` makes of its options for such rewards."""
    if stress is None:
        return
    require(isinstance(stress, Stress), "stress must be a Stress", stress)
    if SOURCES.get(rewards) == "stress":
        require(stress.variances is not None, f"stress must have variances for {rewards} rewards")
    if rewards == "student":
        require(stress.df is not None, "stress must have degrees of freedom, df, for Student's t")
    if stress.variances is not None:
        check_finite("stress.variances", stress.variances, (num_arms,))
    if stress.df is not None:
        check("stress.df", OPTIONS["df"], number(stress.df))
    if stress.drift is not None:
        check("stress.drift.size", nonnegative, number(stress.drift.size))
        check("stress.drift.period", positive, number(stress.drift.period))
        check_finite("stress.drift.phases", stress.drift.phases, (num_arms,))
    check("stress.delay", LATE, stress.delay)
