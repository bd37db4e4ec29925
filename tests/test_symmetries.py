"""Relabelled arms and rotated features do not change the distribution of runs."""

import dataclasses
from functools import partial
from operator import attrgetter

import at_random
import cases
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from programs import QUICK, simulate
from scipy import stats

import jaxbandits as jb

each = pytest.mark.parametrize("case", cases.law(cases.NOT_CONTEXTUAL), scope="module")
RUNS, FEWER = 192, 96
MOST_PULLS = {"phased": 1_000_000, "sequential": 3000, "regret": 3000}
LEAST_P = 1e-7  # the smallest p-value that is accepted, as many numbers are compared
BUDGET = 48  # sequential halving divides it evenly among 8, 4 and 2 arms


def relabelled(original, arms, targets):
    """The instance whose arm i is arm `arms[i]` of the given one; its targets likewise."""
    return dataclasses.replace(
        original,
        arms=original.arms[arms],
        targets=original.targets[targets],
        means=original.means[arms],
        values=original.values[targets],
    )


def rotated(original, seed):
    """The instance with arms, targets and theta rotated."""
    axes = stats.ortho_group.rvs(len(original.theta), random_state=seed)
    turned = {name: getattr(original, name) @ axes for name in ("arms", "targets", "theta")}
    return dataclasses.replace(original, **turned)


def plain_problem(seed, case):
    """A random instance with the shapes of a case, without oddities."""
    nothing = dict.fromkeys(at_random.Oddities._fields, 0)
    odd = at_random.Oddities(**nothing)._replace(seed=seed)
    return at_random.instance(odd, case.instance)


def play(instance, build, case, seed, runs):
    options = {"max_pulls": MOST_PULLS[case.kind]} | case.options
    if "budget" in getattr(build, "keywords", {}):
        build = partial(build, budget=BUDGET)
    return simulate(instance, build, replications=runs, seed=seed, engine=QUICK, **options)


def numbers(runs, num_targets):
    """`[R, ...]`: pulls, pulls of each arm, and whether each target is answered."""
    chosen = runs.answer
    if chosen.ndim == 1:
        chosen = chosen[:, None] == np.arange(num_targets)
    chosen = chosen & (runs.pulls > 0)[:, None]  # without a draw the answer is arbitrary
    return np.column_stack([runs.pulls, runs.arm_pulls, chosen]).astype(float)


def least_p(first, second):
    """The smallest p-value over columns of the difference of means, by a normal approximation."""
    distance = np.abs(first.mean(0) - second.mean(0))
    error = np.sqrt((first.var(0, ddof=1) + second.var(0, ddof=1)) / len(first))
    varied = error > 1e-12  # constant columns must be equal
    z = np.where(
        varied, distance / np.where(varied, error, 1.0), np.where(distance > 1e-9, np.inf, 0.0)
    )
    return 2 * stats.norm.sf(z.max())


def p_of_relabelling(case, build, seed, runs=RUNS):
    """The smallest p-value between runs of an instance and of the relabelled instance."""
    original, rng = plain_problem(seed, case), np.random.default_rng(seed)
    kept = original.arms.shape[1] if case.from_the_first else 0
    arms = np.concatenate([np.arange(kept), rng.permutation(np.arange(kept, len(original.arms)))])
    same = np.array_equal(original.arms, original.targets)
    targets = arms if same else rng.permutation(len(original.targets))
    first = numbers(play(original, build, case, seed, runs), len(targets))
    other = play(relabelled(original, arms, targets), build, case, seed + 1, runs)
    second = numbers(other, len(targets))
    columns = np.concatenate([[0], 1 + arms, 1 + len(arms) + targets])
    return least_p(first[:, columns], second)


def p_of_rotation(case, build, seed, runs=RUNS):
    """The smallest p-value between runs of an instance and of the rotated instance."""
    original = plain_problem(seed, case)
    first = numbers(play(original, build, case, seed, runs), len(original.targets))
    other = play(rotated(original, seed), build, case, seed + 1, runs)
    second = numbers(other, len(original.targets))
    return least_p(first, second)


@each
def test_relabelling_does_not_change_the_distribution_of_runs(case):
    assert p_of_relabelling(case, case.build, 1, FEWER) > LEAST_P


@each
def test_rotation_does_not_change_the_distribution_of_runs(case):
    build = case.build
    if (
        case.name == "peace"
    ):  # its widths average the same normal draws in all axes, so they change under rotation
        build = partial(build, objective="rho")
    assert p_of_rotation(case, build, 1, FEWER) > LEAST_P


LONG = ["glm_fpl", "log_phe", "ofu_glb", "peace", "xy_adaptive_soare"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    params(cases.NOT_CONTEXTUAL, optimised=LONG, name=attrgetter("name")),
    scope="module",
)
def test_relabelling_and_rotation_of_ten_instances(case):
    build = partial(case.build, objective="rho") if case.name == "peace" else case.build
    for seed in range(2, 12):
        assert p_of_relabelling(case, case.build, seed) > LEAST_P
        assert p_of_rotation(case, build, seed) > LEAST_P


def first_arm_first(arms, *, theta_norm, noise_var):
    """A wrong algorithm: draws the first arm where it should draw the second."""
    right = jb.lingape(arms, delta=0.1, theta_norm=theta_norm, noise_var=noise_var)

    def ask(key, state):
        move = right.ask(key, state)
        return move._replace(arm=jnp.where(move.arm == 1, 0, move.arm))

    return right._replace(ask=ask)


def first_axis_first(arms, *, theta_norm, noise_var):
    """A wrong algorithm: its prior is narrower in the first feature."""
    arms = arms * jnp.array([0.1, *[1.0] * (arms.shape[1] - 1)])
    return jb.lingape(arms, delta=0.1, theta_norm=theta_norm, noise_var=noise_var)


def test_a_preferred_arm_or_axis_is_detected():
    case = cases.named("lingape")
    assert p_of_relabelling(case, first_arm_first, 2, FEWER) < LEAST_P
    assert p_of_rotation(case, first_axis_first, 2, FEWER) < LEAST_P
