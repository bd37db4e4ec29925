"""LinGapE: many short rounds, where the machinery around the algebra shows."""

from functools import partial

import jax
import numpy as np

import jaxbandits as jb

from ..baselines import lingape
from ..contest import OURS, Contest
from .streams import noise_of, others, tie_order

COMPARED = 5  # replications


def tilted(instance):
    """A world of the same size without exact ties.

    Orthogonal arms tie, and then rounding decides, which differs between forms of the algebra.
    """
    change = np.random.default_rng(0).normal(scale=0.05, size=np.shape(instance.arms))
    arms = np.asarray(instance.arms) + change
    return jb.instances.linear(arms, instance.theta, noise_var=float(instance.noise_var))


def _lingape(name, instance, *, replications, few, seed=0, batch=None, quick=False):
    numbers, loops = lingape.problem(instance), others(lingape)
    algorithm = partial(jb.lingape, delta=0.05)

    def ours(number, instance=instance):
        return jb.simulate(instance, algorithm, replications=number, seed=seed, batch=batch)

    def agree():
        world = tilted(instance)
        runs, same = ours(COMPARED, world), lingape.problem(world)
        with jax.enable_x64(True):
            for r in range(COMPARED):
                key, noise = noise_of(seed, r, int(runs.pulls[r]) + 1)
                order = tie_order(key, len(numbers.means))
                for loop in loops.values():
                    found = loop(same, 1, seed, order=order, noise=noise)
                    assert found.pulls[0] == runs.pulls[r], (name, r)
                    assert found.answer[0] == runs.answer[r], (name, r)
                    np.testing.assert_array_equal(found.arm_pulls[0], runs.arm_pulls[r])
        return f"{COMPARED} replications, arm by arm, on the same noise"

    def rounds_of(work, number):
        return lambda: int(work(number).pulls.sum())

    shrink = 20 if quick else 1
    contestants = {OURS: rounds_of(ours, max(3, replications // shrink))}
    for who, loop in loops.items():
        number = few if who == "numpy" else replications // 4
        contestants[who] = rounds_of(
            lambda n, loop=loop: loop(numbers, n, seed + 1), max(1, number // shrink)
        )
    return Contest(name, "round", contestants, agree, rounds=2 if quick else 5)


def sphere(num_arms, dim, noise_var):
    """A fixed draw of arms on the unit sphere."""
    key = jax.random.key(5, impl="threefry2x32")
    return jb.instances.sphere(key, num_arms=num_arms, dim=dim, noise_var=noise_var)


def lingape_soare(quick=False):
    """Six arms in five dimensions, thousands of rounds."""
    instance = jb.instances.soare(5, angle=0.3)
    return _lingape("lingape soare", instance, replications=2048, few=10, quick=quick)


def lingape_one(quick=False):
    """A single replication: what the machinery costs without lanes to fill."""
    instance = jb.instances.soare(5, angle=0.3)
    return _lingape("lingape soare R=1", instance, replications=1, few=1, quick=quick)


def lingape_sphere(quick=False):
    """Fifty arms in twenty dimensions."""
    instance = sphere(50, 20, 0.1)
    return _lingape("lingape sphere", instance, replications=1024, few=20, quick=quick)


CONTESTS = {
    "lingape-soare": lingape_soare,
    "lingape-one": lingape_one,
    "lingape-sphere": lingape_sphere,
}
