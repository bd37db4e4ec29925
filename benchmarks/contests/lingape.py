"""LinGapE: many short rounds, where the machinery around the algebra shows."""

from functools import partial

import jax
import numpy as np

import jaxbandits as jb

from ..baselines import lingape
from ..contest import OURS, Contest
from .streams import noise_of, others, tie_order

# Orthogonal arms tie exactly, and then rounding decides, which differs between forms of the same
# algebra; in these replications it never has to.
DECIDED = (0, 1, 4, 5, 6)


def _lingape(name, instance, *, replications, few, seed=0, batch=None, quick=False):
    numbers, loops = lingape.problem(instance), others(lingape)
    algorithm = partial(jb.lingape, delta=0.05)

    def ours(number):
        return jb.simulate(instance, algorithm, replications=number, seed=seed, batch=batch)

    def agree():
        runs = ours(max(DECIDED) + 1)
        with jax.enable_x64(True):
            for r in DECIDED:
                key, noise = noise_of(seed, r, int(runs.pulls[r]) + 1)
                order = tie_order(key, len(numbers.means))
                for loop in loops.values():
                    found = loop(numbers, 1, seed, order=order, noise=noise)
                    assert found.pulls[0] == runs.pulls[r], (name, r)
                    assert found.answer[0] == runs.answer[r], (name, r)
                    np.testing.assert_array_equal(found.arm_pulls[0], runs.arm_pulls[r])
        return f"{len(DECIDED)} replications, arm by arm, on the same noise"

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
