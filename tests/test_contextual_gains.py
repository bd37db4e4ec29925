"""Rewards of contextual algorithms: on digits, on images, and of the one in the documentation."""

import os
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from benchmarks.promises import another


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def averages(build, replications, horizon):
    """Average reward of each replication on the bundled digits."""
    instance = jb.instances.digits()
    runs = jb.simulate(instance, build, replications=replications, horizon=horizon, seed=7)
    return instance, instance.average_reward(runs)[:, -1]


def misfiled(algorithm):
    """The algorithm, with each reward assigned to another example."""

    def tell(state, move, total):
        info, example = move.info
        other = (example * 31 + 17 * state.rounds) % 1797
        return algorithm.tell(state, move._replace(info=(info, other)), total)

    return algorithm._replace(tell=tell)


@pytest.mark.parametrize(
    ("replications", "horizon", "least"),
    [(12, 400, 0.40), pytest.param(20, 600, 0.42, marks=pytest.mark.slow)],
)
def test_deep_fpl_learns_digits_unless_rewards_go_to_wrong_examples(replications, horizon, least):
    instance, learnt = averages(partial(jb.deep_fpl, rate=0.003), replications, horizon)
    assert learnt.mean() > least
    fooling = partial(another(jb.deep_fpl, misfiled), rate=0.003)
    _, fooled = averages(fooling, replications, horizon)
    assert abs(fooled.mean() - 0.30) < 0.03
    assert learnt.mean() < instance.best_average(np.arange(replications)).mean()


def test_the_contextual_algorithm_of_the_documentation_learns():
    text = (Path(jb.__file__).parents[1] / "docs" / "how_to" / "own_algorithm.md").read_text()
    (block,) = (part for part in text.split("```python\n") if "def logistic_steps" in part)
    names = {"jb": jb, "jnp": jnp, "partial": partial}
    exec(block.split("```")[0], names)
    learnt = names["problem"].average_reward(names["runs"])[:, -1]
    assert learnt.mean() > 0.5  # 0.4 at random, 0.72 at best


@pytest.mark.slow
@pytest.mark.optimised
def test_learners_come_near_the_best_on_digits():
    for build in (jb.deep_fpl, jb.deep_fl, jb.rep_glm_fpl):
        instance, learnt = averages(build, 50, 4_000)
        assert learnt.mean() > 0.53
        assert learnt.mean() < instance.best_average(np.arange(50)).mean()


@pytest.mark.slow
@pytest.mark.skipif("JAXBANDITS_DATA" not in os.environ, reason="JAXBANDITS_DATA names no folder")
def test_perturbed_rewards_lower_the_regret_on_images():
    """With paired contexts and noise; the paper's second claim about networks."""
    instance = jb.instances.images(Path(os.environ["JAXBANDITS_DATA"]) / "mnist")
    perturbed, plain = (
        jb.simulate(instance, build, replications=60, horizon=10_000, seed=2)
        for build in (jb.deep_fpl, jb.deep_fl)
    )
    found = jb.results.paired_difference(plain, perturbed, of="regret")
    assert found["low"] > 0
    assert instance.average_reward(perturbed)[:, -1].mean() > 0.5
