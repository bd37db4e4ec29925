"""Live runs refuse invalid arguments and rewards, and stay unchanged."""

import os
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from test_live import ARMS, LINGAPE, by_message

import jaxbandits as jb
from jaxbandits.core import Algorithm, Move


def oracle(arms, *, theta):
    return jb.lingape(arms, theta_norm=jnp.linalg.norm(theta))


def doubling(arms, *, horizon):
    return jb.gse(arms, budget=horizon)


SOARE = jb.instances.soare(3, angle=0.5)
EXAMPLES = jb.instances.labelled([[0.0], [1.0], [2.0]], [0, 1, 1], shown=2)


def in_pairs(arms):
    def ask(key, state):
        return Move(jnp.arange(2), None, jnp.array(False), jnp.array(0))

    return Algorithm(lambda key: jnp.zeros(()), ask, lambda state, move, total: state)


@pytest.mark.parametrize(
    ("constructor", "options", "match"),
    [
        ("lingape", {}, "constructor must be callable, got 'lingape'"),
        (partial(jb.lingape, 3), {}, "constructor must bind its options by name"),
        (oracle, {}, "oracle needs theta, .* bind it"),
        (doubling, {}, "doubling needs horizon, .* bind it"),
        (jb.gse, {}, "budget or per_arm must be given, one of the two, got None and None"),
        (partial(jb.gse, budget=1), {}, "budget must be at least the 2 stages, got 1"),
        (partial(LINGAPE, delta=2.0), {}, r"delta must be a number in \(0, 1\), .*got 2.0"),
        (
            partial(LINGAPE, dleta=0.1),
            {},
            "unknown option of lingape 'dleta'; did you mean 'delta'",
        ),
        (in_pairs, {}, r"in_pairs must ask for one arm .* arms of shape \(2,\)"),
        (LINGAPE, {"arms": [1.0, 2.0]}, r"arms must be a table \[K, d\], got shape \(2,\)"),
        (LINGAPE, {"arms": [[1.0, np.nan]]}, "arms must be finite, got NaN"),
        (LINGAPE, {"arms": [["a"]]}, "arms must be real numbers, got text"),
        (LINGAPE, {"targets": ARMS}, "targets must be None for lingape"),
        (jb.rage, {"targets": [[1.0]]}, "targets must have the arms' 2 features, got 1"),
        (LINGAPE, {"seed": -1}, "seed must be a whole number, 0 or above"),
        (
            LINGAPE,
            {"noise_var": 0.0},
            "noise_var must be a number from 1e-250 to 1e\\+250, .*got 0.0",
        ),
        (LINGAPE, {"theta_norm": "big"}, "theta_norm must be a finite number.*got 'big'"),
        (jb.lingape, {}, "theta_norm must be given for threshold 'pairwise'"),
        (LINGAPE, {"arms": SOARE}, "arms must be a table .* object Instance: give instance.arms"),
        (LINGAPE, {"arms": EXAMPLES}, "arms must be .* object Labelled: give instance.arms"),
        (LINGAPE, {"arms": [[10**400, 1], [0, 1]]}, "arms must be a table of numbers: .*too large"),
        (
            jb.epsilon_greedy,
            {},
            r"horizon must be given for rate 'fading', .*: horizon is the number of rounds, which "
            r"live use .*: bind it with functools.partial\(epsilon_greedy, horizon=...\)$",
        ),
        (jb.rep_glm_fpl, {}, r"horizon must be given, got None.*partial\(rep_glm_fpl, horizon="),
        (LINGAPE, {"path": "/nowhere/run.npz"}, "run.npz is in a folder that does not exist"),
        (LINGAPE, {"path": os.path.dirname(__file__)}, "tests cannot be used: it is a folder"),
        (lambda arms: LINGAPE(arms), {"path": "run.npz"}, "could not be recognised"),
    ],
    ids=by_message,
)
def test_bad_arguments_are_named(constructor, options, match):
    with pytest.raises(ValueError, match=match):
        jb.Live(constructor, **{"arms": ARMS} | options)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ((np.nan,), "reward must be a finite number, got nan"),
        ((np.ma.masked,), "reward must be a finite number, got masked"),
        (("click",), "reward must be a finite number, got 'click'"),
        (("0.5",), "reward must be a finite number, got '0.5'"),
        ((10**400,), "reward must be a finite number, got 1000"),
        ((1e308,), r"reward must be at most 3.3e\+150, for squares, got 1e\+308"),
        (([1.0, 2.0],), r"reward must have shape \(\) here, got \(2,\)$"),
        ((1.0, {"arm": 2}), "arm must be 0, the one asked for, got 2"),
        ((1.0, {"arm": 4}), "arm must be a whole number from 0 to 3, got 4"),
        ((1.0, {"ticket": 1}), "ticket must be a whole number from 0 to 0, got 1"),
        ((1.0, {"ticket": "0"}), "ticket must be a whole number from 0 to 0, got '0'"),
        ((np.inf, {"ticket": 0}), "reward must be a finite number, got inf"),
        ((1.0, {"ticket": 0, "arm": 0}), "arm must be None with a ticket"),
    ],
    ids=by_message,
)
def test_bad_rewards_are_named_and_change_nothing(given, match):
    live = jb.Live(LINGAPE, ARMS)
    ticket = live.ticket()
    reward, target = (*given, {})[:2]
    with pytest.raises(ValueError, match=match):
        live.tell(reward, **target)
    assert (live.pulls, live.tickets) == (0, (ticket,))
    live.tell(1.0, arm=0)
    live.tell(1.0, ticket=0)
    with pytest.raises(ValueError, match="0 is already told"):
        live.tell(1.0, ticket=0)
    assert live.pulls == 2


def test_a_ticket_of_another_run_is_refused():
    live, other = jb.Live(LINGAPE, ARMS), jb.Live(LINGAPE, ARMS)
    other.tell(1.0)
    mine, foreign = live.ticket(), other.ticket()
    assert (mine.number, mine.arm, foreign.number) == (0, 0, 0)
    assert foreign.arm != 0
    match = r"ticket must be one of this run, whose number 0 is for arm 0, got Ticket\(number=0"
    for call in (lambda: live.tell(1.0, ticket=foreign), lambda: live.cancel(foreign)):
        with pytest.raises(ValueError, match=match):
            call()
    assert (live.pulls, live.tickets) == (0, (mine,))
    live.tell(1.0, ticket=mine)
    with pytest.raises(ValueError, match="0 is already told"):
        live.tell(1.0, ticket=foreign)


def test_a_reward_told_without_asking_is_one_of_the_arm_that_ask_would_return():
    live = jb.Live(LINGAPE, ARMS)
    for pulls in (1, 2):
        arm, before = live.ask(), live.arm_pulls
        live.tell(1.0)
        assert live.pulls == pulls
        assert (live.arm_pulls - before)[arm] == 1


def test_a_phase_refuses_rewards_that_it_did_not_ask_for():
    live = jb.Live(partial(jb.sequential_halving, budget=8), ARMS)  # one draw each, then two
    for reward, target, match in (
        (1.0, {}, r"reward must have shape \(4,\) here, got \(\); give arm=k for rewards of one"),
        ([1.0, 2.0], {"arm": 1}, "reward must hold at most 1 rewards of arm 1"),
        ([1.0, np.nan], {"arm": 1}, "reward must be a finite number"),
        ([[1.0]], {"arm": 1}, "reward must hold at most 1 rewards of arm 1"),
    ):
        with pytest.raises(ValueError, match=match):
            live.tell(reward, **target)
    ticket = live.ticket()
    with pytest.raises(ValueError, match="at most 0 rewards of arm 0"):
        live.tell(1.0, arm=ticket.arm)
    with pytest.raises(ValueError, match="while 1 tickets are out"):
        live.tell(np.ones(4))
    live.tell(1.0, ticket=ticket.number)
    live.tell([], arm=1)
    with pytest.raises(ValueError, match="reward must be 0 for arms of which none is wanted"):
        live.tell(np.ones(4))
    live.tell([0.0, 0.5, 0.2, 0.1])
    np.testing.assert_array_equal(live.ask(), [2, 2, 0, 0])
    assert live.pulls == 4
