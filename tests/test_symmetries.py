"""Other labels of the arms and other axes of the features change no law."""

import dataclasses
from functools import partial
from operator import attrgetter

import at_random
import cases
import jax.numpy as jnp
import numpy as np
import pytest
from programs import QUICK, simulate
from scipy import stats

import jaxbandits as jb

each = pytest.mark.parametrize("case", cases.NOT_CONTEXTUAL, ids=attrgetter("name"), scope="module")
RUNS = 192
MOST_PULLS = {"phased": 1_000_000, "sequential": 3000, "regret": 3000}
LEAST_P = 1e-7  # of the many numbers that are compared
BUDGET = 48  # which halving shares out among 8, 4 and 2 arms without a rest


def relabelled(made, arms, targets):
    """The instance whose arm i is the arm `arms[i]` of another; its targets likewise."""
    return dataclasses.replace(
        made,
        arms=made.arms[arms],
        targets=made.targets[targets],
        means=made.means[arms],
        values=made.values[targets],
    )


def rotated(made, seed):
    """The instance in other orthogonal axes."""
    axes = stats.ortho_group.rvs(len(made.theta), random_state=seed)
    turned = {name: getattr(made, name) @ axes for name in ("arms", "targets", "theta")}
    return dataclasses.replace(made, **turned)


def plain_problem(seed, case):
    """An instance at random of the shapes of a case, nothing about it odd."""
    nothing = dict.fromkeys(at_random.Oddities._fields, 0)
    odd = at_random.Oddities(**nothing)._replace(seed=seed)
    return at_random.instance(odd, case.instance)


def play(instance, build, case, seed):
    options = {"max_pulls": MOST_PULLS[case.kind]} | case.options
    if "budget" in getattr(build, "keywords", {}):
        build = partial(build, budget=BUDGET)
    return simulate(instance, build, replications=RUNS, seed=seed, engine=QUICK, **options)


def numbers(runs, num_targets):
    """`[R, ...]`: pulls, pulls of each arm, and whether each target is answered."""
    chosen = runs.answer
    if chosen.ndim == 1:
        chosen = chosen[:, None] == np.arange(num_targets)
    chosen = chosen & (runs.pulls > 0)[:, None]  # an answer from no draw is any
    return np.column_stack([runs.pulls, runs.arm_pulls, chosen]).astype(float)


def least_p(first, second):
    """The smallest p-value of the columns' differences of means, taken for normal."""
    distance = np.abs(first.mean(0) - second.mean(0))
    error = np.sqrt((first.var(0, ddof=1) + second.var(0, ddof=1)) / len(first))
    varied = error > 1e-12  # else constants, which are equal or not
    z = np.where(
        varied, distance / np.where(varied, error, 1.0), np.where(distance > 1e-9, np.inf, 0.0)
    )
    return 2 * stats.norm.sf(z.max())


def under_other_labels(case, build, seed):
    """Least p-value, of the runs of an instance and of those of the same with other labels."""
    made, rng = plain_problem(seed, case), np.random.default_rng(seed)
    kept = made.arms.shape[1] if case.from_the_first else 0
    arms = np.concatenate([np.arange(kept), rng.permutation(np.arange(kept, len(made.arms)))])
    same = np.array_equal(made.arms, made.targets)
    targets = arms if same else rng.permutation(len(made.targets))
    first = numbers(play(made, build, case, seed), len(targets))
    runs = play(relabelled(made, arms, targets), build, case, seed + 1)
    second = numbers(runs, len(targets))
    columns = np.concatenate([[0], 1 + arms, 1 + len(arms) + targets])
    return least_p(first[:, columns], second)


def in_other_axes(case, build, seed):
    """The same for other axes."""
    made = plain_problem(seed, case)
    first = numbers(play(made, build, case, seed), len(made.targets))
    second = numbers(play(rotated(made, seed), build, case, seed + 1), len(made.targets))
    return least_p(first, second)


@each
def test_other_labels_give_the_same_law(case):
    assert under_other_labels(case, case.build, 1) > LEAST_P


@each
def test_other_axes_give_the_same_law(case):
    build = case.build
    if case.name == "peace":  # whose widths are the mean of the same draws in any axes
        build = partial(build, objective="rho")
    assert in_other_axes(case, build, 1) > LEAST_P


@pytest.mark.slow
@each
def test_laws_of_several_problems(case):
    build = partial(case.build, objective="rho") if case.name == "peace" else case.build
    for seed in range(2, 12):
        assert under_other_labels(case, case.build, seed) > LEAST_P
        assert in_other_axes(case, build, seed) > LEAST_P


def first_arm_first(arms, *, theta_norm, noise_var):
    """Draws the first arm where it should draw the second."""
    right = jb.lingape(arms, delta=0.1, theta_norm=theta_norm, noise_var=noise_var)

    def ask(key, state):
        move = right.ask(key, state)
        return move._replace(arm=jnp.where(move.arm == 1, 0, move.arm))

    return right._replace(ask=ask)


def first_axis_first(arms, *, theta_norm, noise_var):
    """Its prior is narrower in the first feature."""
    arms = arms * jnp.array([0.1, *[1.0] * (arms.shape[1] - 1)])
    return jb.lingape(arms, delta=0.1, theta_norm=theta_norm, noise_var=noise_var)


def test_the_laws_tell_the_first_arm_and_axis():
    case = cases.named("lingape")
    assert under_other_labels(case, first_arm_first, 2) < LEAST_P
    assert in_other_axes(case, first_axis_first, 2) < LEAST_P
