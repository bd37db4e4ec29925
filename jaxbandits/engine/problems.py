"""The types of problem that a simulation can be given, and what it has to know of each."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from ..core import Algorithm, Env
from ..feature_tables import is_concrete, require
from ..instances import Instance
from ..instances.contextual import Labelled
from ..instances.contextual import entered as labelled_fields
from ..instances.environments.contextual import contextual
from ..instances.environments.finite import LAWS, TIED
from ..instances.environments.stressed import delayed, drifted, late, stressed
from ..instances.fields import entered, number
from ..instances.stress import RANGES
from ..kernels.tracing import traced_once
from ..parameters import Option, check, nonnegative, real, variance
from ..system.revisions import Revisions, revisions_of_each
from ..system.traces import TraceCache

EPS: float = float(np.finfo(float).eps)
# The variance that a learner is told, where it is told one.
OF_A_RUN: Option = real(f"0, or {variance.allowed}", lambda v: v == 0 or variance.accepts(v))

Problem: TypeAlias = Instance | Labelled


class ProblemType(NamedTuple):
    """What a simulation does with one type of problem.

    `problem` is an instance, of which all numbers are known or only their shapes.
    """

    env: Callable[[Any, Mapping[str, Any]], Env]  # (problem, options of the algorithm)
    facts: Callable[[Any], dict[str, Any]]  # what an algorithm may be told of the problem
    check: Callable[[Any, int | None], None]  # (problem, horizon); raises
    # (problem, traces of the call) -> it with fields that were changed by hand checked.
    entered: Callable[[Any, TraceCache | None], Any]
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
    tables = (instance.arms, instance.means, instance.values, instance.noise_var)
    return _are_possible(*tables, rewards=instance.rewards)


@traced_once
def _are_possible(arms, means, values, noise_var, *, rewards):
    """Whether numbers are finite, and rewards can have these means and this variance."""
    held = [jnp.isfinite(x).all() for x in (arms, means, values, noise_var)] + [noise_var >= 0]
    if rewards in RANGES:
        low, high = RANGES[rewards]
        held.append((means >= low - TIED) & (means <= high + TIED))
    return jnp.stack([jnp.all(x) for x in held]).all()


def _check_numbers(instance, horizon):
    """Raise unless a run can compute with what learners are told, where that is known."""
    check("noise_var", OF_A_RUN, number(instance.noise_var))
    if instance.theta_norm is not None:
        check("theta_norm", nonnegative, number(instance.theta_norm))
    known = is_concrete(instance.noise_var) and is_concrete(instance.means)
    if known and instance.rewards == "normal":
        _check_noise(float(instance.noise_var), instance.means)


def _check_noise(noise_var, means):
    """Raise where the noise is so large that rewards are rounded to more than the means differ."""
    width, size = float(np.max(means) - np.min(means)), float(np.abs(means).max())
    width = 0.0 if width <= TIED * size else width  # but for rounding they are ties
    most = width / EPS * (width / EPS)  # a power would raise where it is out of range
    if width > 0 and noise_var > most:
        raise ValueError(
            f"noise_var must be at most {most:.2g} for means that are at most {width:.2g} apart: "
            f"beyond it rewards are rounded to more than that, got {noise_var}"
        )


def _check_horizon(problem, horizon):
    require(horizon is not None, "horizon must be given for a contextual instance, got None")


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
        check=_check_numbers,
        entered=entered,
        is_possible=_is_possible,
        contextual=False,
        laws=_finite_laws,
        learner=late,
    ),
    Labelled: ProblemType(
        env=lambda problem, options: contextual(problem),
        facts=lambda problem: {},
        check=_check_horizon,
        entered=lambda problem, traces: labelled_fields(problem),
        is_possible=lambda problem: jnp.array(True),  # it is never drawn
        contextual=True,
        laws=lambda problem: {"contextual rewards": contextual},
        own_part=_own_target,
        with_own_part=_with_target,
    ),
}
