"""The kinds of problem that a simulation can be given, and what it has to know of each."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..feature_tables import check_arms, check_real, is_concrete, require
from ..instances import Instance
from ..instances.contextual import Labelled
from ..instances.environments.contextual import contextual
from ..instances.environments.finite import TIED
from ..instances.environments.stressed import late, stressed
from ..parameters import check, nonnegative

EPS = float(np.finfo(float).eps)


class Kind(NamedTuple):
    """One of them; `problem` is an instance, all of its numbers or only their shapes known."""

    env: Any  # (problem, options of the algorithm) -> Env
    facts: Any  # (problem) -> what an algorithm may be told
    check: Any  # (problem, horizon) -> None; raises
    healthy: Any  # (problem) -> bool []: whether one that was drawn is finite
    contextual: bool  # whether `ask` is shown something
    # (problem, algorithm) -> the algorithm, as the problem lets it learn.
    learner: Any = lambda problem, algorithm: algorithm
    # What belongs to a replication alone, besides its random stream, and the problem with it.
    own: Any = lambda problem, replication: ()
    given: Any = lambda problem, own: problem


def kind_of(problem):
    """The `Kind` of an instance; None for what is none."""
    return KINDS.get(type(problem))


def _finite_env(instance, options):
    identifies = "budget" not in options and "per_arm" not in options
    return stressed(instance, epsilon=options.get("epsilon", 0.0), identifies=identifies)


def _finite_facts(instance):
    told = ("targets", "family", "noise_var", "theta_norm", "theta")
    return {name: getattr(instance, name) for name in told}


def _finite_healthy(instance):
    tables = (instance.arms, instance.means, instance.values, instance.noise_var)
    return jnp.stack([jnp.isfinite(x).all() for x in tables]).all()


def check_instance(instance, horizon=None):
    """Finite numbers and matching shapes, for instances built by hand."""
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
    if instance.samples is not None:
        check_real("samples", instance.samples)


def _check_noise(noise_var, means):
    """Raise where rewards are rounded to more than all means differ by."""
    if not (is_concrete(noise_var) and is_concrete(means)):
        return
    apart, size = float(np.max(means) - np.min(means)), float(np.abs(means).max())
    apart = 0.0 if apart <= TIED * size else apart  # but for rounding they are ties
    most = (apart / EPS) ** 2
    if apart > 0 and float(noise_var) > most:
        raise ValueError(
            f"noise_var must be at most {most:.2g} for means that are at most {apart:.2g} apart: "
            f"beyond it rewards are rounded to more than that, got {noise_var}"
        )


def _check_labelled(problem, horizon):
    require(horizon is not None, "horizon must be given for a contextual instance, got None")
    num_examples = np.shape(problem.features)[:1]
    shape = np.shape(problem.labels)
    require(shape == num_examples, f"labels must have shape {num_examples}, got {shape}")
    target, classes = problem.target, np.asarray(problem.classes).tolist()
    known = target is None or target in classes
    require(known, f"target must be one of the labels {classes}, got {target!r}")


def _own_target(problem, replication):
    return (
        ()
        if problem.target is not None
        else jnp.asarray(problem.classes)[replication % problem.classes.shape[0]]
    )


def _with_target(problem, own):
    return problem if problem.target is not None else dataclasses.replace(problem, target=own)


KINDS = {
    Instance: Kind(
        env=_finite_env,
        facts=_finite_facts,
        check=check_instance,
        healthy=_finite_healthy,
        contextual=False,
        learner=late,
    ),
    Labelled: Kind(
        env=lambda problem, options: contextual(problem),
        facts=lambda problem: {},
        check=_check_labelled,
        healthy=lambda problem: jnp.array(True),  # it is never drawn
        contextual=True,
        own=_own_target,
        given=_with_target,
    ),
}
