"""The types of problem that a simulation can be given, and what it has to know of each."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ..core import Algorithm, Env
from ..feature_tables import check_arms, is_concrete, require
from ..instances import Instance
from ..instances.contextual import Labelled
from ..instances.environments.contextual import contextual
from ..instances.environments.finite import LAWS, TIED
from ..instances.environments.stressed import delayed, drifted, late, stressed
from ..instances.stress import RANGES
from ..kernels.estimate.links import FAMILIES
from ..messages import brief
from ..parameters import check, choice, nonnegative
from ..precision import check_real
from ..system.revisions import Revisions, revisions_of_each

SAME_VALUES: float = 1e-9  # of the largest mean: less is rounding
# By the law of rewards, which attribute of an instance it draws from.
SOURCES: dict[str, str] = {
    "recorded": "samples",
    "simulated": "simulator",
    "heteroscedastic": "stress",
    "student": "stress",
}
EPS: float = float(np.finfo(float).eps)

Problem: TypeAlias = Instance | Labelled


class ProblemType(NamedTuple):
    """What a simulation does with one type of problem.

    `problem` is an instance, of which all numbers are known or only their shapes.
    """

    env: Callable[[Any, Mapping[str, Any]], Env]  # (problem, options of the algorithm)
    facts: Callable[[Any], dict[str, Any]]  # what an algorithm may be told of the problem
    check: Callable[[Any, int | None], None]  # (problem, horizon); raises
    is_possible: Callable[[Any], Bool[Array, ""]]  # of a problem that was drawn
    contextual: bool  # whether `ask` is given a context
    laws: Callable[[Any], dict[str, object]]  # by name, what draws the rewards of a problem
    # (problem, algorithm) -> the algorithm, as the problem lets it learn.
    learner: Callable[[Any, Algorithm], Algorithm] = lambda problem, algorithm: algorithm
    # (problem, replication) -> what belongs to that replication alone, besides its random stream.
    own_part: Callable[[Any, Any], Any] = lambda problem, replication: ()
    with_own_part: Callable[[Any, Any], Any] = lambda problem, own: problem


def is_problem(source: object) -> bool:
    """Whether this is a problem itself, and not a callable that draws one."""
    return type(source) in PROBLEM_TYPES


def type_of(problem: Problem) -> ProblemType:
    """The `ProblemType` of a problem."""
    return PROBLEM_TYPES[type(problem)]


def revisions_of_rewards(problem: Problem) -> Revisions:
    """The revisions of what draws the rewards of a problem, by name: its law, drift and delay."""
    return revisions_of_each(type_of(problem).laws(problem))


def _finite_env(instance, options):
    identifies = "budget" not in options and "per_arm" not in options
    return stressed(instance, epsilon=options.get("epsilon", 0.0), identifies=identifies)


def _finite_facts(instance):
    names = ("targets", "family", "noise_var", "theta_norm", "theta")
    return {name: getattr(instance, name) for name in names}


def _finite_laws(instance):
    laws = {f"{instance.rewards} rewards": LAWS.get(instance.rewards)}
    stress = instance.stress
    if stress is not None and stress.drift is not None:
        laws["drift"] = drifted
    if stress is not None and stress.delay:
        laws["delay"] = delayed
    return laws


def _is_possible(instance):
    """Whether numbers are finite, and rewards can have these means and this variance."""
    tables = (instance.arms, instance.means, instance.values, instance.noise_var)
    held = [jnp.isfinite(x).all() for x in tables] + [instance.noise_var >= 0]
    if instance.rewards in RANGES:
        low, high = RANGES[instance.rewards]
        held.append((instance.means >= low - TIED) & (instance.means <= high + TIED))
    return jnp.stack([jnp.all(x) for x in held]).all()


def check_instance(instance: Instance, horizon: int | None = None) -> None:
    """Raise unless numbers are finite and shapes match, as in instances built by hand they may not.

    Args:
      instance: whose numbers are known, or only their shapes.
      horizon: not looked at; contextual problems have to have one.
    """
    check_arms(instance.arms, instance.targets)
    num_arms, num_targets = np.shape(instance.arms)[0], np.shape(instance.targets)[0]
    dim = np.shape(instance.arms)[1:]
    for name, shape in (("means", (num_arms,)), ("values", (num_targets,)), ("theta", dim)):
        table = getattr(instance, name)
        check_real(name, table)
        require(np.shape(table) == shape, f"{name} must have shape {shape}, got {np.shape(table)}")
        if is_concrete(table):
            require(np.isfinite(table).all(), f"{name} must be finite, got NaN or infinity")
    check("noise_var", nonnegative, instance.noise_var)
    if instance.rewards == "normal":
        _check_noise(instance.noise_var, instance.means)
    if instance.theta_norm is not None:
        check("theta_norm", nonnegative, instance.theta_norm)
    _check_law(instance)
    _check_values(instance)


def _check_law(instance):
    """Raise unless rewards have a known law, and what it draws from."""
    check("rewards", choice(*LAWS), instance.rewards)
    check("family", choice(*FAMILIES), instance.family)
    source = SOURCES.get(instance.rewards)
    known = source is None or getattr(instance, source) is not None
    require(known, f"{source} must be given for rewards {instance.rewards!r}, got None")
    num_arms, shape = np.shape(instance.arms)[0], np.shape(instance.samples)
    fits = instance.samples is None or (len(shape) == 2 and shape[0] == num_arms and shape[1] > 0)
    require(fits, f"samples must be a table [{num_arms}, N], got shape {shape}")
    low, high = RANGES.get(instance.rewards, (-np.inf, np.inf))
    if is_concrete(instance.means):
        least, most = np.min(instance.means), np.max(instance.means)
        require(
            low - TIED <= least and most <= high + TIED,
            f"means must lie in [{low:g}, {high:g}] for {instance.rewards} rewards, "
            f"got {least:.6g} to {most:.6g}",
        )


def _check_values(instance):
    """Raise where the targets are the arms, and the values are not their means."""
    tables = instance.arms, instance.targets, instance.means, instance.values
    if not all(map(is_concrete, tables)) or not np.array_equal(instance.arms, instance.targets):
        return
    apart = np.abs(np.asarray(instance.values) - np.asarray(instance.means))
    arm = int(apart.argmax())
    require(
        apart[arm] <= SAME_VALUES * np.abs(instance.means).max(),
        f"values must be the means where the targets are the arms, got {instance.values[arm]:.6g} "
        f"and {instance.means[arm]:.6g} for arm {arm}: where one is replaced, replace both",
    )


def _check_noise(noise_var, means):
    """Raise where the noise is so large that rewards are rounded to more than the means differ."""
    if not (is_concrete(noise_var) and is_concrete(means)):
        return
    width, size = float(np.max(means) - np.min(means)), float(np.abs(means).max())
    width = 0.0 if width <= TIED * size else width  # but for rounding they are ties
    most = width / EPS * (width / EPS)  # a power would raise where it is out of range
    if width > 0 and float(noise_var) > most:
        raise ValueError(
            f"noise_var must be at most {most:.2g} for means that are at most {width:.2g} apart: "
            f"beyond it rewards are rounded to more than that, got {noise_var}"
        )


def _check_labelled(problem, horizon):
    require(horizon is not None, "horizon must be given for a contextual instance, got None")
    num_examples = np.shape(problem.features)[:1]
    shape = np.shape(problem.labels)
    require(shape == num_examples, f"labels must have shape {num_examples}, got {shape}")
    target, classes = problem.target, np.asarray(problem.classes).tolist()
    known = target is None or target in classes
    require(known, f"target must be one of the labels {classes}, got {brief(target)}")


def _own_target(problem: Labelled, replication: Int[Array, ""]) -> Int[Array, ""] | tuple[()]:
    if problem.target is not None:
        return ()
    return jnp.asarray(problem.classes)[replication % problem.classes.shape[0]]


def _with_target(problem, own):
    return problem if problem.target is not None else dataclasses.replace(problem, target=own)


PROBLEM_TYPES: dict[type, ProblemType] = {
    Instance: ProblemType(
        env=_finite_env,
        facts=_finite_facts,
        check=check_instance,
        is_possible=_is_possible,
        contextual=False,
        laws=_finite_laws,
        learner=late,
    ),
    Labelled: ProblemType(
        env=lambda problem, options: contextual(problem),
        facts=lambda problem: {},
        check=_check_labelled,
        is_possible=lambda problem: jnp.array(True),  # it is never drawn
        contextual=True,
        laws=lambda problem: {"contextual rewards": contextual},
        own_part=_own_target,
        with_own_part=_with_target,
    ),
}
