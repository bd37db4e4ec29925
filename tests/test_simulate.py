"""`simulate`: reproducible, resumable, interruptible, careful about its input."""

import dataclasses
import os
import subprocess
import sys
from functools import partial

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.simulation import regret_grid


def shuffled(key):
    """A problem that is equally hard for every key, with another best arm."""
    theta = jax.random.permutation(key, jnp.array([1.0, 0.3, 0.0, -0.5]))
    return jb.instances.linear(jnp.eye(4), theta, noise_var=0.25)


SOARE = jb.instances.soare(3, angle=0.5, scale=2.0)
CANONICAL = jb.instances.canonical(8, gap=1.0)
CUBE = cases.CUBE(jax.random.key(3))
WORLDS = {
    "sequential": (SOARE, partial(jb.lingape, delta=0.1), {}),
    "phased": (CANONICAL, partial(jb.gse, budget=40), {}),
    "regret": (CUBE, jb.glm_tsl, {"horizon": 40}),
    "random": (shuffled, partial(jb.lingape, delta=0.1), {}),
}
every = pytest.mark.parametrize("name", WORLDS)


def simulate(name, replications, **options):
    instance, build, more = WORLDS[name]
    return jb.simulate(instance, build, replications=replications, seed=7, **more, **options)


def assert_same_runs(first, second):
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


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        *((name, 7) for name in WORLDS),
        ("sequential", 1),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in list(WORLDS)[1:]),
    ],
)
def test_the_batch_changes_nothing(name, batch):
    whole = simulate(name, 20)
    assert list(whole.replication) == list(range(20))
    assert len({tuple(row) for row in whole.arm_pulls}) > 10  # not twenty times the same run
    assert_same_runs(simulate(name, 20, batch=batch), whole)


@pytest.mark.parametrize(
    "name",
    ["sequential", *(pytest.param(name, marks=pytest.mark.slow) for name in list(WORLDS)[1:])],
)
def test_nor_does_a_batch_nearly_as_large_as_all(name):
    assert_same_runs(simulate(name, 70, batch=64), simulate(name, 70))


@every
def test_more_replications_change_nothing(name):
    few, many = simulate(name, 10, batch=7), simulate(name, 20)
    for table in ("pulls", "answer", "correct", "arm_pulls"):
        np.testing.assert_array_equal(getattr(few, table), getattr(many, table)[:10])
    if few.regret is not None:
        np.testing.assert_allclose(few.regret, many.regret[:10], rtol=1e-9, atol=1e-9)


def test_another_seed_gives_other_runs():
    instance, build, _ = WORLDS["sequential"]
    first, second = (jb.simulate(instance, build, replications=20, seed=s) for s in (7, 8))
    assert not np.array_equal(first.pulls, second.pulls)


def test_a_random_instance_is_drawn_from_the_replication():
    """Replication r plays the instance of its own key, whoever else is in the batch."""
    instances = [
        shuffled(jax.random.fold_in(cases.key_of(r, 7), 0xFFFFFFFF - 2)) for r in range(20)
    ]
    runs = simulate("random", 20)
    best = [int(np.argmax(instance.means)) for instance in instances]
    np.testing.assert_array_equal(runs.correct, runs.answer == best)
    assert runs.correct.mean() > 0.5
    assert len(set(best)) > 1


TWO_DEVICES = """
import os, sys
sys.path.insert(0, {tests!r})
import jax, numpy as np
import test_simulate as t
assert len(jax.devices()) == 2
for name in {names}:
    t.assert_same_runs(t.simulate(name, 9, devices=2), t.simulate(name, 9))
try:
    t.simulate("sequential", 9, devices=3)
except ValueError as error:
    assert "devices must be 1 to 2, got 3" in str(error), error
else:
    raise AssertionError
print("same")
"""


def child(code, **environment):
    """Standard output of a fresh interpreter."""
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


@pytest.mark.parametrize(
    "names", [["sequential"], pytest.param(["phased", "regret"], marks=pytest.mark.slow)], ids=str
)
def test_two_devices_equal_one(names):
    code = TWO_DEVICES.format(tests=os.path.dirname(__file__), names=names)
    flags = "--xla_force_host_platform_device_count=2"
    assert child(code, XLA_FLAGS=flags, JAX_PLATFORMS="cpu") == "same\n"


PRECISION = """
import jax, numpy as np
before = {k: v for k, v in jax.config.values.items()}
import jaxbandits as jb
from functools import partial
assert jax.config.jax_enable_x64 is False
instance = jb.instances.soare(3, angle=0.5)
runs = jb.simulate(instance, partial(jb.gse, budget=40), replications=3)
regret = jb.simulate(instance, partial(jb.glm_tsl, family="gaussian"), replications=3, horizon=5)
plan = jb.design.d_optimal(np.eye(3, dtype=np.float32))
fit = jb.fit_glm([[1.0]], [4], [3.0])
assert before == {k: v for k, v in jax.config.values.items()}
assert jax.numpy.ones(1).dtype == np.float32
tables = [instance.arms, instance.means, instance.values, instance.theta, instance.noise_var]
tables += [regret.regret, plan.weights, plan.value, fit.theta, fit.hessian]
assert {np.asarray(x).dtype for x in tables} == {np.dtype("float64")}, tables
assert runs.pulls.dtype == runs.arm_pulls.dtype == runs.answer.dtype == np.int64
random = jb.instances.logistic_cube(jax.random.key(0), 4, 2)
assert random.arms.dtype == np.float64
assert abs(fit.theta[0] - np.log(3)) < 1e-9
print("unchanged")
"""


def test_no_flag_is_changed_and_numbers_are_double():
    assert child(PRECISION, JAX_ENABLE_X64="0") == "unchanged\n"


def test_max_pulls_cuts_short():
    free = simulate("sequential", 20)
    limit = int(np.median(free.pulls))
    runs = simulate("sequential", 20, max_pulls=limit)
    ended = free.pulls <= limit
    np.testing.assert_array_equal(runs.stopped, ended)
    np.testing.assert_array_equal(runs.pulls, np.minimum(free.pulls, limit))
    digest = runs.summary()
    assert digest["cut_short"] == int((~ended).sum()) > 0
    assert digest["errors"] == int((ended & ~free.correct).sum())
    assert digest["pulls_mean_is_lower_bound"] is True
    assert free.summary()["pulls_mean_is_lower_bound"] is False
    phased = simulate("phased", 20, max_pulls=30)
    assert not phased.stopped.any()
    assert (phased.pulls == 26).all()  # stages of 13, 13 and 14


def test_an_interrupt_returns_what_is_done():
    seen = []

    def impatient(done, total):
        seen.append((done, total))
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="of 20 replications are done"):
        runs = simulate("sequential", 20, batch=7, progress=impatient)
    whole = simulate("sequential", 20)
    assert 5 <= len(runs) < 20
    assert all(total == 20 for _, total in seen)
    assert len(runs) == len(set(runs.replication)) == seen[-1][0]
    np.testing.assert_array_equal(runs.pulls, whole.pulls[runs.replication])
    np.testing.assert_array_equal(runs.answer, whole.answer[runs.replication])


def draws_nan(key):
    return jb.instances.tabular(jnp.eye(2), jnp.array([1.0, jnp.nan]) * jax.random.normal(key))


EYE = np.eye(3)
FLAT = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
BAD = {
    "means of another length": (
        lambda: jb.instances.tabular(EYE, [1.0, 0.0]),
        r"means must have shape \(3,\), got \(2,\)",
    ),
    "theta of another length": (
        lambda: jb.instances.linear(EYE, [1.0, 0.0]),
        r"theta must have shape \(3,\), got \(2,\)",
    ),
    "arms that are a vector": (
        lambda: jb.instances.linear([1.0, 0.0], [1.0]),
        r"arms must be a table \[K, d\], got shape \(2,\)",
    ),
    "targets of other dimension": (
        lambda: jb.instances.linear(EYE, EYE[0], targets=[[1.0, 0.0]]),
        "targets must have the arms' 3 features, got 2",
    ),
    "NaN features": (
        lambda: jb.instances.linear([[1.0, np.nan], [0.0, 1.0]], [1.0, 0.0]),
        r"arms must be finite, got NaN or infinity at \[0, 1\]",
    ),
    "NaN means": (
        lambda: jb.instances.tabular(EYE, [1.0, np.nan, 0.0]),
        "means must be finite, got NaN",
    ),
    "delta 0": ((SOARE, partial(jb.lingape, delta=0.0)), r"delta must be .*\(0, 1\), got 0.0"),
    "delta 1": ((SOARE, partial(jb.rage, delta=1.0)), r"delta must be .*\(0, 1\), got 1.0"),
    "delta a word": ((SOARE, partial(jb.lingape, delta="small")), "delta must be .*got 'small'"),
    "delta NaN": ((SOARE, partial(jb.lingape, delta=float("nan"))), "delta must be .*got nan"),
    "budget below the stages of gse": (
        (CANONICAL, partial(jb.gse, budget=2)),
        "budget must be at least the 3 stages, got 2",
    ),
    "budget below the stages": (
        (CANONICAL, partial(jb.sequential_halving, budget=2)),
        "budget must be at least the 3 stages, got 2",
    ),
    "budget 2.5": (
        (CANONICAL, partial(jb.gse, budget=7.5)),
        "budget must be a whole number, 1 or above, got 7.5",
    ),
    "no budget": ((CANONICAL, jb.gse), "budget"),
    "an option nobody knows": ((SOARE, partial(jb.lingape, detla=0.1)), "detla"),
    "a threshold nobody knows": (
        (SOARE, partial(jb.lingape, threshold="large")),
        "threshold must be one of .*'pairwise'.*got 'large'",
    ),
    "rage on a line": (
        (jb.instances.tabular(FLAT, [1.0, 2.0, -1.0]), jb.rage),
        r"arms must span R\^2 .*got rank 1",
    ),
    "glm_tsl on a line": (
        (jb.instances.bernoulli(FLAT, [0.2, 0.3, 0.1]), jb.glm_tsl, {"horizon": 5}),
        r"arms must span R\^2 .*got rank 1",
    ),
    "theta_norm unknown": (
        (jb.instances.tabular(EYE, [1.0, 0.0, 0.0]), jb.lingape),
        "theta_norm must be given for threshold 'pairwise', got None",
    ),
    "m too large": ((SOARE, partial(jb.m_lingape, m=4)), "m must be below the 4 arms, got 4"),
    "a callable that draws no instance": (
        (lambda key: 3, jb.lingape),
        "instance must return an Instance for a key, got",
    ),
    "an instance that is none": ((3, jb.lingape), "instance must be an Instance .*got 3"),
    "no replications": (
        (SOARE, jb.lingape, {"replications": 0}),
        "replications must be a whole number, 1 or above: 0",
    ),
    "a negative seed": ((SOARE, jb.lingape, {"seed": -1}), "seed must be .*0 or above: -1"),
    "half a batch": ((SOARE, jb.lingape, {"batch": 0.5}), "batch must be .*: 0.5"),
    "no horizon": ((CUBE, jb.glm_tsl, {"horizon": 0}), "horizon must be .*: 0"),
    "no pulls": ((SOARE, jb.lingape, {"max_pulls": 0}), "max_pulls must be .*: 0"),
}


def attempt(what):
    if callable(what):
        return what()
    instance, build, *more = what
    return jb.simulate(instance, build, **{"replications": 3, **(more[0] if more else {})})


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_before_anything_compiles(name):
    what, message = BAD[name]
    with cases.compilations() as seen, pytest.raises(ValueError, match=message):
        attempt(what)
    assert seen == []


def test_an_instance_drawn_with_nan_is_named():
    """Only the draw itself can tell."""
    with pytest.raises(ValueError, match="instance: replication 0 drew one with NaN or infinity"):
        jb.simulate(draws_nan, partial(jb.lingape, theta_norm=1.0), replications=3)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("means", np.zeros(2), r"means must have shape \(4,\), got \(2,\)"),
        ("values", np.full(4, np.nan), "values must be finite"),
        ("noise_var", np.float64(-1), "noise_var must be .*got"),
        ("arms", np.full((4, 3), np.inf), "arms must be finite"),
    ],
)
def test_an_instance_made_by_hand_is_checked(field, value, message):
    instance = dataclasses.replace(SOARE, **{field: value})
    with cases.compilations() as seen, pytest.raises(ValueError, match=message):
        jb.simulate(instance, jb.lingape, replications=3)
    assert seen == []


def test_options_that_are_bound_win():
    """Told a larger noise than the world's, LinGapE needs more draws."""
    told = simulate("sequential", 20)
    louder = partial(jb.lingape, delta=0.1, noise_var=4.0)
    believed = jb.simulate(SOARE, louder, replications=20)
    assert believed.pulls.mean() > 2 * told.pulls.mean()


def test_the_grid_of_a_regret_run():
    assert list(regret_grid(5)) == [1, 2, 3, 4, 5]
    grid = regret_grid(50_000)
    assert (grid[0], grid[-1]) == (1, 50_000)
    assert 80 <= len(grid) <= 100
    assert (np.diff(grid) > 0).all()
    runs = simulate("regret", 20)
    assert list(runs.rounds) == list(range(1, 41))
    assert runs.regret.shape == (20, 40)
