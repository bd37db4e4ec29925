"""Contextual instances obey the laws of all other instances."""

import dataclasses
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations, refused
from params import params
from programs import key_of
from run_settings import assert_same_runs
from test_protocol import assert_same

import jaxbandits as jb
from jaxbandits.engine import choices, episode
from jaxbandits.instances.environments.contextual import contextual
from jaxbandits.report import table
from jaxbandits.sweeps import groups
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.spec import planned

RNG = np.random.default_rng(1)
POINTS, LABELS = RNG.normal(size=(60, 5)), RNG.integers(0, 3, 60)
INSTANCE = jb.instances.labelled(POINTS, LABELS, shown=4)
BUILD = partial(jb.deep_fpl, a=1.0, hidden=6, batch=8, rate=0.02)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@cache
def simulated(build=BUILD, **options):
    return jb.simulate(INSTANCE, build, **{"replications": 20, "horizon": 150} | options)


@pytest.mark.parametrize(
    "options",
    params(
        [{"batch": 1}, {"batch": 3}, {"batch": 17}, {"engine": "native"}], always=["{'batch': 3}"]
    ),
    ids=str,
)
def test_lanes_and_engines_change_nothing(options):
    other = simulated(**options)
    assert_same_runs(simulated(), other)
    assert other.meta["engine"] == {"cpu": "in turn"}.get(jax.default_backend(), "together")
    assert simulated().regret[:, -1].std() > 0
    assert 0.5 < other.meta["lane_use"] <= 1.0


def test_a_replication_does_not_depend_on_the_others():
    alone = jb.results.first_of(simulated(), 7)
    assert_same_runs(alone, simulated(replications=7))


def test_no_error_rate_is_shown_where_each_round_has_another_best_arm():
    shown = repr(simulated())
    assert "error rate" not in shown
    assert "regret" in shown
    summary = simulated().summary()
    assert np.isnan(summary["error_rate"])
    assert (summary["errors"], summary["error_low"], summary["error_high"]) == (0, 0.0, 1.0)


def test_a_table_of_a_sweep_and_a_comparison_leave_its_error_rate_open():
    swept = jb.sweep({"labelled": INSTANCE}, {"a": BUILD}, horizon=150, replications=20)
    header, (row,) = table.rows(swept)
    shown = dict(zip(header, row, strict=True))
    assert (shown["errors"], shown["error rate [95%]"]) == ("-", "-")
    assert float(shown["regret ± 95%"].partition(" ")[0]) > 0
    compared = jb.compare({"a": BUILD}, INSTANCE, horizon=150, replications=20)
    name, regret, *_, errors = repr(compared).splitlines()[2].split()
    assert (name, errors) == ("a", "-")
    assert float(regret) > 0


def test_a_longer_run_begins_as_a_shorter_one():
    short, long = simulated(), simulated(horizon=190)
    np.testing.assert_array_equal(short.regret, long.regret[:, :150])
    assert (long.arm_pulls >= short.arm_pulls).all()
    np.testing.assert_array_equal(long.arm_pulls.sum(1), 190)


def one_replication(target):
    """Compiled `start` and `advance` of a replication whose target is this class."""
    instance = jb.instances.labelled(POINTS, LABELS, shown=4, target=target)

    def parts():
        return contextual(instance), BUILD(jnp.asarray(POINTS))

    begin = jax.jit(lambda key: episode.start(key, *parts()))
    return begin, jax.jit(lambda run, rounds: episode.advance(run, *parts(), rounds))


def test_a_run_advanced_in_parts_equals_the_simulation():
    begin, go = one_replication(2)
    run = begun = begin(key_of(5))
    for rounds in (50, 30, 70):
        run = go(run, rounds)
    assert_same(run, go(begun, 150))
    runs = simulated()
    assert int(INSTANCE.target_of(5)) == 2
    np.testing.assert_array_equal(run.arm_pulls, runs.arm_pulls[5])
    np.testing.assert_allclose(run.regret, runs.regret[5, -1])
    assert float(run.state.total) == runs.info["reward"][5]


def test_asking_twice_gives_the_same_context_and_move():
    begin, go = one_replication(0)
    run = go(begin(key_of(0)), 20)
    env, algorithm = contextual(INSTANCE), BUILD(jnp.asarray(POINTS))
    ask = jax.jit(lambda run: episode.ask(run.key, run.rounds, run.state, env, algorithm))
    (shown,), move = ask(run)
    assert_same(((shown,), move), ask(run))
    assert shown.shape == (4,)
    assert int(move.info[1]) == int(shown[move.arm])


def test_other_numbers_compile_nothing():
    simulated()
    rng = np.random.default_rng(8)
    other = jb.instances.labelled(rng.normal(size=(60, 5)), LABELS, shown=4, high=0.8, low=0.1)
    build = partial(BUILD, a=0.3, rate=0.1)
    with compilations() as seen:
        runs = jb.simulate(other, build, replications=20, horizon=150)
    assert seen == []
    assert not np.array_equal(runs.regret, simulated().regret)


def test_contexts_rewards_and_regret_have_their_distribution():
    """Examples are drawn uniformly, with replacement."""
    instance = jb.instances.labelled(POINTS, LABELS, shown=4, target=1, high=0.8, low=0.3)
    env, number = contextual(instance), 20_000
    keys = jax.random.split(jax.random.key(0), number)
    (shown,) = jax.jit(jax.vmap(env.context))(keys)
    counts = np.bincount(np.ravel(shown), minlength=60)
    assert ((counts - 4 * number / 60) ** 2 / (4 * number / 60)).sum() < 110  # chi^2, 59 degrees
    assert any(len(set(row.tolist())) < 4 for row in np.asarray(shown)[:500])
    move = jb.Move(jnp.array(2), None, jnp.array(False), 0)
    noise = env.noise(jax.random.key(1), (number,), False)
    rewards = np.asarray(jax.vmap(lambda z, s: env.reward(z, move, s))(noise, shown))
    expected = np.where(LABELS[np.asarray(shown)] == 1, 0.8, 0.3)
    assert abs((rewards - expected[:, 2]).mean()) < 5 * 0.5 / np.sqrt(number)
    assert set(rewards) == {0.0, 1.0}
    lost = jax.vmap(lambda s: env.regret(move, s))(shown)
    np.testing.assert_allclose(lost, expected.max(1) - expected[:, 2])
    assert abs(expected.max(1).mean() - instance.best_average()) < 5 * 0.25 / np.sqrt(number)


@pytest.mark.slow
def test_target_classes_are_balanced_and_the_average_reward_agrees_with_the_rewards():
    runs = simulated(replications=300)
    assert np.bincount(INSTANCE.target_of(runs.replication)).tolist() == [100, 100, 100]
    expected = INSTANCE.average_reward(runs)
    assert expected.shape == runs.regret.shape
    paid = runs.info["reward"] / 150
    difference = paid - expected[:, -1]
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(300)
    assert difference.std() > 0
    assert runs.correct.all()


REFUSED = {
    "no horizon": ((INSTANCE, BUILD), "horizon must be given for a contextual instance"),
    "arms, not examples": (
        (jb.instances.canonical(4, gap=1.0), BUILD, {"horizon": 5}),
        "instance must be contextual for deep_fpl",
    ),
    "examples, not arms": (
        (INSTANCE, jb.lin_ucb, {"horizon": 5}),
        "instance is contextual, but lin_ucb is shown nothing",
    ),
    "arms at a budget": (
        (INSTANCE, jb.at_budget(jb.lin_ucb, 20), {"horizon": 30}),
        "instance is contextual, but .* is shown nothing",
    ),
    "examples at a budget": (
        (jb.instances.canonical(4, gap=1.0), jb.at_budget(jb.deep_fl, 20), {"horizon": 30}),
        "instance must be contextual for ",
    ),
    "activation": (
        (INSTANCE, partial(jb.deep_fl, activation="sine"), {"horizon": 5}),
        "activation must be one of 'relu', 'tanh', got 'sine'",
    ),
    "noise": ((INSTANCE, partial(BUILD, noise="none"), {"horizon": 5}), "noise must be one of"),
    "hidden": ((INSTANCE, partial(BUILD, hidden=0), {"horizon": 5}), "hidden must be a whole"),
    "rate": ((INSTANCE, partial(BUILD, rate=0.0), {"horizon": 5}), "rate must be a finite number"),
    "a": ((INSTANCE, partial(BUILD, a=-1.0), {"horizon": 5}), "a must be a finite number, 0 or"),
    "precision": (
        (INSTANCE, partial(BUILD, precision="half"), {"horizon": 5}),
        "precision must be",
    ),
    "drawn": (
        (lambda key: INSTANCE, BUILD, {"horizon": 5}),
        "instance must return an Instance for a key, got Labelled",
    ),
    "drawn examples": (
        (lambda key: jb.instances.labelled(jax.random.normal(key, (9, 2)), LABELS[:9]), BUILD),
        "features and labels must be known",
    ),
    "another target": (
        (dataclasses.replace(INSTANCE, target=np.int64(9)), BUILD, {"horizon": 5}),
        r"target must be one of the labels \[0, 1, 2\], got",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsuitable_instances_and_options_are_refused_before_compiling(name):
    refused(*REFUSED[name])


def other_instance():
    return jb.instances.labelled(POINTS[::-1], LABELS, shown=4)


def test_cells_of_a_sweep_share_their_program_and_equal_simulate():
    build = partial(jb.deep_fpl, hidden=6, batch=8, rate=0.02)
    with compilations() as seen:
        found = jb.sweep(
            {"points": INSTANCE, "others": other_instance()},
            {"DeepFPL": build},
            axes={"a": [1.0, 0.4]},
            replications=20,
            horizon=150,
        )
    assert sum(seconds > 0.5 for seconds in seen) <= 1  # one program runs all four
    one = found.regret.sel(instance="points", algorithm="DeepFPL")
    np.testing.assert_allclose(one.sel(a=1.0), simulated().regret)
    assert not np.array_equal(one.sel(a=0.4), simulated().regret)
    assert (found.num_arms == 4).all()


def test_cells_with_large_data_sets_are_not_grouped(monkeypatch):
    sizes = {"replications": 20, "horizon": 150}
    plan = planned({"points": INSTANCE, "others": other_instance()}, {"DeepFPL": BUILD}, **sizes)
    assert [len(group.cells) for group in groups.groups_of(plan, cells_of(plan))] == [2]
    monkeypatch.setattr(groups, "MOST_BYTES", POINTS.nbytes - 1)
    assert [len(group.cells) for group in groups.groups_of(plan, cells_of(plan))] == [1, 1]


@pytest.mark.slow
def test_the_batched_program_of_accelerators_gives_the_same_runs(monkeypatch):
    build = partial(BUILD, precision="double")
    in_turn = simulated(build=build)
    monkeypatch.setattr(choices, "engine_for", lambda *_: "together")
    together = simulated(build=build, seed=0)
    assert_same_runs(in_turn, together)


@pytest.mark.slow
def test_neither_lanes_nor_batching_change_a_learnt_representation(monkeypatch):
    build = partial(jb.rep_glm_fpl, hidden=6, batch=8, refresh=7, precision="double")
    in_turn = simulated(build=build)
    assert not in_turn.info["unconverged"].any()
    assert_same_runs(in_turn, simulated(build=build, batch=3))
    monkeypatch.setattr(choices, "engine_for", lambda *_: "together")
    assert_same_runs(in_turn, simulated(build=build, seed=0))


def test_the_average_reward_needs_all_rounds():
    ended = dataclasses.replace(simulated(), pulls=np.full(20, 25))
    with pytest.raises(ValueError, match="go on to round 150, got one that ended after 25"):
        INSTANCE.average_reward(ended)


def test_rewards_without_noise():
    instance = jb.instances.labelled(POINTS, LABELS, shown=4, high=1.0, low=0.0)
    runs = jb.simulate(instance, BUILD, replications=20, horizon=150)
    best = np.array([instance.best_average(r) for r in range(20)])
    assert runs.info["reward"].sum() > 0
    assert (runs.info["reward"] + runs.regret[:, -1] <= 150).all()
    assert abs(((runs.info["reward"] + runs.regret[:, -1]) / 150 - best).mean()) < 0.02


def test_a_network_that_is_not_finite_is_reported():
    """Features beyond the range of single precision."""
    instance = jb.instances.labelled(1e100 * POINTS, LABELS, shown=4)
    runs = jb.simulate(instance, BUILD, replications=20, horizon=150)
    assert (runs.info["nonfinite"] > 100).all()
    assert not simulated().info["nonfinite"].any()
