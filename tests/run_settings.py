"""Settings (instance, algorithm and options) of each kind of run, and comparisons of runs."""

import os
import subprocess
import sys
from functools import partial

import cases
import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb


def shuffled(key):
    """A random instance: the best arm depends on the key, the difficulty does not."""
    theta = jax.random.permutation(key, jnp.array([1.0, 0.3, 0.0, -0.5]))
    return jb.instances.linear(jnp.eye(4), theta, noise_var=0.25)


SOARE = jb.instances.soare(3, angle=0.5, scale=2.0)
CANONICAL = jb.instances.canonical(8, gap=1.0)
CUBE = cases.CUBE(jax.random.key(3))
SETTINGS = {
    "sequential": (SOARE, partial(jb.lingape, delta=0.1), {}),
    "phased": (CANONICAL, partial(jb.gse, budget=40), {}),
    "regret": (CUBE, jb.glm_tsl, {"horizon": 40}),
    "random": (shuffled, partial(jb.lingape, delta=0.1), {}),
}
# Tables of a sweep that takes no time; a test adds the axis `gap`.
HALVING = """
[instances.basis]
name = "canonical"
dim = 3
[algorithms.SH]
name = "sequential_halving"
budget = 30
"""


def simulate(name, replications, **options):
    """Runs of one of the `SETTINGS`."""
    instance, build, more = SETTINGS[name]
    return jb.simulate(instance, build, replications=replications, seed=7, **more, **options)


def assert_same_runs(first, second):
    """Fail unless two runs hold the same numbers."""
    for name in ("replication", "pulls", "answer", "correct", "stopped", "arm_pulls"):
        one, two = getattr(first, name), getattr(second, name)
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two, err_msg=name)
    assert first.info.keys() == second.info.keys()
    for name, values in first.info.items():
        np.testing.assert_array_equal(values, second.info[name], err_msg=name)
    if first.regret is not None:
        np.testing.assert_array_equal(first.rounds, second.rounds)
        np.testing.assert_allclose(first.regret, second.regret, rtol=1e-9, atol=1e-9)


def assert_all_the_same(instance, build, ways, **options):
    """Fail unless 70 replications are the same with each of the options in `ways`."""
    first, *others = (
        jb.simulate(instance, build, replications=70, **way, **options) for way in ways
    )
    for other in others:
        assert_same_runs(first, other)
    assert first.arm_pulls.std(0).max() > 0


def timeless(dataset):
    """The results of a sweep without its running times."""
    times = ["seconds", "compile_seconds"]
    bare = dataset.drop_vars(times)
    bare.attrs = {name: value for name, value in dataset.attrs.items() if name not in times}
    return bare


def child(code, **environment):
    """Standard output of a new Python process that runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
