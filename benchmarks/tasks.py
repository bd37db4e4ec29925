"""The worlds and algorithms that all parts of the benchmarks measure."""

from functools import partial
from typing import Any, NamedTuple

import jax

import jaxbandits as jb


class Task(NamedTuple):
    """An instance and who plays on it."""

    instance: Any
    algorithm: Any
    horizon: int | None = None  # of a regret run

    def play(self, replications, **options):
        """`Runs` of so many replications."""
        return jb.simulate(
            self.instance,
            self.algorithm,
            replications=replications,
            horizon=self.horizon,
            **options,
        )


def sphere(seed, num_arms, dim, noise_var):
    """A fixed draw of arms on the unit sphere."""
    key = jax.random.key(seed, impl="threefry2x32")
    return jb.instances.sphere(key, num_arms=num_arms, dim=dim, noise_var=noise_var)


def _cube():
    key = jax.random.key(3, impl="threefry2x32")
    return jb.instances.logistic_cube(key, num_arms=100, dim=20)


def tasks():
    """All of them by name; the instances are drawn anew."""
    soare, round_arms = jb.instances.soare, sphere(5, 64, 10, 0.1)
    lingape, rage = partial(jb.lingape, delta=0.05), partial(jb.rage, delta=0.05)
    # As many arms and features as the drug-repurposing data, which are not ours to ship.
    top_m = partial(jb.m_lingape, m=5, delta=0.05, threshold="heuristic")
    return {
        "lingape-soare": Task(soare(5, angle=0.3), lingape),
        "lingape-sphere": Task(sphere(5, 50, 20, 0.1), lingape),
        "m-lingape-drug": Task(sphere(6, 10, 71, 0.01), top_m),
        "rage-soare": Task(soare(10, angle=0.01), rage),
        "rage-sphere": Task(sphere(9, 100, 9, 1.0), rage),
        "gse-16": Task(jb.instances.canonical(16, gap=1.0), partial(jb.gse, budget=320)),
        "gse-64": Task(round_arms, partial(jb.gse, budget=1280)),
        "gse-64-d-opt": Task(round_arms, partial(jb.gse, budget=1280, design="d_opt")),
        "glm-tsl": Task(_cube(), jb.glm_tsl, 500),
    }
