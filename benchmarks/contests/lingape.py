"""LinGapE: many short rounds, in which the overhead around the algebra matters."""

from functools import partial

import jax
import numpy as np

import jaxbandits as jb

from ..baselines import lingape
from ..contest import Contest
from ..tasks import task_of
from .engines import alike, both
from .streams import noise_of, others, tie_order

COMPARED = 5  # replications


def tilted(instance):
    """An instance of the same size without exact ties.

    Orthogonal arms tie, and rounding, which differs between the programs, would break these ties.
    """
    change = np.random.default_rng(0).normal(scale=0.05, size=np.shape(instance.arms))
    arms = np.asarray(instance.arms) + change
    return jb.instances.linear(arms, instance.theta, noise_var=float(instance.noise_var))


def _lingape(name, task, *, replications, few, seed=0, quick=False):
    numbers, loops = lingape.problem(task.instance), others(lingape)

    def ours(number, **options):
        return task.play(number, seed=seed, **options)

    def agree():
        instance = tilted(task.instance)
        runs = task._replace(instance=instance).play(COMPARED, seed=seed)
        same = lingape.problem(instance)
        tilted_play = partial(task._replace(instance=instance).play, seed=seed)
        engines = alike(tilted_play, COMPARED, runs)
        with jax.enable_x64(True):
            for r in range(COMPARED):
                key, noise = noise_of(seed, r, int(runs.pulls[r]) + 1)
                order = tie_order(key, len(numbers.means))
                for loop in loops.values():
                    found = loop(same, 1, seed, order=order, noise=noise)
                    assert found.pulls[0] == runs.pulls[r], (name, r)
                    assert found.answer[0] == runs.answer[r], (name, r)
                    np.testing.assert_array_equal(found.arm_pulls[0], runs.arm_pulls[r])
        return f"{COMPARED} replications, arm by arm, on the same noise; {engines}"

    def rounds_of(work, number):
        return lambda: int(work(number).pulls.sum())

    shrink = 20 if quick else 1
    number = max(3, replications // shrink) if replications > 1 else 1
    contestants = both(lambda **options: int(ours(number, **options).pulls.sum()))
    for who, loop in loops.items():
        some = few if who == "numpy" else replications // 4
        contestants[who] = rounds_of(
            lambda n, loop=loop: loop(numbers, n, seed + 1), max(1, some // shrink)
        )
    return Contest(name, "round", contestants, agree, rounds=2 if quick else 5)


def lingape_soare(quick=False):
    """Six arms in five dimensions, thousands of rounds."""
    task = task_of("lingape-soare")
    return _lingape("lingape soare", task, replications=2048, few=10, quick=quick)


def lingape_one(quick=False):
    """A single replication: the overhead without other lanes to share it."""
    task = task_of("lingape-soare")
    return _lingape("lingape soare R=1", task, replications=1, few=1, quick=quick)


def lingape_sphere(quick=False):
    """Fifty arms in twenty dimensions."""
    task = task_of("lingape-sphere")
    return _lingape("lingape sphere", task, replications=1024, few=20, quick=quick)


CONTESTS = {
    "lingape-soare": lingape_soare,
    "lingape-one": lingape_one,
    "lingape-sphere": lingape_sphere,
}
