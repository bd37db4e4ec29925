"""The instances and algorithms that all parts of the speed benchmarks measure."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler


class Task(NamedTuple):
    """An instance and an algorithm."""

    instance: Any
    algorithm: Any
    horizon: int | None = None  # of a regret run

    def play(self, replications, *, engine="xla", **options):
        """Simulate so many replications, always with the same engine."""
        return jb.simulate(
            self.instance,
            self.algorithm,
            replications=replications,
            horizon=self.horizon,
            engine=engine,
            **options,
        )


def sphere(seed, num_arms, dim, noise_var):
    """A fixed draw of arms on the unit sphere."""
    key = jax.random.key(seed, impl="threefry2x32")
    return jb.instances.sphere(key, num_arms=num_arms, dim=dim, noise_var=noise_var)


def _cube():
    key = jax.random.key(3, impl="threefry2x32")
    return jb.instances.logistic_cube(key, num_arms=100, dim=20)


def _deep(num_examples, num_features):
    """Random points around ten centres, one per class, with the sizes of an image set."""
    rng = np.random.default_rng(12)
    labels = np.arange(num_examples) % 10
    centres = rng.uniform(size=(10, num_features))
    points = (centres[labels] + rng.uniform(size=(num_examples, num_features))) / 2
    instance = jb.instances.labelled(points.astype(np.float32), labels)
    return Task(instance, partial(jb.deep_fpl, a=1.0), 2_000)


def _soare(dim, angle, algorithm):
    return Task(jb.instances.soare(dim, angle=angle), algorithm)


def _gse_64(**options):
    return Task(sphere(5, 64, 10, 0.1), partial(jb.gse, budget=1280, **options))


LINGAPE, RAGE = partial(jb.lingape, delta=0.05), partial(jb.rage, delta=0.05)
# The number of arms and features of the drug-repurposing data, which may not be distributed.
TOP_M = partial(jb.m_lingape, m=5, delta=0.05, threshold="heuristic")
TASKS = {
    "lingape-soare": lambda: _soare(5, 0.3, LINGAPE),
    "lingape-sphere": lambda: Task(sphere(5, 50, 20, 0.1), LINGAPE),
    "m-lingape-drug": lambda: Task(sphere(6, 10, 71, 0.01), TOP_M),
    "rage-soare": lambda: _soare(10, 0.01, RAGE),
    "rage-sphere": lambda: Task(sphere(9, 100, 9, 1.0), RAGE),
    "gse-16": lambda: Task(jb.instances.canonical(16, gap=1.0), partial(jb.gse, budget=320)),
    "gse-64": _gse_64,
    "gse-64-d-opt": partial(_gse_64, design="d_opt"),
    "deep-64": lambda: _deep(1_800, 64),
    "deep-784": lambda: _deep(10_000, 784),
    "glm-tsl": lambda: Task(_cube(), jb.glm_tsl, 500),
}


def engines():
    """The names of the engines that this machine has."""
    return ("xla", "native") if compiler() else ("xla",)


def task_of(name):
    """The task with this name; its instance is drawn anew."""
    return TASKS[name]()
