"""`watched` draws as the algorithm does, and counts the events of its regret theorem."""

from functools import partial

import jax
import numpy as np
import pytest
from params import params
from scipy import stats

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.sweeps import parse, run
from jaxbandits.theory import glm_fpl_regret_bound, glm_tsl_regret_bound

HORIZON = 300
COUNTED = {"rounds", "near", "shaken", "raised", "widths"}
ALGORITHMS = {"glm_tsl": jb.glm_tsl, "glm_fpl": jb.glm_fpl}
# Random parameters are normal about the estimate here, with standard deviation c_1.
GAUSSIAN = jb.instances.glm(
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.3, 0.9]],
    [0.5, 0.2, 0.1],
    family="gaussian",
)


@pytest.mark.parametrize("name", params(ALGORITHMS, slow=["glm_fpl"]))
def test_watched_draws_what_the_algorithm_draws(name):
    instance = partial(jb.instances.logistic_cube, num_arms=6, dim=3)
    options = {"horizon": 80, "replications": 20, "seed": 3}
    plain = jb.simulate(instance, ALGORITHMS[name], **options)
    seen = jb.simulate(instance, jb.watched(ALGORITHMS[name]), **options)
    np.testing.assert_array_equal(seen.arm_pulls, plain.arm_pulls)
    np.testing.assert_array_equal(seen.regret, plain.regret)
    assert seen.info.keys() == plain.info.keys() | COUNTED
    for key, values in plain.info.items():
        np.testing.assert_array_equal(seen.info[key], values)
    np.testing.assert_array_equal(seen.info["rounds"], 80 - 3)


def constants(name, horizon, num_arms, dim, sigma=0.5, slope=0.25):
    """`c_1, c_2` in plain Python, for equal slopes."""
    first = sigma / slope * np.sqrt(dim * np.log(horizon / dim) + 2 * np.log(horizon))
    return first, first * np.sqrt(2 * np.log(num_arms * horizon))


@pytest.mark.parametrize("name", params(ALGORITHMS, slow=["glm_tsl"]))
def test_counts_are_those_of_a_plain_calculation(name):
    with jax.enable_x64(True):
        theta = np.array([1.5, -0.4, 0.2])
        arms = np.random.default_rng(4).normal(size=(7, 3))
        # Small c_1 and c_2, so that each event happens in some rounds and not in others.
        options = {"family": "logistic", "noise_var": 0.03, "horizon": 60, "ridge": 1.0}
        options["a"] = {"glm_tsl": 1.7, "glm_fpl": 0.85}[name]
        build = partial(jb.watched(ALGORITHMS[name]), arms, theta=theta, **options)
        init = jax.jit(lambda key: build().init(key))
        ask = jax.jit(lambda key, state: build().ask(key, state))
        tell = jax.jit(lambda state, move, reward: build().tell(state, move, reward))
        near, shaken = constants(name, 60, 7, 3, sigma=np.sqrt(0.03))
        key, rng = jax.random.key(1), np.random.default_rng(5)
        state = init(key)
        found, gram = np.zeros(5), np.zeros((3, 3))
        for t in range(60):
            move = ask(episode.ask_key(key, t), state)
            arm, (_, round_info) = int(move.arm), move.info
            if t >= 3:
                widths = np.sqrt(np.einsum("kd,de,ke->k", arms, np.linalg.inv(gram), arms))
                estimate, drawn = np.asarray(state.inner.fit.theta), np.asarray(round_info.theta)
                best = (arms @ theta).argmax()
                assert arm == (arms @ drawn).argmax()
                found += [
                    1,
                    (abs(arms @ (estimate - theta)) <= near * widths).all(),
                    (abs(arms @ (drawn - estimate)) <= shaken * widths).all(),
                    arms[best] @ (drawn - estimate) > near * widths[best],
                    widths[arm],
                ]
            gram += np.outer(arms[arm], arms[arm])
            reward = float(rng.random() < 1 / (1 + np.exp(-arms[arm] @ theta)))
            state = tell(state, move, reward)
    np.testing.assert_allclose([float(x) for x in state.events], found, rtol=1e-9)
    rounds, *events = found[:4]
    assert all(0 < happened < rounds for happened in events)


def shares(build, **options):
    """Shares of the observed rounds, and the p-value of `raised` if samples are normal."""
    algorithm = partial(jb.watched(build), family="gaussian", **options)
    runs = jb.simulate(GAUSSIAN, algorithm, horizon=HORIZON, replications=200, seed=8)
    raised, rounds = runs.info["raised"].sum(), runs.info["rounds"].sum()
    assert rounds == 200 * (HORIZON - 3)
    chance = stats.binomtest(int(raised), int(rounds), stats.norm.sf(1.0)).pvalue
    assert runs.info["widths"].max() < np.sqrt(2 * 3 * HORIZON * np.log(2 * HORIZON / 3))
    return {name: runs.info[name].sum() / rounds for name in COUNTED}, chance


def test_the_bound_of_the_widths():
    # The lemma behind it is for arms of norm 1 at most.
    assert np.linalg.norm(GAUSSIAN.arms, axis=1).max() <= 1
    most = np.sqrt(2 * 3 * HORIZON * np.log(2 * HORIZON / 3))
    for bound in (glm_tsl_regret_bound, glm_fpl_regret_bound):
        assert bound(GAUSSIAN, HORIZON).widths == pytest.approx(most)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_events_have_the_probabilities_of_the_theorem(name):
    # The value of `a="theory"` for slopes and noise 1. As a number it shares the program of the
    # test below; `test_named_scales_are_those_numbers` tests the name.
    found, chance = shares(ALGORITHMS[name], a=constants(name, HORIZON, 4, 3, 1.0, 1.0)[0])
    assert chance > 1e-3
    assert found["raised"] > 0.15
    assert 1 - found["near"] < 1 / HORIZON
    assert 1 - found["shaken"] < {"glm_tsl": 1, "glm_fpl": 2}[name] / HORIZON


def test_with_a_smaller_scale_raised_is_too_rare():
    found, chance = shares(jb.glm_tsl, a=1.0)
    assert chance < 1e-6
    assert found["raised"] < 0.15


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (lambda: jb.watched(jb.glm_ucb), "algorithm must be glm_tsl or glm_fpl, got glm_ucb"),
        (lambda: jb.watched(3), "algorithm must be glm_tsl or glm_fpl, got 3"),
        (lambda: jb.simulate(GAUSSIAN, jb.watched(jb.glm_tsl), replications=3), "horizon must be"),
        (lambda: jb.watched(jb.glm_tsl)(np.eye(2), horizon=9), "theta must be given"),
        (
            lambda: jb.watched(jb.glm_tsl)(np.eye(2), horizon=9, theta=np.ones(3)),
            r"theta must have shape \(2,\), got \(3,\)",
        ),
        (lambda: partial(jb.watched(jb.glm_tsl), a=-1.0)(np.eye(2), horizon=9), "a must be"),
        (
            lambda: jb.watched(jb.glm_tsl)(np.eye(2), horizon=9, theta=[1, 0], family="none"),
            "family must be",
        ),
        (
            lambda: jb.simulate(
                jb.instances.bernoulli(np.eye(2), [0.1, 0.9]),
                jb.watched(jb.glm_tsl),
                horizon=9,
                replications=3,
            ),
            r"no parameter that watched\(glm_tsl\) could be told: bind theta",
        ),
    ],
)
def test_bad_arguments_are_refused(play, message):
    with pytest.raises(ValueError, match=message):
        play()


def test_a_sweep_may_use_watched():
    table = {
        "replications": 5,
        "horizon": 40,
        "instances": {"cube": {"name": "logistic_cube", "num_arms": 5, "dim": 2}},
        "algorithms": {"seen": {"name": "watched", "algorithm": "glm_tsl", "a": "theory"}},
    }
    dataset = run(parse(table))
    np.testing.assert_array_equal(dataset.info_rounds, 40 - 2)
    assert dataset.info_raised.sum() > 0


@pytest.mark.slow
def test_nothing_is_counted_where_arms_do_not_span():
    def flat(key):
        return jb.instances.linear([[1.0, 0.0], [0.5, 0.0]], jax.random.normal(key, (2,)))

    algorithm = partial(jb.watched(jb.glm_tsl), family="gaussian")

    def unchecked(arms, *, theta, horizon):
        return algorithm(arms, theta=theta, horizon=horizon)

    runs = jb.simulate(flat, unchecked, horizon=20, replications=3)
    assert all((runs.info[name] == 0).all() for name in COUNTED)
    with pytest.raises(ValueError, match="replication 0 drew arms that do not span"):
        jb.simulate(flat, algorithm, horizon=20, replications=3)
