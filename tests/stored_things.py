"""Files that earlier versions of the package have stored, and how they were made.

`PYTHONPATH=CHECKOUT python tests/stored_things.py FOLDER` makes them again with that checkout.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import stored_algorithm

import jaxbandits as jb

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]
TABLE = jb.instances.linear(ARMS, [1.0, 0.0])
INSTANCES = {
    "soare": partial(jb.instances.soare, dim=2, angle=0.5),
    "canonical": partial(jb.instances.canonical, dim=2, gap=1.0),
    "table": TABLE,
    "stressed": jb.instances.stressed(TABLE, df=5.0),
}
ALGORITHMS = {
    "halving": partial(jb.sequential_halving, budget=12),
    "at_budget": partial(jb.at_budget(jb.lingape, 12), delta=0.1),
}
PLAN = {"replications": 4, "seed": 3, "progress": False}
BUILD = partial(jb.lingape, delta=0.1)
REWARDS = (0.5, 0.2, 0.9, 0.4, 0.1)


def sweep(out, **changed):
    """The stored sweep; nothing is simulated if `out` holds all of it."""
    return jb.sweep(INSTANCES, ALGORITHMS, out=out, **(PLAN | changed))


def live(path):
    """The stored live run, new or continued from its file."""
    return jb.Live(BUILD, np.asarray(ARMS), path=path, seed=5, theta_norm=1.0)


def own_sweep(out):
    """The stored sweep of an algorithm and an instance of a user."""
    instances = {"table": TABLE, "drawn": stored_algorithm.drawn}
    algorithms = {
        "turns": partial(stored_algorithm.turns, each=2),
        "halving": ALGORITHMS["halving"],
    }
    return jb.sweep(instances, algorithms, out=out, **PLAN)


def own_live(path):
    """The stored live run of an algorithm of a user."""
    build = partial(stored_algorithm.turns, each=2)
    return jb.Live(build, np.asarray(ARMS), path=path, seed=5)


def main(folder):
    """Store a sweep and a live run in a new folder."""
    folder = Path(folder)
    sweep(folder / "sweep")
    for run in (live(folder / "live.npz"), own_live(folder / "own_live.npz")):
        for reward in REWARDS:
            run.ask()
            run.tell(reward)
    own_sweep(folder / "own_sweep")
    jb.simulate(TABLE, jb.uniform, replications=3, horizon=20).save(folder / "runs.npz")


if __name__ == "__main__":
    main(sys.argv[1])
