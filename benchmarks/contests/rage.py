"""RAGE: a few phases; nearly all time goes into their optimal designs."""

import jax

from ..baselines import rage
from ..contest import OURS, Contest
from ..tasks import Task, sphere, task_of
from .streams import others, phase_noise_of

SAME = 5  # replications compared on the same noise
LOSS = 0.01  # designs are accurate to 1e-3, so totals of draws may differ by that much


def _rage(name, task, *, replications, few, rounds, quick):
    delta = task.algorithm.keywords["delta"]
    numbers, loops = rage.problem(task.instance, delta), others(rage)
    if quick:
        loops.pop("numba", None)  # compiling it takes most of a minute
    ours = task.play

    def agree():
        runs, most = ours(SAME), 0.0
        with jax.enable_x64(True):
            phases = int(runs.info["phases"].max())
            for r in range(SAME):
                noise = phase_noise_of(0, r, phases, len(numbers.means))
                for who, loop in loops.items():
                    found = loop(numbers, 1, 0, noise=noise)
                    assert found.answer[0] == runs.answer[r], (name, who, r)
                    most = max(most, abs(found.pulls[0] / runs.pulls[r] - 1.0))
        assert most <= LOSS, (name, most)
        return f"{SAME} replications, answers, and draws to {most:.1e}, on the same noise"

    def contestant(loop, number):
        return lambda: len(loop(numbers, number, 1).answer)

    number, few = (SAME, 1) if quick else (replications, few)
    contestants = {OURS: lambda: len(ours(number).answer)}
    for who, loop in loops.items():
        contestants[who] = contestant(loop, few)
    return Contest(name, "replication", contestants, agree, rounds=2 if quick else rounds)


def rage_soare(quick=False):
    """Eleven arms in ten dimensions, two of them close: fifteen phases, most with one pair left."""
    task = task_of("rage-soare")
    return _rage("rage soare", task, replications=256, few=10, rounds=5, quick=quick)


def rage_sphere(quick=False):
    """A hundred arms in nine dimensions: designs for up to 4950 pairs; twenty arms if `quick`."""
    task = task_of("rage-sphere")
    if quick:
        task = Task(sphere(9, 20, 9, 1.0), task.algorithm)
    return _rage("rage sphere", task, replications=1000, few=5, rounds=1, quick=quick)


CONTESTS = {"rage-soare": rage_soare, "rage-sphere": rage_sphere}
