"""Programs that are compiled as users' are play as those that the tests compile in haste."""

from operator import attrgetter

import numpy as np
import pytest
from cases import CASES
from params import params
from programs import REPLICATIONS, as_for_users, simulate

import jaxbandits as jb


@pytest.mark.parametrize("engine", ["xla", "native"])
@pytest.mark.parametrize("case", params(CASES, always=("lingape",), name=attrgetter("name")))
def test_optimised_programs_play_as_hasty_ones(case, engine):
    hasty = simulate(case.instance, case.build, engine=engine, **case.options)
    with as_for_users():
        # The number of lanes changes no result, and this one is in no program compiled in haste.
        lanes = {"batch": 24, "replications": 24}
        optimised = jb.simulate(case.instance, case.build, engine=engine, **lanes, **case.options)
    same = (hasty.arm_pulls == optimised.arm_pulls[:REPLICATIONS]).all(1)
    assert same.sum() >= REPLICATIONS - 1  # numbers differ in their last bits
    for field in ("answer", "stopped", "correct"):
        ours, theirs = getattr(hasty, field), getattr(optimised, field)[:REPLICATIONS]
        np.testing.assert_array_equal(ours[same], theirs[same])
