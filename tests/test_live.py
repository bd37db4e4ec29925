"""Live runs: the moves of a simulation; rewards in any order, on time or late."""

import inspect
import threading
import time
from functools import partial

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from programs import key_of, simulate

import jaxbandits as jb
from jaxbandits.core import Move
from jaxbandits.engine.episode import BLOCK, INIT, ask_key
from jaxbandits.instances.environments.finite import finite
from jaxbandits.live import file

LINGAPE = partial(jb.lingape, delta=0.1, theta_norm=2.0)
QUIET = partial(LINGAPE, noise_var=0.05)
GSE = partial(jb.gse, budget=14)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [-1.0, 0.2]])
MEANS = ARMS @ [1.0, -0.3]
# Contextual ones are in `test_live_contextual`.
each = pytest.mark.parametrize("case", cases.law(cases.NOT_CONTEXTUAL))


def by_message(value):
    """Names of cases that are the same in every process, which those of functions are not."""
    return value if isinstance(value, str) else "case"


def live_case(case, **options):
    """A live run that knows of the instance what a simulation knows of it."""
    instance = case.instance
    same = np.array_equal(instance.targets, instance.arms)
    build = case.build
    if "theta" in inspect.signature(build).parameters:  # an oracle needs it
        build = partial(build, theta=instance.theta)
    if "horizon" in inspect.signature(build).parameters:
        build = partial(build, **case.options)
    known = {name: getattr(instance, name) for name in ("noise_var", "theta_norm", "family")}
    targets = None if same else instance.targets
    return jb.Live(build, instance.arms, targets=targets, **known, **options)


def draws_of(instance, seed):
    """The rewards of replication 0: `draw(round, move)`, the sums of that move."""

    key = key_of(0, seed)

    def rewards(rounds, asked):
        with jax.enable_x64(True):
            one = np.ndim(asked) == 0
            arm, count = (np.int64(asked), None) if one else (np.arange(len(asked)), asked)
            return np.asarray(rewards_of(instance, key, np.int64(rounds), arm, count))

    return rewards


@jax.jit
def rewards_of(instance, key, rounds, arm, count):
    """One program for all instances of the same shapes."""
    env, move = finite(instance), Move(arm, count, False, 0)
    if count is None:
        noise = env.noise(jax.random.fold_in(key, rounds // BLOCK), (BLOCK,), False)
        return env.reward(noise[rounds % BLOCK], move)
    noise = env.noise(jax.random.fold_in(key, rounds), arm.shape, True)
    return env.reward(noise, move)


@each
def test_a_live_run_with_rewards_of_a_simulation_equals_its_replication(case):
    check_live(case, 0)


@pytest.mark.slow
@each
def test_a_live_run_equals_its_replication_with_another_seed_too(case):
    check_live(case, 3)


def check_live(case, seed):
    live, draw = live_case(case, seed=seed), draws_of(case.instance, seed)
    horizon, history, answers = case.options.get("horizon", 100_000), [], []
    while not live.done and len(history) < horizon:
        asked = live.ask()
        np.testing.assert_array_equal(asked, live.ask())
        answers.append(live.answer)  # before the round
        live.tell(draw(len(history), asked))
        history.append(live.arm_pulls)
        if len(history) < 12 or live.done:  # what is saved passes all checks of what is read
            saved = file.to_arrays(live._snapshot)
            again = file.to_arrays(file.from_arrays(saved, live._algorithm))
            assert all(np.array_equal(again[name], table) for name, table in saved.items())
    play = partial(simulate, case.instance, case.build, seed=seed)
    runs = play(**case.options)
    assert live.pulls == runs.pulls[0] == live.arm_pulls.sum()
    np.testing.assert_array_equal(live.arm_pulls, runs.arm_pulls[0])
    np.testing.assert_array_equal(live.answer, runs.answer[0])
    if case.promise != "regret":
        assert live.info == {name: values[0] for name, values in runs.info.items()}
        for counts, answer in zip(history[:12], answers[1:], strict=False):
            cut = play(max_pulls=int(counts.sum()))
            np.testing.assert_array_equal(counts, cut.arm_pulls[0])
            np.testing.assert_array_equal(answer, cut.answer[0])  # asked once more


def reward_of(pull, arm):
    """A reward that depends only on the arm and on the number of earlier rewards."""
    return MEANS[arm] + np.random.default_rng(pull).normal(scale=0.3)


def whole_run():
    """The arms that a run without interruption asks for, and the run."""
    live, asked = jb.Live(QUIET, ARMS), []
    while not live.done:
        asked.append(live.ask())
        live.tell(reward_of(live.pulls, asked[-1]))
    return asked, live


def test_a_restart_after_every_call_changes_nothing(tmp_path):
    asked, whole = whole_run()
    path, again = tmp_path / "run.npz", []
    done = False
    while not done:
        with jb.Live(QUIET, ARMS, path=path) as live:
            assert live.pulls == len(again)
            again.append(live.ask())
            assert live.ask() == again[-1]
            live.tell(reward_of(live.pulls, again[-1]))
            done = live.done
    assert again == asked
    assert len(asked) > 10
    with jb.Live(QUIET, ARMS, path=path) as live:
        assert (live.done, live.answer) == (True, whole.answer)
        np.testing.assert_array_equal(live.arm_pulls, whole.arm_pulls)
        with pytest.raises(RuntimeError, match=rf"lingape has stopped.*answer is {live.answer}"):
            live.ask()
        with pytest.raises(RuntimeError, match="has stopped"):
            live.tell(1.0)


def clicks(counts, generator):
    """Rewards 0, 1/2 or 1 of a phase as (arm, reward), in a random order."""
    pulls = np.repeat(np.arange(len(counts)), counts)
    pairs = [(int(arm), float(generator.integers(3)) / 2) for arm in pulls]
    return [pairs[i] for i in generator.permutation(len(pairs))]


@pytest.mark.parametrize("how", ["one by one", "by arm", "tickets"])
def test_a_phase_takes_its_rewards_in_any_order_and_over_restarts(how, tmp_path):
    generator, path = np.random.default_rng(0), tmp_path / "run.npz"
    at_once = jb.Live(GSE, ARMS)
    while not at_once.done:
        counts = at_once.ask()
        assert counts.dtype == np.int64
        pairs = clicks(counts, generator)
        arms, rewards = zip(*pairs, strict=True)
        sums = np.bincount(arms, rewards, len(ARMS))
        if how == "by arm":
            piles = [(k, [r for arm, r in pairs if arm == k]) for k in range(len(ARMS))]
            calls = [((pile,), {"arm": k}) for k, pile in piles if pile]
        elif how == "one by one":
            calls = [((reward,), {"arm": arm}) for arm, reward in pairs]
        else:
            calls = by_ticket(path, pairs)
        before = at_once.pulls
        for given, keywords in calls:
            with jb.Live(GSE, ARMS, path=path) as live:
                assert before <= live.pulls < before + len(pairs)
                live.tell(*given, **keywords)
        at_once.tell(sums)
        with jb.Live(GSE, ARMS, path=path) as live:
            assert (live.done, live.answer, live.pulls) == (
                at_once.done,
                at_once.answer,
                at_once.pulls,
            )
            np.testing.assert_array_equal(live.arm_pulls, at_once.arm_pulls)
    assert at_once.pulls == 14


def by_ticket(path, pairs):
    """Hand out a ticket for every reward, each from an object of its own."""
    tickets = []
    for _ in pairs:
        with jb.Live(GSE, ARMS, path=path) as live:
            tickets.append(live.ticket())
            assert live.tickets == tuple(tickets)
    with jb.Live(GSE, ARMS, path=path) as live:
        assert live.ticket() is None
        live.cancel(tickets[0])
        again = live.ticket()
        assert again.arm == tickets[0].arm
        tickets[0] = again
    waiting = {k: [t.number for t in tickets if t.arm == k] for k in range(len(ARMS))}
    return [((reward,), {"ticket": waiting[arm].pop()}) for arm, reward in pairs]


def by_hand(arrivals):
    """Arm wanted after each of `arrivals` [(arm, reward)], with the algorithm's own functions."""
    with jax.enable_x64(True):
        key = key_of(0)
        algorithm = LINGAPE(ARMS, noise_var=1.0)
        ask, tell = jax.jit(algorithm.ask), jax.jit(algorithm.tell)
        state = algorithm.init(jax.random.fold_in(key, INIT))
        wanted = []
        for rounds, (arm, reward) in enumerate(arrivals):
            move = ask(ask_key(key, rounds), state)
            state = tell(state, move._replace(arm=jnp.asarray(arm)), jnp.float64(reward))
            wanted.append(int(ask(ask_key(key, rounds + 1), state).arm))
    return wanted


def test_late_rewards_are_learnt_as_they_arrive(tmp_path):
    generator, path = np.random.default_rng(1), tmp_path / "run.npz"
    out, arrivals, wanted = [], [], []
    live = jb.Live(LINGAPE, ARMS, path=path)
    for step in range(40):
        if step == 20:
            live.close()
            live = jb.Live(LINGAPE, ARMS, path=path)
        if len(out) < 3 or generator.random() < 0.5:
            out.append(live.ticket())
            assert out[-1].arm == live.ask()
        else:
            ticket = out.pop(generator.integers(len(out)))
            arrivals.append((ticket.arm, float(generator.normal())))
            live.tell(arrivals[-1][1], ticket=ticket.number)
            wanted.append(live.ask())
        assert live.tickets == tuple(out)
    assert [arm for arm, _ in arrivals[1:]] != wanted[:-1]  # so rewards were late
    assert wanted == by_hand(arrivals)
    assert live.pulls == len(arrivals)


def test_rewards_after_the_stop_are_not_learnt():
    live = jb.Live(LINGAPE, ARMS, noise_var=0.01)
    late = [live.ticket() for _ in range(2)]
    while not live.done:
        live.tell(MEANS[live.ask()])
    pulls, answer = live.pulls, live.answer
    live.tell(-100.0, ticket=late[0].number)
    assert (live.pulls, live.answer, live.tickets) == (pulls, answer, (late[1],))
    with pytest.raises(ValueError, match="0 is already told or cancelled"):
        live.tell(1.0, ticket=late[0].number)
    with pytest.raises(RuntimeError, match="has stopped"):
        live.ticket()


def test_an_answer_is_available_at_any_time():
    top = jb.Live(partial(jb.m_lingape, m=2), ARMS, theta_norm=2.0)
    assert top.answer.dtype == bool
    for _ in range(12):
        top.tell(MEANS[top.ask()])
    np.testing.assert_array_equal(top.answer, [True, False, True, False])
    assert isinstance(jb.Live(LINGAPE, ARMS).answer, int)


def test_threads_can_share_a_live_run(tmp_path):
    with jb.Live(partial(jb.gse, budget=60), ARMS, path=tmp_path / "run.npz") as live:
        filled = []

        def visit():
            while not live.done:
                try:
                    ticket = live.ticket()
                except RuntimeError:  # another thread gave the last reward
                    return
                if ticket is not None:
                    live.tell(MEANS[ticket.arm], ticket=ticket)
                    filled.append(ticket)

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(ticket.number for ticket in filled) == list(range(60))
        counts = np.bincount([ticket.arm for ticket in filled], minlength=len(ARMS))
        np.testing.assert_array_equal(live.arm_pulls, counts)
        assert live.answer == 0


def test_live_runs_use_double_precision_share_programs_and_are_quick():
    live = jb.Live(LINGAPE, ARMS)
    live.tell(0.1)
    other = jb.Live(partial(jb.lingape, delta=0.2, theta_norm=1.0), 2 * ARMS, noise_var=0.3)
    with compilations() as seen:
        other.tell(0.3)
        jb.Live(partial(jb.lingape, delta=0.3, theta_norm=3.0), -ARMS, seed=5).tell(1.0)
    assert not seen
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        live.tell(reward_of(live.pulls, live.ask()))
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.01
    floats = [x.dtype for x in jax.tree.leaves(live._snapshot.state) if x.dtype.kind == "f"]
    assert set(floats) == {np.dtype("float64")}
    assert jnp.ones(1).dtype == np.float32
