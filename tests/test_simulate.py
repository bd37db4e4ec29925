"""`simulate`: reproducible, interruptible, in double precision."""

import itertools
from functools import partial

import jax
import numpy as np
import pytest
from programs import key_of
from run_settings import SETTINGS, SOARE, assert_same_runs, child, shuffled, simulate

import jaxbandits as jb
from jaxbandits.engine.checkpoints import rounds_of

every = pytest.mark.parametrize("name", SETTINGS)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("sequential", 1),
        ("phased", 7),
        *(
            pytest.param(name, batch, marks=pytest.mark.slow)
            for name, batch in itertools.product(SETTINGS, (1, 7))
            if (name, batch) not in (("sequential", 1), ("phased", 7))
        ),
    ],
)
def test_the_batch_size_changes_nothing(name, batch):
    whole = simulate(name, 20)
    assert list(whole.replication) == list(range(20))
    assert len({tuple(row) for row in whole.arm_pulls}) > 10  # not twenty times the same run
    assert_same_runs(simulate(name, 20, batch=batch), whole)


@pytest.mark.parametrize(
    "name",
    ["sequential", *(pytest.param(name, marks=pytest.mark.slow) for name in list(SETTINGS)[1:])],
)
def test_a_batch_nearly_as_large_as_all_changes_nothing(name):
    assert_same_runs(simulate(name, 70, batch=64), simulate(name, 70))


@every
def test_more_replications_change_nothing(name):
    few, many = simulate(name, 10, batch=7), simulate(name, 20)
    for table in ("pulls", "answer", "correct", "arm_pulls"):
        np.testing.assert_array_equal(getattr(few, table), getattr(many, table)[:10])
    if few.regret is not None:
        np.testing.assert_allclose(few.regret, many.regret[:10], rtol=1e-9, atol=1e-9)


def test_another_seed_gives_other_runs():
    instance, build, _ = SETTINGS["sequential"]
    first, second = (jb.simulate(instance, build, replications=20, seed=s) for s in (7, 8))
    assert not np.array_equal(first.pulls, second.pulls)


def test_a_random_instance_is_drawn_by_the_key_of_the_replication():
    """Replication r plays the instance of its own key, whatever else is in the batch."""
    instances = [shuffled(jax.random.fold_in(key_of(r, 7), 0xFFFFFFFF - 2)) for r in range(20)]
    runs = simulate("random", 20)
    best = [int(np.argmax(instance.means)) for instance in instances]
    np.testing.assert_array_equal(runs.correct, runs.answer == best)
    assert runs.correct.mean() > 0.5
    assert len(set(best)) > 1


@pytest.mark.parametrize(
    "name", ["sequential", *(pytest.param(n, marks=pytest.mark.slow) for n in ("phased", "regret"))]
)
def test_two_devices_equal_one(name):
    assert_same_runs(simulate(name, 9, devices=2), simulate(name, 9))


def test_more_devices_than_there_are_are_refused():
    with pytest.raises(ValueError, match="devices must be 1 to 4, got 5"):
        simulate("sequential", 9, devices=5)


PRECISION = """
import jax, numpy as np
before = {k: v for k, v in jax.config.values.items()}
import jaxbandits as jb
from functools import partial
assert jax.config.jax_enable_x64 is False
instance = jb.instances.soare(3, angle=0.5)
runs = jb.simulate(instance, partial(jb.gse, budget=40), replications=3)
gaussian = partial(jb.glm_tsl, family="gaussian")
regret = jb.simulate(instance, gaussian, replications=3, horizon=5, engine="xla")
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


def test_an_interrupt_returns_the_finished_replications():
    seen = []

    def impatient(done, total):
        seen.append((done, total))
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="of 2000 replications are done"):
        runs = simulate("sequential", 2000, batch=7, progress=impatient)
    whole = simulate("sequential", 2000, batch=7)
    assert 5 <= len(runs) < 2000
    assert all(total == 2000 for _, total in seen)
    assert len(runs) == len(set(runs.replication)) == seen[-1][0]
    np.testing.assert_array_equal(runs.pulls, whole.pulls[runs.replication])
    np.testing.assert_array_equal(runs.answer, whole.answer[runs.replication])


def test_bound_options_override_those_of_the_instance():
    """With a larger noise variance than the environment's, LinGapE needs more draws."""
    right = simulate("sequential", 20)
    louder = partial(jb.lingape, delta=0.1, noise_var=4.0)
    believed = jb.simulate(SOARE, louder, replications=20)
    assert believed.pulls.mean() > 2 * right.pulls.mean()


def test_the_recorded_rounds_of_a_regret_run():
    assert list(rounds_of("mixed", 5)) == [1, 2, 3, 4, 5]
    grid = rounds_of("mixed", 50_000)
    assert (grid[0], grid[-1]) == (1, 50_000)
    assert 80 <= len(grid) <= 100
    assert (np.diff(grid) > 0).all()
    runs = simulate("regret", 20)
    assert list(runs.rounds) == list(range(1, 41))
    assert runs.regret.shape == (20, 40)


@pytest.mark.parametrize(
    "record",
    [
        "even",
        [1, 7, 300],
        *(pytest.param(r, marks=pytest.mark.slow) for r in ("log", range(1, 500, 2))),
    ],
)
def test_regret_is_recorded_where_it_is_asked_for(record):
    instance, build, _ = SETTINGS["regret"]
    play = partial(jb.simulate, instance, build, replications=8, horizon=500)
    runs, whole = play(record=record), play(record=range(1, 501))
    assert whole.regret.shape == (8, 500)
    np.testing.assert_allclose(runs.regret, whole.regret[:, runs.rounds - 1], rtol=1e-9)
    if isinstance(record, str):
        steps = np.diff(np.log(runs.rounds) if record == "log" else runs.rounds)
        assert 50 < len(runs.rounds) <= 100
        assert steps[-20:].max() < 1.5 * steps[-20:].min()
    else:
        assert runs.rounds.tolist() == list(record)


@pytest.mark.parametrize("record", ["dense", [], [3, 3], [0, 2], [2, 41], [1.5], 7, "log"])
def test_bad_rounds_are_named(record):
    instance, build, _ = SETTINGS["regret"]
    horizon = None if record == "log" else 40
    with pytest.raises(ValueError, match=r"record (must be|is for runs with a horizon)"):
        jb.simulate(instance, build, replications=2, horizon=horizon, record=record)


def test_a_constructor_of_one_instance_is_called():
    algorithm = partial(jb.sequential_halving, budget=40)
    build = partial(jb.instances.canonical, 4, gap=1.0)
    assert_same_runs(
        jb.simulate(build, algorithm, replications=20),
        jb.simulate(build(), algorithm, replications=20),
    )
    with pytest.raises(ValueError, match="unknown option of canonical 'gab'; did you mean 'gap'"):
        jb.simulate(partial(jb.instances.canonical, 4, gab=1.0), algorithm, replications=20)
    with pytest.raises(ValueError, match="instance must be"):
        jb.simulate(lambda: 3, algorithm, replications=20)
