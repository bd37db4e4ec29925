"""GSE: a few stages with one linear system each, so selection and draws take as much time."""

import math
from functools import partial

import jax
import numpy as np

from ..baselines import designs, gse
from ..contest import NATIVE, Contest
from ..tasks import task_of
from .engines import alike, both
from .streams import others, phase_noise_of, phase_orders_of

SAME = 20  # replications compared on the same noise
TOL = 0.01  # of the D-optimal designs, the package's default


def _gse(name, task, *, few, quick):
    numbers = gse.problem(task.instance, task.algorithm.keywords["budget"])
    loops, ours = others(gse), task.play
    loops["numpy pulls"] = gse.in_numpy_pulls

    def agree():
        shape, answers = (len(numbers.draws), len(numbers.means)), ours(SAME).answer
        with jax.enable_x64(True):
            for r in range(SAME):
                noise, orders = phase_noise_of(0, r, *shape), phase_orders_of(0, r, *shape)
                for who, loop in loops.items():
                    found = loop(numbers, 1, 0, orders=orders, noise=noise)
                    assert found[0] == answers[r], (name, who, r)
        engines = alike(ours, SAME, ours(SAME))
        return f"{SAME} replications, the answer of each, on the same noise; {engines}"

    def contestant(loop, number):
        return lambda: len(loop(numbers, number, 1))

    compiled, few = (1000, 20) if quick else (20_000, few)
    contestants = both(lambda **options: len(ours(compiled, **options).answer))
    for who, loop in loops.items():
        contestants[who] = contestant(loop, few if "numpy" in who else compiled)
    return Contest(name, "replication", contestants, agree, rounds=2 if quick else 5)


def gse_16(quick=False):
    """Sixteen orthogonal arms, one of them good."""
    return _gse("gse 16", task_of("gse-16"), few=1000, quick=quick)


def gse_64(quick=False):
    """Sixty-four arms in ten dimensions."""
    return _gse("gse 64", task_of("gse-64"), few=500, quick=quick)


def gse_64_d_opt(quick=False):
    """The same arms with a D-optimal design of those alive; "uniform" is ours without designs."""
    plain, task = task_of("gse-64"), task_of("gse-64-d-opt")
    instance, ours = task.instance, task.play
    numbers = gse.problem(instance, task.algorithm.keywords["budget"])

    def agree():
        # With so small a budget errors are frequent, so that a difference would show.
        number, little = 300, 180
        found = gse.in_numpy_d_opt(gse.problem(instance, little), number, 1)
        scarce = partial(task.algorithm, budget=little)
        runs = task._replace(algorithm=scarce).play(number)
        wrong = ~runs.correct, found != best(instance)
        rates = [float(np.mean(w)) for w in wrong]
        error = math.sqrt(sum(p * (1.0 - p) for p in rates) / number)
        assert abs(rates[0] - rates[1]) <= 4.0 * error, rates
        worst = max(designs.excess(x, designs.d_optimal(x, TOL)) for x in some_alive(numbers))
        assert worst <= TOL + 1e-9, worst
        return f"errors {rates[0]:.3f} and {rates[1]:.3f} of {number}; designs to {worst:.4f}"

    many, few = (200, 3) if quick else (2000, 100)
    contestants = both(lambda **options: len(ours(many, **options).answer))
    contestants["uniform"] = lambda: len(plain.play(many).answer)
    if NATIVE in contestants:
        contestants["native uniform"] = lambda: len(plain.play(many, engine="native").answer)
    contestants["numpy"] = lambda: len(gse.in_numpy_d_opt(numbers, few, 1))
    return Contest("gse 64 d-opt", "replication", contestants, agree, rounds=2 if quick else 5)


def best(instance):
    """The arm with the largest mean."""
    return int(np.argmax(instance.means))


def some_alive(numbers):
    """Random sets of surviving arms for each stage; some do not span the space."""
    rng = np.random.default_rng(0)
    for size in (len(numbers.arms), *numbers.sizes):
        yield numbers.arms[rng.permutation(len(numbers.arms))[:size]]


CONTESTS = {"gse-16": gse_16, "gse-64": gse_64, "gse-64-d-opt": gse_64_d_opt}
