"""Live runs of contextual algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.random import fold_in
from programs import key_of

import jaxbandits as jb
from jaxbandits.core import Algorithm, Move
from jaxbandits.engine import episode
from jaxbandits.instances.environments.contextual import contextual

RNG = np.random.default_rng(2)
POINTS = RNG.normal(size=(40, 3))
INSTANCE = jb.instances.labelled(POINTS, POINTS[:, 0] > 0, shown=4, target=1)
HORIZON = 45  # into the second block of noise


def steps(arms, *, rate=0.5):
    """A contextual algorithm that is recognised by the arguments of its `ask` alone."""

    def ask(key, theta, shown):
        position = jnp.argmax(arms[shown] @ theta + jax.random.normal(key, shown.shape))
        return Move(
            position,
            None,
            jnp.array(False),
            position,
            ({"norm": theta @ theta}, arms[shown[position]]),
        )

    def tell(theta, move, reward):
        return theta + rate * (reward - jax.nn.sigmoid(move.info[1] @ theta)) * move.info[1]

    return Algorithm(lambda key: jnp.zeros(arms.shape[1]), ask, tell)


LEARNERS = {
    "deep_fpl": partial(jb.deep_fpl, hidden=5, batch=4),
    "rep_glm_fpl": partial(jb.rep_glm_fpl, hidden=4, batch=4, percent=20.0, horizon=HORIZON),
    "a function": steps,
    "at a budget": jb.at_budget(steps, 12),
}


@jax.jit
def round_of(rounds):
    """The context of replication 0 of seed 7 in a round, and the noise of its reward."""
    env, key = contextual(INSTANCE), key_of(0, 7)
    (shown,) = env.context(fold_in(fold_in(key, episode.CONTEXT), rounds))
    noise = env.noise(fold_in(key, rounds // episode.BLOCK), (episode.BLOCK,), False)
    return shown, noise[rounds % episode.BLOCK]


def tell_round(live, rounds):
    """Play one round of a live run; returns the position of the chosen row in the context."""
    with jax.enable_x64(True):
        shown, noise = map(np.asarray, round_of(rounds))
    row = live.ask(shown)
    assert row == live.ask() == live.ask(shown)
    mean = INSTANCE.high if INSTANCE.labels[row] == INSTANCE.target else INSTANCE.low
    live.tell(float(noise < mean))
    return np.flatnonzero(shown == row)[0]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_live_run_with_rewards_of_a_simulation_equals_its_replication(name, tmp_path):
    build, rounds = LEARNERS[name], 12 if name == "at a budget" else HORIZON
    path, positions = tmp_path / "run.npz", np.zeros(INSTANCE.shown, int)
    for t in range(rounds):
        if t in (0, 20):  # new, and continued from the file
            live = jb.Live(build, POINTS, seed=7, path=path)
        positions[tell_round(live, t)] += 1
        if t == 19:
            live.close()
    # At a budget a simulation is refused: the answer is no arm of later rounds.
    constructor = steps if name == "at a budget" else build
    runs = jb.simulate(INSTANCE, constructor, horizon=rounds, replications=1, seed=7)
    # A context can hold the same row twice.
    assert abs(positions - runs.arm_pulls[0]).sum() <= 4
    assert live.pulls == runs.pulls[0] == live.arm_pulls.sum() == rounds
    assert live.arm_pulls.shape == (40,)
    for key, values in runs.info.items():
        assert live.info[key] == pytest.approx(values[0], rel=1e-6)


def test_a_budget_ends_a_live_run():
    live = jb.Live(LEARNERS["at a budget"], POINTS, seed=7)
    for t in range(12):
        assert not live.done
        tell_round(live, t)
    assert live.done
    with pytest.raises(RuntimeError, match="has stopped: it asks for nothing"):
        live.ask([0, 1])


def test_a_new_context_replaces_one_without_a_reward():
    live, other = (jb.Live(steps, POINTS, seed=3) for _ in range(2))
    live.ask([3, 4, 5])
    assert live.ask([8, 9]) == other.ask([8, 9])
    for run in (live, other):
        run.tell(1.0)
    assert live.ask([1, 2, 6]) == other.ask([1, 2, 6])
    assert live.pulls == 1


def test_a_context_can_be_a_single_row():
    live = jb.Live(steps, POINTS)
    assert live.ask([7]) == 7
    live.tell(1.0, arm=7)
    assert np.flatnonzero(live.arm_pulls).tolist() == [7]


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (None, "shown must be given: nothing was shown since the last reward"),
        ([], r"shown must be a list of rows of the arms, 0 to 39, got \[\]"),
        ([1, 40], r"0 to 39, got \[1, 40\]"),
        ([-1], r"0 to 39, got \[-1\]"),
        ([True, False], r"0 to 39, got \[True, False\]"),
        ([0.5], r"0 to 39, got \[0.5\]"),
        (3, "shown must be a list of rows of the arms, got 3"),
    ],
    ids=str,
)
def test_rows_that_do_not_exist_are_named(shown, message):
    live = jb.Live(steps, POINTS)
    with pytest.raises(ValueError, match=message):
        live.ask(shown)
    with pytest.raises(RuntimeError, match=r"steps has asked for nothing: call ask\(shown\)"):
        live.tell(1.0)


def test_tickets_wrong_arms_and_needless_contexts_are_refused():
    live = jb.Live(steps, POINTS)
    for play in (live.ticket, partial(live.cancel, 0), partial(live.tell, 1.0, ticket=0)):
        with pytest.raises(ValueError, match="steps has no tickets"):
            play()
    live.ask([2, 3])
    with pytest.raises(ValueError, match=r"arm must be [23], the one asked for, got 9"):
        live.tell(1.0, arm=9)
    plain = jb.Live(partial(jb.lingape, theta_norm=1.0), np.eye(2))
    with pytest.raises(ValueError, match="shown must be None for lingape, which is shown nothing"):
        plain.ask([0])


def scored(arms, *, least=None):
    """Keeps all scores in `info`; ends where no row of the context is `least` or above."""

    def ask(key, counts, shown):
        scores = arms[shown, 0] - counts[shown]
        position = jnp.argmax(scores)
        done = jnp.array(False) if least is None else shown.max() < least
        return Move(position, None, done, scores > 0, (scores, shown[position]))

    def tell(counts, move, reward):
        return counts.at[move.info[1]].add(reward)

    return Algorithm(lambda key: jnp.zeros(len(arms)), ask, tell)


def test_moves_whose_size_depends_on_the_context_are_saved(tmp_path):
    path, plain = tmp_path / "run.npz", jb.Live(scored, POINTS)
    for shown in ([1, 2, 3, 4], [5, 6], [1, 2, 3, 4], [9]):
        with jb.Live(scored, POINTS, path=path) as live:
            assert live.ask(shown) == plain.ask(shown)
        with jb.Live(scored, POINTS, path=path) as live:
            assert live.ask() == plain.ask()
            live.tell(1.0)
        plain.tell(1.0)
        assert live.pulls == plain.pulls
        assert live.answer is None


def test_whether_a_run_is_done_depends_on_the_context():
    live = jb.Live(partial(scored, least=5), POINTS)
    live.ask([1, 7])
    live.tell(1.0)
    assert not live.done
    with pytest.raises(RuntimeError, match=r"scored has stopped: it asks for nothing$"):
        live.ask([1, 2])
    assert live.ask([7, 8]) in (7, 8)
    assert not live.done


def around(arms, *, bound):
    """An algorithm with another `ask`: of any number of arguments, or with one that is bound."""
    inner = jb.uniform(arms)

    def ask(key, state, *context, inner=inner):
        return inner.ask(key, state, *context)

    def same(key, state, inner=inner):
        return inner.ask(key, state)

    return inner._replace(ask=same if bound else ask)


@pytest.mark.parametrize("bound", [False, True])
def test_additional_arguments_of_ask_do_not_make_an_algorithm_contextual(bound):
    live = jb.Live(partial(around, bound=bound), np.eye(3))
    arm = live.ask()
    live.tell(1.0)
    assert live.arm_pulls[arm] == 1


@pytest.mark.parametrize("build", [steps, LEARNERS["deep_fpl"]])
@pytest.mark.parametrize("options", [{"budget": 4, "answer": "most_pulled"}, {"per_arm": 2}])
def test_a_contextual_algorithm_at_a_budget_refuses_most_pulled_and_per_arm(build, options):
    with pytest.raises(ValueError, match="answer must be 'inner', and budget given, not per_arm"):
        jb.Live(jb.at_budget(build, **options), POINTS)
