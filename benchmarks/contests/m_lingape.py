"""m-LinGapE: few arms in many dimensions, so `[K, K]` matrices are the small ones."""

import jax
import numpy as np

from ..baselines import m_lingape
from ..contest import Contest
from ..tasks import task_of
from .engines import alike, both
from .streams import noise_of, others

COMPARED = 8


def m_lingape_drug(quick=False, seed=0):
    """The five best of ten arms in 71 dimensions."""
    task, loops = task_of("m-lingape-drug"), others(m_lingape)
    options = task.algorithm.keywords
    numbers = m_lingape.problem(task.instance, options["m"], options["delta"])
    replications = 64 if quick else 8192

    def ours(number, **options):
        return task.play(number, seed=seed, **options)

    def agree():
        runs = ours(COMPARED)
        engines = alike(ours, COMPARED, runs)
        with jax.enable_x64(True):
            for r in range(COMPARED):
                _, noise = noise_of(seed, r, int(runs.pulls[r]) + 1)
                for loop in loops.values():
                    found = loop(numbers, 1, seed, noise=noise)
                    assert found.pulls[0] == runs.pulls[r], r
                    np.testing.assert_array_equal(found.answer[0], runs.answer[r])
                    np.testing.assert_array_equal(found.arm_pulls[0], runs.arm_pulls[r])
        return f"{COMPARED} replications, arm by arm, on the same noise; {engines}"

    def rounds_of(work, number):
        return lambda: int(work(number).pulls.sum())

    contestants = both(lambda **options: int(ours(replications, **options).pulls.sum()))
    for who, loop in loops.items():
        number = replications // (128 if who == "numpy" else 4)
        contestants[who] = rounds_of(
            lambda n, loop=loop: loop(numbers, n, seed + 1), max(1, number)
        )
    return Contest("m-lingape drug", "round", contestants, agree, rounds=2 if quick else 5)


CONTESTS = {"m-lingape-drug": m_lingape_drug}
