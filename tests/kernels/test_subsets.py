"""Slots of sets: one for each set where they fit, shared evenly where they do not."""

import itertools
import math

import jax
import numpy as np
import pytest

from jaxbandits.kernels.games import subsets


def slots(num_arms, m):
    sets = list(itertools.combinations(range(num_arms), m))
    masks = np.array([np.isin(np.arange(num_arms), one) for one in sets])
    return np.asarray(jax.jit(jax.vmap(lambda x: subsets.slot(x, m)))(masks))


@pytest.mark.parametrize(("num_arms", "m"), [(4, 2), (10, 5), (7, 1), (256, 1), (9, 8), (100, 99)])
def test_each_set_has_its_own_slot(num_arms, m):
    number, shared = subsets.num_slots(num_arms, m)
    assert (number, shared) == (math.comb(num_arms, m), False)
    np.testing.assert_array_equal(np.sort(slots(num_arms, m)), np.arange(number))


def test_many_sets_share_slots_evenly():
    assert subsets.num_slots(16, 4) == (subsets.MOST, True)
    found = np.bincount(slots(16, 4), minlength=subsets.MOST)
    assert found.size == subsets.MOST
    expected = math.comb(16, 4) / subsets.MOST
    assert ((found - expected) ** 2 / expected).sum() < 2 * subsets.MOST
