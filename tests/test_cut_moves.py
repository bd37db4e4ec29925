"""Moves that are cut: at the horizon, at a budget; and the run that never draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.algorithms.wrappers.budgeted import _slot_order, cut
from jaxbandits.core import Algorithm, Move
from jaxbandits.engine.episode import IDLE, Run, is_idle, truncated

BATCH = 3


def move(arm, count=None):
    count = None if count is None else jnp.asarray(count)
    return Move(jnp.asarray(arm), count, done=jnp.array(False), answer=jnp.array(0))


def in_batches(arms):
    """Three arms a round."""

    def ask(key, state):
        return move(jnp.arange(BATCH))

    return Algorithm(lambda key: jnp.zeros(()), ask, lambda state, move, total: state)


@pytest.mark.parametrize("rest", range(5))
def test_a_batch_is_cut_to_the_draws_that_are_left(rest):
    found = truncated(move([2, 0, 1]), jnp.array(rest))
    assert found.count.tolist() == [1] * min(rest, BATCH) + [0] * max(BATCH - rest, 0)


def test_a_batch_at_the_horizon_is_played_in_part():
    runs = jb.simulate(jb.instances.canonical(3, gap=1.0), in_batches, replications=2, horizon=10)
    assert runs.pulls.tolist() == [10, 10]
    assert runs.arm_pulls.tolist() == [[4, 3, 3]] * 2


@pytest.mark.parametrize(("rest", "count"), [(0, 0), (6, 6), (7, 7), (8, 7)])
def test_a_phase_of_one_arm_is_cut_to_the_draws_that_are_left(rest, count):
    with jax.enable_x64(True):
        assert int(truncated(move(1, 7), jnp.array(rest)).count) == count
        assert truncated(move([0, 1], [3, 4]), jnp.array(rest)).count.sum() == count


@pytest.mark.parametrize("seed", range(20))
def test_slots_of_one_arm_have_priorities_of_their_own(seed):
    """With equal ones, both would be rounded up, and 6 draws be made of 5."""
    arms = jnp.array([0, 1, 0, 1])
    order = jax.random.permutation(jax.random.key(seed), 2)
    state = type("State", (), {"order": order})()
    slots = np.asarray(_slot_order(arms, state))
    assert len(set(slots.tolist())) == 4
    assert (np.argsort(order[arms[np.argsort(slots)]], stable=True) == np.arange(4)).all()
    for rest in (4, 5, 6, 7):
        counts, fits = cut(jnp.full(4, 2), jnp.array(rest), jnp.asarray(slots))
        assert bool(fits)
        assert int(counts.sum()) == rest


@pytest.mark.parametrize(("beyond", "idle"), [(0, False), (1, True)])
def test_a_run_is_idle_after_more_than_so_many_rounds_without_a_draw(beyond, idle):
    run = Run(**dict.fromkeys(Run._fields))
    run = run._replace(pulls=jnp.array(7), rounds=jnp.array(7 + IDLE + beyond))
    assert bool(is_idle(run)) is idle
