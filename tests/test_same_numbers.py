"""Whatever the lanes, the devices and the bar: replication r gives the same integers."""

import os
from functools import partial

import jax
import pytest
from worlds import WORLDS, child

import jaxbandits as jb

ELLIPSE = jb.instances.sphere(
    jax.random.key(2, impl="threefry2x32"), num_arms=20, dim=4, noise_var=0.2
)
ALL = {
    **WORLDS,
    "designs": (ELLIPSE, partial(jb.gse, budget=200, design="d_opt"), {}),
    "adaptive designs": (jb.instances.soare(3, angle=0.3), partial(jb.rage, delta=0.1), {}),
}
SCRIPT = """
import itertools, sys
sys.path.insert(0, {tests!r})
import jax, jaxbandits as jb
from test_same_numbers import ALL
from worlds import assert_same_runs
assert len(jax.devices()) == 4
instance, build, options = ALL[{name!r}]
told = []
ways = itertools.product([1, 3, 64, None], [None, 4], [False, lambda *state: told.append(state)])
runs = [
    jb.simulate(instance, build, replications=70, batch=batch, devices=devices, progress=progress,
                **options)
    for batch, devices, progress in ways
]
for other in runs[1:]:
    assert_same_runs(runs[0], other)
assert len(runs) == 16 and told
assert runs[0].arm_pulls.std(0).max() > 0
print("same")
"""


@pytest.mark.parametrize(
    "name",
    ["sequential", *(pytest.param(name, marks=pytest.mark.slow) for name in list(ALL)[1:])],
)
def test_batch_devices_and_progress_change_nothing(name):
    code = SCRIPT.format(tests=os.path.dirname(__file__), name=name)
    flags = "--xla_force_host_platform_device_count=4"
    assert child(code, XLA_FLAGS=flags, JAX_PLATFORMS="cpu") == "same\n"
