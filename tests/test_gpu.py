"""What only a machine with a GPU can show: its runs are those of a CPU, whichever engine plays."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.engine import host_loop
from jaxbandits.system import keeping

pytestmark = [
    pytest.mark.slow,
    pytest.mark.optimised,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU"),
]


def sphere(num_arms, dim):
    """A constructor, which compiles programs: `simulate` calls it, where there is a GPU."""
    key = jax.random.key(5, impl="threefry2x32")
    return partial(jb.instances.sphere, key, num_arms=num_arms, dim=dim, noise_var=0.1)


SOARE = jb.instances.soare(5, angle=0.5)
LINGAPE = partial(jb.lingape, delta=0.05)
# The second has a table of each lane on the chip, the third a phase for a move.
SETTINGS = {
    "soare": (SOARE, LINGAPE),
    "sphere": (sphere(30, 20), LINGAPE),
    "gse": (jb.instances.canonical(16, gap=1.0), partial(jb.gse, budget=320)),
    "top-m": (sphere(10, 8), partial(jb.m_lingape, m=3, delta=0.05)),
}
NAMES = list(SETTINGS)


def play(name, replications=2000, **options):
    instance, algorithm = SETTINGS[name]
    return jb.simulate(instance, algorithm, replications=replications, **options)


@pytest.fixture(scope="module", params=NAMES)
def both(request):
    """The runs of each engine of the GPU."""
    runs = {engine: play(request.param, engine=engine) for engine in ("xla", "cuda")}
    return request.param, runs


def test_engines_give_the_same_runs(both):
    _, runs = both
    assert {name: found.meta["engine"] for name, found in runs.items()} == {x: x for x in runs}
    one, two = runs["xla"], runs["cuda"]
    assert (one.arm_pulls == two.arm_pulls).all(1).mean() >= 0.999
    assert (one.answer == two.answer).mean() >= 0.999


def test_a_second_call_gives_the_same_runs(both):
    name, runs = both
    for engine, first in runs.items():
        again = play(name, engine=engine)
        np.testing.assert_array_equal(again.arm_pulls, first.arm_pulls)
        np.testing.assert_array_equal(again.answer, first.answer)


def test_runs_do_not_depend_on_lanes(both):
    name, runs = both
    few = play(name, replications=500, engine="cuda", batch=256)
    np.testing.assert_array_equal(few.arm_pulls, runs["cuda"].arm_pulls[:500])


ON_CPU = """
import sys
import numpy as np
from test_gpu import play
runs = play(sys.argv[1], engine="xla")
np.savez(sys.argv[2], arm_pulls=runs.arm_pulls, correct=runs.correct)
"""


def test_means_are_those_of_a_cpu(both, tmp_path):
    """The CPU plays in a process of its own, as the devices of this one are GPUs."""
    name, runs = both
    path = tmp_path / "runs.npz"
    there = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", ON_CPU, name, path], cwd=here, env=there, check=True)
    with np.load(path, allow_pickle=False) as cpu:
        for found in runs.values():
            ours, theirs = (x["arm_pulls"].max(1).astype(float) for x in (vars(found), cpu))
            error = np.hypot(ours.std(), theirs.std()) / np.sqrt(len(ours))
            assert abs(ours.mean() - theirs.mean()) <= 3 * error
            assert abs(found.correct.mean() - cpu["correct"].mean()) <= 0.03


@pytest.mark.parametrize("algorithm", [partial(jb.rage, delta=0.05), partial(jb.gse, budget=400)])
def test_loops_of_the_device_and_of_the_host_give_the_same_runs(monkeypatch, algorithm):
    def runs():
        keeping.remembered.forget()
        return jb.simulate(SOARE, algorithm, replications=500, engine="xla")

    one_graph = runs()
    monkeypatch.setattr(host_loop, "_flags", lambda *_: {})
    from_host = runs()
    np.testing.assert_array_equal(one_graph.arm_pulls, from_host.arm_pulls)


@pytest.mark.parametrize("engine", ["xla", "cuda"])
def test_errors_are_at_most_delta(engine):
    runs = play("soare", replications=20_000, engine=engine)
    assert 1 - runs.correct.mean() <= 0.05


def test_randomised_regret_runs_are_those_of_xla():
    key = jax.random.key(3, impl="threefry2x32")
    cube = jb.instances.logistic_cube(key, num_arms=10, dim=3)
    runs = [
        jb.simulate(cube, jb.glm_tsl, horizon=200, replications=256, engine=engine)
        for engine in ("xla", "cuda")
    ]
    assert (runs[0].arm_pulls == runs[1].arm_pulls).all(1).mean() >= 0.97
