"""Replication r gives the same integers for any lanes, devices, and with or without progress."""

import itertools
from functools import partial

import jax
import pytest
from run_settings import SETTINGS, assert_all_the_same

import jaxbandits as jb


def sphere():
    """A constructor, which compiles programs: `simulate` calls it in the test that needs it."""
    key = jax.random.key(2, impl="threefry2x32")
    return jb.instances.sphere(key, num_arms=20, dim=4, noise_var=0.2)


ALL = {
    **SETTINGS,
    "designs": (sphere, partial(jb.gse, budget=200, design="d_opt"), {}),
    "adaptive designs": (jb.instances.soare(3, angle=0.3), partial(jb.rage, delta=0.1), {}),
}


@pytest.mark.parametrize(
    "name",
    ["sequential", *(pytest.param(name, marks=pytest.mark.slow) for name in list(ALL)[1:])],
)
def test_batch_devices_and_progress_change_nothing(name):
    instance, build, options = ALL[name]
    assert len(jax.devices()) == 4
    reports = []
    bars = [False, lambda *state: reports.append(state)]
    ways = [
        {"batch": batch, "devices": devices, "progress": progress}
        for batch, devices, progress in itertools.product([1, 3, 64, None], [None, 4], bars)
    ]
    assert_all_the_same(instance, build, ways, **options)
    assert len(ways) == 16
    assert reports
