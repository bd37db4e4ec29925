"""Rewards in another unit: c times the rewards and c^2 times `noise_var` change no draw.

`pytest tests/test_reward_units.py` holds the law against every algorithm whose rewards have a unit.
Normal rewards have one, and so have recorded and simulated ones. Rewards of 0 and 1, and Poisson
rewards, have none. Numbers c are powers of two, for which multiplication is exact: all draws and
answers are then equal, and the regret is exactly c times as large. Nothing is compiled anew.
"""

import dataclasses
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import at_random
import cases
import chex
import jax
import numpy as np
import pytest
from counting import compilations
from params import params
from programs import QUICK, simulate

import jaxbandits as jb

FACTORS = (8.0, 1024.0, 1 / 1024)
FAR = (2.0**200, 2.0**-200)  # rewards of 1e60, whose squares are beyond single precision


def play(instance, build, names, factor, engine, **options):
    """Runs in units in which rewards are `factor` times as large; `names` are such options."""
    made = instance if factor == 1 else at_random.in_reward_units(instance, factor)
    build = at_random.options_in_reward_units(build, names, factor)
    return simulate(made, build, engine=engine, **options)


def check(instance, build, names=(), engine="auto", factors=FACTORS, **options):
    """The law for one algorithm on one instance."""
    plain = play(instance, build, names, 1.0, engine, **options)
    assert plain.stopped.all()
    for factor in factors:
        with compilations() as seen:
            scaled = play(instance, build, names, factor, engine, **options)
        assert seen == []
        for name in ("pulls", "arm_pulls", "answer", "correct", "stopped"):
            np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))
        chex.assert_trees_all_equal(scaled.info, plain.info)
        if plain.regret is not None:
            np.testing.assert_array_equal(scaled.regret, factor * plain.regret)


WITH_UNITS = tuple(case for case in cases.CASES if cases.has_reward_units(case.instance))


@pytest.mark.parametrize("case", WITH_UNITS, ids=attrgetter("name"), scope="module")
def test_another_unit_of_rewards_changes_no_draw(case):
    check(case.instance, case.build, case.in_reward_units, factors=FACTORS + FAR, **case.options)


def as_gaussian(case):
    """The arms and theta of a logistic case with normal rewards, which are the family "gaussian"."""
    return jb.instances.linear(case.instance.arms, case.instance.theta)


# Algorithms of generalised models, whose other families have no unit.
GAUSSIAN = tuple(
    case
    for case in cases.CASES
    if case.name in ("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm", "epsilon_greedy", "evill")
    or case.name in ("ofu_glb", "watched")
)


@pytest.mark.parametrize("case", GAUSSIAN, ids=attrgetter("name"), scope="module")
def test_another_unit_changes_no_draw_of_the_gaussian_family(case):
    check(as_gaussian(case), case.build, factors=FACTORS + FAR, **case.options)
