"""`at_budget`: any algorithm, stopped once its budget is spent."""

import pickle
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import twins
from counting import compilations
from hands import Hand, linear_problem, normal_rewards, same_arm
from hypothesis import given, settings
from hypothesis import strategies as st
from run_settings import SOARE, assert_same_runs, child

import jaxbandits as jb
from jaxbandits.algorithms.wrappers.budgeted import Budgeted, cut
from jaxbandits.system.identity import describe, stored_name

LINGAPE = partial(jb.lingape, delta=0.1)
MORE = {"replications": 40, "seed": 3}


class LinGapE(twins.LinGapE):
    """LinGapE that stops only at its budget: no gap meets its own stopping rule."""

    def __init__(self, arms, *, budget, **options):
        super().__init__(arms, epsilon=-np.inf, **options)
        self.budget = budget

    def ask(self):
        _, answer, arm = super().ask()
        done = self.pulls.draws == self.budget
        return done, answer, None if done else arm


def test_draws_follow_the_paper_until_the_budget_is_spent():
    names = ("budget", "delta", "noise_var", "theta_norm", "v0")
    with jax.enable_x64(True):
        hand = Hand(jb.at_budget(jb.lingape), *names)
        for seed, numbers in enumerate([(70, 0.9, 0.05, 1.0, 1.0), (33, 0.2, 1.5, 1.3, 0.2)]):
            rng, arms, theta = linear_problem(seed, 5, 3)
            twin = LinGapE(arms, **dict(zip(names, numbers, strict=True)))
            facts = (jnp.asarray(arms), None, numbers)
            reward = normal_rewards(rng, arms @ theta, numbers[2])
            key = jax.random.key(seed)
            played, _ = hand.play(twin, facts, reward, key, compare=same_arm)
            assert played == numbers[0]
            if seed == 0:  # the paper's own stopping rule holds by then
                assert twins.LinGapE.ask(twin)[0] is False
                twin.epsilon = 0.0
                assert twins.LinGapE.ask(twin)[0] is True


def test_each_round_after_the_budget_has_the_regret_of_the_answer():
    """Also in later blocks of rounds than the one in which the budget ends."""
    alone = jb.simulate(SOARE, jb.lin_ucb, horizon=100, **MORE)
    runs = jb.simulate(SOARE, jb.at_budget(jb.lin_ucb, 20), horizon=100, **MORE)
    np.testing.assert_allclose(runs.regret[:, :20], alone.regret[:, :20])
    gaps = SOARE.means.max() - SOARE.means
    each = np.repeat(gaps[runs.answer][:, None], 80, 1)
    np.testing.assert_allclose(np.diff(runs.regret[:, 19:]), each, atol=1e-9)
    np.testing.assert_allclose(runs.regret[:, -1], runs.arm_pulls @ gaps)
    assert (gaps[runs.answer] > 0).any()
    assert set(runs.pulls) == {100}


def test_pulls_are_those_of_the_algorithm_alone():
    """Equal where the algorithm alone has not stopped; more draws where it has."""
    easy, stopped = jb.instances.soare(3, angle=0.9, scale=2.0, noise_var=0.2), []
    for budget in (3, 45, 60):
        bounded = jb.simulate(easy, jb.at_budget(LINGAPE, budget), **MORE)
        alone = jb.simulate(easy, LINGAPE, max_pulls=budget, **MORE)
        going = ~alone.stopped
        np.testing.assert_array_equal(bounded.arm_pulls[going], alone.arm_pulls[going])
        assert (bounded.arm_pulls >= alone.arm_pulls).all()
        assert set(bounded.pulls) == {budget}
        stopped.append(alone.stopped.sum())
    assert stopped[0] == 0
    assert 0 < stopped[1] < stopped[2]


def test_another_budget_or_an_equal_wrapper_compiles_nothing():
    def play(budget, delta, **options):
        build = jb.at_budget(partial(jb.lingape, delta=delta), budget, **options)
        with compilations() as seen:
            runs = jb.simulate(SOARE, build, **MORE)
        assert set(runs.pulls) == {budget}
        return len(seen)

    assert play(21, 0.1) >= 0
    assert play(34, 0.2) == 0
    assert play(34, 0.2, answer="most_pulled") >= 1
    assert Budgeted(jb.lingape) == Budgeted(jb.lingape) != Budgeted(jb.rage)


few = settings(max_examples=200, deadline=None, derandomize=True)


@few
@given(st.lists(st.integers(0, 40), min_size=5, max_size=5), st.integers(0, 220))
def test_a_phase_is_cut_in_proportion(counts, rest):
    with jax.enable_x64(True):
        found, fits = jitted(jnp.array(counts), jnp.array(rest))
    found, total, used = np.asarray(found), sum(counts), sum(n > 0 for n in counts)
    assert bool(fits) == (rest > 0 and rest >= min(total, used))
    assert found.sum() == (min(total, rest) if fits else 0)
    if fits:
        assert ((found > 0) == (np.array(counts) > 0)).all()
        assert (found <= counts).all()
        share = (rest - used) / max(1, total - used)
        even = [n if total <= rest else min(n, 1) + share * max(0, n - 1) for n in counts]
        assert np.abs(found - even).max() < 1


jitted = jax.jit(cut)


def rounds_of_ten(arms):
    """Phases of 10, 20 and 30 draws of each arm alive; each eliminates the arm of least mean.

    Arms whose mean is not above 0 are eliminated too, so that some runs end earlier.
    """

    def ask(key, state):
        alive, phase, answer = state
        count = jnp.where(alive, 10, 0) * (phase + 1)
        return jb.Move(jnp.arange(4), count, (alive.sum() <= 1) | (phase > 2), answer)

    def tell(state, move, total):
        alive, phase, _ = state
        means = jnp.where(alive, total / jnp.maximum(move.count, 1), jnp.inf)
        alive = alive & (jnp.arange(4) != means.argmin()) & (means > 0.0)
        return alive, phase + 1, jnp.where(alive, means, -jnp.inf).argmax()

    zero = jnp.zeros((), int)
    return jb.Algorithm(lambda key: (jnp.ones(4, bool), zero, zero), ask, tell)


def test_phases_that_fit_are_whole_and_the_last_one_is_cut():
    """A run that ends by itself before the budget is unchanged."""
    alone = jb.simulate(SOARE, rounds_of_ten, **MORE)
    first, last = alone.pulls.min(), alone.pulls.max()
    assert 40 < first < last
    for budget in (last, last - 1, 70, 33, 4):
        runs = jb.simulate(SOARE, jb.at_budget(rounds_of_ten, budget), **MORE)
        np.testing.assert_array_equal(runs.pulls, np.minimum(alone.pulls, budget))
        whole = alone.pulls <= budget
        np.testing.assert_array_equal(runs.arm_pulls[whole], alone.arm_pulls[whole])
        np.testing.assert_array_equal(runs.answer[whole], alone.answer[whole])
        if budget == 33:
            np.testing.assert_array_equal(np.sort(runs.arm_pulls), np.tile([8, 8, 8, 9], (40, 1)))
    none = jb.simulate(SOARE, jb.at_budget(rounds_of_ten, 3), **MORE)
    assert set(none.pulls) == {0}


@pytest.mark.slow
def test_before_the_first_phase_no_arm_is_preferred():
    """The best arm has index 0; an algorithm without rewards must not prefer it."""
    runs = jb.simulate(SOARE, jb.at_budget(jb.rage, 1), replications=400)
    assert set(runs.pulls) == {0}
    assert np.bincount(runs.answer, minlength=4).min() > 60


def in_turn(arms, *, horizon=None, believed=2):
    """Draws the arms in turn; answers `believed`, or `horizon % 4` where that is None."""
    answer = believed if believed is not None else horizon % 4

    def ask(key, state):
        return jb.Move(state % 4, None, jnp.array(True), jnp.asarray(answer))

    return jb.Algorithm(lambda key: jnp.zeros((), int), ask, lambda state, move, total: state + 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        jb.at_budget(LINGAPE, 50),
        jb.at_budget(jb.lin_ucb, 50),
        jb.at_budget(jb.lin_ts, 50),
        jb.at_budget(jb.ucb_glm, 50),
        jb.at_budget(jb.rage, 50),
        partial(jb.bayes_gap, budget=50),
    ],
    ids=["lingape", "lin_ucb", "lin_ts", "ucb_glm", "rage", "bayes_gap"],
)
def test_the_batch_size_changes_nothing(build):
    """On unit vectors, whose indices tie in the first round."""
    sphere = partial(jb.instances.sphere, num_arms=6, dim=3, mix=0.3)
    one, other = (jb.simulate(sphere, build, batch=batch, **MORE) for batch in (None, 8))
    assert_same_runs(one, other)


@pytest.mark.parametrize(
    ("budget", "answers"), [(9, [0]), (11, [2]), (12, [2]), (14, [0, 1]), (2, [0, 1])]
)
def test_most_pulled_answers_the_arm_drawn_most_often(budget, answers):
    """Of arms drawn equally often: the algorithm's own answer, else one of them at random."""
    build = jb.at_budget(in_turn, budget, answer="most_pulled")
    runs = jb.simulate(SOARE, build, **MORE)
    assert set(runs.answer) == set(answers)
    assert set(runs.pulls) == {budget}


def test_a_phase_cut_short_prefers_no_arm():
    """33 draws instead of 40: the one arm that is drawn more often than the others is answered."""
    build = jb.at_budget(rounds_of_ten, 33, answer="most_pulled")
    runs = jb.simulate(SOARE, build, replications=400)
    np.testing.assert_array_equal(runs.answer, runs.arm_pulls.argmax(1))
    assert np.bincount(runs.answer, minlength=4).min() > 60


def test_an_algorithm_with_an_option_budget_gets_the_budget():
    canonical = jb.instances.canonical(4, gap=1.0)
    own = jb.simulate(canonical, partial(jb.sequential_halving, budget=40), **MORE)
    given = jb.simulate(canonical, jb.at_budget(jb.sequential_halving, per_arm=10), **MORE)
    np.testing.assert_array_equal(own.arm_pulls, given.arm_pulls)
    np.testing.assert_array_equal(own.answer, given.answer)


@pytest.mark.parametrize(("options", "answer"), [({}, 3), ({"horizon": np.int64(41)}, 1)])
def test_an_algorithm_with_an_option_horizon_gets_the_budget_as_its_horizon(options, answer):
    """A horizon that the user gives is kept."""
    build = jb.at_budget(partial(in_turn, believed=None, **options), 7)
    assert set(jb.simulate(SOARE, build, **MORE).answer) == {answer}


def test_an_unused_stopping_rule_is_not_optimised_away():
    """XLA crashed on what it had left of LinGame's stopping rule."""
    runs = jb.simulate(SOARE, jb.at_budget(jb.lin_game, 30), **MORE)
    assert set(runs.pulls) == {30}


def test_an_algorithm_that_answers_a_set_can_be_wrapped():
    build = jb.at_budget(partial(jb.m_lingape, m=2), per_arm=8)
    runs = jb.simulate(SOARE, build, **MORE)
    assert set(runs.pulls) == {32}
    assert (runs.answer.sum(1) == 2).all()
    with pytest.raises(ValueError, match="answer must be 'inner' for an algorithm that answers"):
        jb.simulate(SOARE, partial(build, answer="most_pulled"), **MORE)


def test_a_live_run_stops_at_the_budget():
    live = jb.Live(jb.at_budget(LINGAPE, 9), np.eye(2), theta_norm=1.0)
    while not live.done:
        live.tell([1.0, 0.0][live.ask()])
    assert (live.pulls, live.answer) == (9, 0)


NAME = """
import pickle, sys
from functools import partial
import jaxbandits as jb
from jaxbandits.system.identity import describe
build = jb.at_budget(partial(jb.lingape, delta=0.1), per_arm=20)
print(describe(build) == describe(pickle.loads(pickle.dumps(build))), describe(build))
"""


def test_a_wrapped_algorithm_has_one_stored_name_in_all_processes():
    build = jb.at_budget(LINGAPE, per_arm=20)
    assert child(NAME) == f"True {describe(build)}\n"
    name = "at_budget(jaxbandits.algorithms.lingape.lingape)"
    assert stored_name(build.func) == name
    others = [
        jb.at_budget(LINGAPE, per_arm=21),
        jb.at_budget(LINGAPE, budget=20),
        jb.at_budget(partial(LINGAPE, delta=0.2), per_arm=20),
        jb.at_budget(partial(jb.lin_game, delta=0.1), per_arm=20),
        jb.at_budget(LINGAPE, per_arm=20, answer="most_pulled"),
        LINGAPE,
    ]
    assert len({str(describe(other)) for other in [build, *others]}) == 7
    again = pickle.loads(pickle.dumps(build))
    assert again.func == build.func
    assert hash(again.func) == hash(build.func)
    assert "<local>" in str(describe(jb.at_budget(lambda arms: in_turn(arms), 9)))
