import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, equal, leaves

from jaxbandits.compilers.cpp import program, repeated


def one_round(carry):
    """One round of a lane that ends after `left` rounds and does not change afterwards."""
    total, left, table = carry
    on = left > 0
    drawn = jnp.where(on, total * 0.5 + left, 0.0)
    carry = (
        jnp.where(on, total + 1.0, total),
        jnp.where(on, left - 1, left),
        table.at[left % 3].add(jnp.where(on, total, 0.0)),
    )
    return carry, (drawn, on.astype(int), jnp.where(on, table, 0.0))


def in_python(carry, rounds):
    """The same rounds in a Python loop, with all lanes in one array."""
    step, sums = jax.jit(jax.vmap(one_round, -1, -1)), None
    for _ in range(rounds):
        carry, more = step(carry)
        sums = more if sums is None else jax.tree.map(jnp.add, sums, more)
    return carry, sums


def beginning(left):
    rng = np.random.default_rng(8)
    lanes = len(left)
    return tuple(map(jnp.asarray, (rng.normal(size=lanes), left, rng.normal(size=(3, lanes)))))


def burst(most, lanes):
    return jax.jit(lambda carry: repeated(one_round, lanes, lambda c: c[1] > 0, most)(*[carry]))


@pytest.mark.parametrize("most", [1, 4, 20])
@pytest.mark.parametrize("left", [5, 4, 30])
def test_rounds_are_repeated_until_a_lane_ends_or_up_to_the_cap(most, left):
    carry = beginning(np.full(LANES, left) + np.arange(LANES) % 4)
    carry, sums = by_repeated(carry, most)
    expected = in_python(beginning(np.full(LANES, left) + np.arange(LANES) % 4), min(most, left))
    equal((carry, sums), expected, rtol=1e-12, atol=1e-12)


def by_repeated(carry, most):
    found = burst(most, carry[1].size)(carry)
    values = jax.tree.leaves(found)
    return tuple(values[:3]), tuple(values[3:])


@pytest.mark.parametrize("lanes", [16, 48])
def test_repeated_calls_play_all_lanes_to_their_end(lanes):
    left = np.random.default_rng(9).integers(0, 12, lanes)
    carry, total, calls = beginning(left), None, 0
    while (carry[1] > 0).any():
        carry, sums = by_repeated(carry, 5)
        total = sums if total is None else jax.tree.map(jnp.add, total, sums)
        calls += 1
        assert calls < 99
    equal((carry, total), in_python(beginning(left), 12), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(total[1], left)


def test_only_the_register_of_a_lane_that_ends_stops():
    left = np.full(48, 9)
    left[20] = 2
    carry, sums = by_repeated(beginning(left), 7)
    steps = np.asarray(sums[1])
    assert steps[20] == 2
    np.testing.assert_array_equal(steps[16:24], 2)
    np.testing.assert_array_equal(np.delete(steps, np.s_[16:32]), 7)
    assert all(np.isfinite(x).all() for x in leaves(carry))


def test_a_lane_that_has_ended_before_does_not_stop_the_others():
    left = np.full(LANES, 6)
    left[3] = 0
    _, sums = by_repeated(beginning(left), 4)
    np.testing.assert_array_equal(sums[1], np.where(left > 0, 4, 0))


def test_a_register_in_which_no_lane_goes_on_takes_no_step():
    """Else registers that have ended cost as much as the others until the last lane has."""
    left = np.where(np.arange(2 * LANES) < LANES, 0, 3)

    def step(left):
        return jnp.maximum(left - 1, 0), jnp.ones((), int)

    steps = jax.jit(lambda x: repeated(step, x.size, lambda left: left > 0, 5)(x)[1])(left)
    np.testing.assert_array_equal(steps, left)


def test_a_call_that_takes_long_leaves_the_rest_to_the_next(monkeypatch):
    """Without any time a call makes one step of one group of lanes; each group has its turn."""
    register = program.register
    at_once = "#define CALL_NANOSECONDS 0\n"
    monkeypatch.setattr(program, "register", lambda text, often: register(at_once + text, often))
    left = np.full(3 * LANES, 4)
    carry, total = beginning(left), None
    expected = in_python(beginning(left), 4)
    play, played = burst(8, left.size), []
    while (carry[1] > 0).any():
        values = jax.tree.leaves(play(carry))
        carry, sums = tuple(values[:3]), tuple(values[3:])
        total = sums if total is None else jax.tree.map(jnp.add, total, sums)
        played.append(np.asarray(sums[1]))
        assert len(played) <= left.sum()
    together = played[0].sum()
    assert {(each.sum(), each.max()) for each in played} == {(together, 1)}
    assert len(played) == left.sum() / together
    equal((carry, total), expected, rtol=1e-12, atol=1e-12)
