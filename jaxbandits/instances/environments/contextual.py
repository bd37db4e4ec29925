"""An environment that shows a few examples each round and rewards the choice of one."""

import jax
import jax.numpy as jnp

from ...core import Env
from ..contextual import Labelled


def contextual(problem: Labelled) -> Env:
    """The environment of a `Labelled` problem with a target.

    The context of a round is the indices `[K]` of the examples shown. There is no final answer, so
    any one counts as correct.
    """
    labels, num_examples = jnp.asarray(problem.labels), problem.labels.shape[0]

    def context(key):
        return (jax.random.randint(key, (problem.shown,), 0, num_examples),)

    def means(shown):
        label = labels.at[shown].get(mode="promise_in_bounds")
        return jnp.where(label == problem.target, problem.high, problem.low)

    def reward(noise, move, shown):
        return (noise < means(shown)[move.arm]).astype(noise.dtype)

    def regret(move, shown):
        expected = means(shown)
        return expected.max() - expected[move.arm]

    return Env(
        noise=lambda key, shape, counted: jax.random.uniform(key, shape),
        reward=reward,
        regret=regret,
        correct=lambda answer: jnp.array(True),
        num_arms=problem.shown,
        context=context,
    )
