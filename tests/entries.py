"""Digests of what each entry of the package returns; a program too, for a process of its own.

`python tests/entries.py [all] NAME=VALUE ...` sets options of JAX first, as a user's program does.
"""

import hashlib
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import environment  # noqa: F401  before JAX, which reads it once
import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb

RUNS = ("pulls", "answer", "correct", "arm_pulls")


class Noisy(NamedTuple):
    """A simulator of a user."""

    scale: Any

    def reward(self, key, arm):
        return 0.5 * arm + self.scale * jax.random.normal(key)


def shuffled(key):
    """Instances of a user, by a law for which JAX has an option, and operations of unlike ranks."""
    coin, noise = jax.random.split(key)
    theta = jnp.array([1.0, 0.3, 0.0]) + 0.01 * jax.random.gumbel(noise, (3,))
    table = jnp.eye(3) * jax.random.permutation(coin, jnp.arange(1, 4))
    return jb.instances.linear(table, theta, noise_var=0.25)


def numbers(runs):
    return [getattr(runs, name) for name in RUNS], runs.regret


def fixed_key():
    """A key that depends on no option, as one of `jax.random.key` does."""
    return jax.random.wrap_key_data(given([0, 3], np.uint32), impl="threefry2x32")


def given(numbers, dtype=np.float32):
    """An array of the caller, sent to the device openly: an option forbids all else."""
    return jax.device_put(np.array(numbers, dtype))


def soare():
    return jb.instances.soare(2, angle=0.5)


def lin_ts():
    return numbers(jb.simulate(soare(), jb.lin_ts, horizon=20, replications=8, engine="xla"))


def live():
    """A run that is closed after each reward, and continued from its file."""
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            with jb.Live(jb.lin_ts, np.eye(2), path=Path(folder, "run.npz")) as run:
                asked.append(run.ask())
                run.tell(0.3 * number)
                found = run.answer, run.arm_pulls
    return asked, found


def sweep():
    halving = partial(jb.sequential_halving, budget=20)
    sphere = partial(jb.instances.sphere, num_arms=4, dim=2)
    with tempfile.TemporaryDirectory() as folder:
        found = jb.sweep({"s": sphere}, {"h": halving}, replications=4, out=folder, progress=False)
        return [found[name].values for name in RUNS if name in found]


def in_jit():
    weights = jax.jit(lambda arms: jb.design.d_optimal(arms).weights)
    return weights(given([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))


def in_vmap():
    arms, counts = given([[1.0, 0.0], [0.0, 1.0], [0.5, 0.4]]), given([10.0, 10.0, 10.0])
    fit = jax.vmap(lambda sums: jb.fit_glm(arms, counts, sums).theta)
    return fit(given([[3.0, 4.0, 5.0], [6.0, 5.0, 4.0]]))


def by_hand():
    """An algorithm that a user calls step by step, in JAX's default precision."""
    algorithm = jb.lucb(np.eye(3, dtype=np.float32), m=1, delta=0.1)
    state = algorithm.init(fixed_key())
    move = algorithm.ask(fixed_key(), state)
    return algorithm.tell(state, move, given(1.0)), move.arm


def own():
    options = {"horizon": 8, "replications": 4, "engine": "xla"}
    return numbers(jb.simulate(shuffled, jb.uniform, **options))


QUICK = {
    "sphere": lambda: jax.tree.leaves(jb.instances.sphere(fixed_key(), 4, 2)),
    "simulated": lambda: jb.instances.simulated(np.eye(2), Noisy(0.1), noise_var=0.01).means,
    "simulate": lin_ts,
    "live": live,
    "rounding": lambda: jb.rounding.efficient(np.array([0.3, 0.7]), 10),
    "by hand": by_hand,
    "in jit": in_jit,
}
ALL = QUICK | {
    "cube": lambda: jax.tree.leaves(jb.instances.logistic_cube(fixed_key(), 4, 2)),
    "own": own,
    "native": lambda: numbers(jb.simulate(soare(), partial(jb.gse, budget=40), replications=8)),
    "sweep": sweep,
    "design": lambda: jb.design.xy_optimal(np.eye(2), np.eye(2)),
    "theory": lambda: jb.theory.characteristic_time(soare()),
    "bound": lambda: jb.theory.gse_error_bound(soare(), 200),
    "in vmap": in_vmap,
}


def digest(tree):
    """A digest of the numbers in a tree; bits, types and shapes count."""
    found = hashlib.sha256()
    for leaf in map(np.asarray, jax.tree.leaves(tree)):
        found.update(repr((str(leaf.dtype), leaf.shape)).encode() + leaf.tobytes())
    return found.hexdigest()[:16]


def digests(entries):
    return {name: digest(entry()) for name, entry in entries.items()}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument != "all":
            name, text = argument.split("=")
            jax.config.update(name, json.loads(text))
    print(json.dumps(digests(ALL if "all" in sys.argv else QUICK)))
