"""Ten thousand replications all differ, and each depends only on its number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import key_of

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.instances.environments.finite import finite

MANY = 10_000
SOME = (0, 1, 2999, 4095, 4096, 8191, 9999)
ARMS = jb.instances.linear(np.eye(2), [0.0, 0.0])


def one_draw(arms):
    """Draws the first arm once, and keeps the reward with the results."""

    def ask(key, state):
        drawn, reward = state
        zero = jnp.zeros((), int)
        return jb.Move(zero, None, drawn > 0, zero, info={"reward": reward})

    return jb.Algorithm(
        init=lambda key: (jnp.zeros((), int), jnp.zeros(())),
        ask=ask,
        tell=lambda state, move, total: (state[0] + 1, total),
    )


@pytest.fixture(scope="module")
def many():
    return jb.simulate(ARMS, one_draw, replications=MANY, seed=3)


def test_no_replication_repeats_another_and_none_is_missing(many):
    np.testing.assert_array_equal(many.replication, np.arange(MANY))
    assert len(np.unique(many.info["reward"])) == MANY


def test_each_replication_is_computed_from_the_key_of_its_number(many):
    with jax.enable_x64(True):
        env, algorithm = finite(ARMS), one_draw(ARMS.arms)
        keys = jnp.stack([key_of(r, seed=3) for r in SOME])

        def whole(key):
            run = episode.start(key, env, algorithm)
            return episode.advance(run, env, algorithm, 2).info["reward"]

        rewards = jax.jit(jax.vmap(whole))(keys)
    np.testing.assert_allclose(many.info["reward"][list(SOME)], rewards)


def test_lanes_and_the_number_of_replications_change_nothing(many):
    few = jb.simulate(ARMS, one_draw, replications=MANY - 3_000, seed=3, batch=1024)
    np.testing.assert_array_equal(few.info["reward"], many.info["reward"][: MANY - 3_000])
