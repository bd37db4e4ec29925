"""GLM-TSL: each round fits a model by Newton's method and factors its Hessian."""

from functools import partial

import jax
import numpy as np

from ..baselines import glm_tsl
from ..contest import Contest
from ..tasks import task_of
from .engines import both
from .streams import asked_of, noise_of, others

COMPARED = 5
SURE = 60  # rounds that must agree although the fits stop at different accuracies


def play_baseline(loop, numbers, replication, horizon, seed):
    """A replication of a baseline with the package's random numbers."""
    with jax.enable_x64(True):
        key, uniforms = noise_of(seed, replication, horizon, jax.random.uniform)
        normals = asked_of(key, horizon, numbers.arms.shape[1])
    found = loop(numbers, 1, horizon, seed, normals=normals, uniforms=uniforms)
    assert not found.missed.any()
    return found


def glm_tsl_cube(quick=False, seed=0):
    """The contest on whole runs."""
    task, loops = task_of("glm-tsl"), others(glm_tsl)
    numbers = glm_tsl.problem(task.instance)
    replications, horizon = (8, 100) if quick else (64, task.horizon)
    algorithm = partial(task.algorithm, a=numbers.a, ridge=numbers.ridge)
    task = task._replace(algorithm=algorithm, horizon=horizon)

    def ours(number, **options):
        return task.play(number, seed=seed, **options)

    def alike(runs, r, loop):
        """The last recorded round up to which a loop has the same regret, so the same arms."""
        found = play_baseline(loop, numbers, r, horizon, seed)
        regret = np.cumsum(numbers.means.max() - numbers.means[found.arms[0]])
        same = np.isclose(regret[runs.rounds - 1], runs.regret[r], rtol=0, atol=1e-9)
        return int(runs.rounds[np.logical_and.accumulate(same)].max(initial=0))

    def agree():
        runs = ours(replications)
        assert not runs.info["unconverged"].any()
        until = [min(alike(runs, r, loop) for loop in loops.values()) for r in range(COMPARED)]
        assert sum(last >= SURE for last in until) >= COMPARED - 1, until
        return (
            f"{COMPARED} replications on the same noise: the same arms for {min(until)} to "
            f"{max(until)} of {horizon} rounds; only {SURE} rounds in all but one are asked for, "
            f"as fits stop at a tolerance and a close call may part them"
        )

    def by_us(**options):
        ours(replications, **options)
        return replications * horizon

    def by_loop(loop, number):
        loop(numbers, number, horizon, seed + 1)
        return number * horizon

    contestants = both(by_us)
    for who, loop in loops.items():
        number = max(1, replications // (32 if who == "numpy" else 4))
        contestants[who] = partial(by_loop, loop, number)
    return Contest("glm-tsl", "round", contestants, agree, rounds=2 if quick else 5)


CONTESTS = {"glm-tsl": glm_tsl_cube}
