"""GSE: a few stages, each with one linear system, so that choosing and drawing weigh as much."""

import math
from functools import partial

import jax
import numpy as np

import jaxbandits as jb

from ..baselines import designs, gse
from ..contest import OURS, Contest
from .streams import others, phase_noise_of, phase_orders_of

SAME = 20  # replications compared on the same noise
TOL = 0.01  # of the D-optimal designs, the package's default


def _simulate(instance, budget, number, seed=0, **options):
    algorithm = partial(jb.gse, budget=budget, **options)
    return jb.simulate(instance, algorithm, replications=number, seed=seed)


def _gse(name, instance, budget, *, few, quick):
    numbers, loops = gse.problem(instance, budget), others(gse)
    loops["numpy pulls"] = gse.in_numpy_pulls
    ours = partial(_simulate, instance, budget)

    def agree():
        shape, answers = (len(numbers.draws), len(numbers.means)), ours(SAME).answer
        with jax.enable_x64(True):
            for r in range(SAME):
                noise, orders = phase_noise_of(0, r, *shape), phase_orders_of(0, r, *shape)
                for who, loop in loops.items():
                    found = loop(numbers, 1, 0, orders=orders, noise=noise)
                    assert found[0] == answers[r], (name, who, r)
        return f"{SAME} replications, the answer of each, on the same noise"

    def contestant(loop, number):
        return lambda: len(loop(numbers, number, 1))

    compiled, few = (1000, 20) if quick else (20_000, few)
    contestants = {OURS: lambda: len(ours(compiled).answer)}
    for who, loop in loops.items():
        contestants[who] = contestant(loop, few if "numpy" in who else compiled)
    return Contest(name, "replication", contestants, agree, rounds=2 if quick else 5)


def _sphere():
    key = jax.random.key(5, impl="threefry2x32")
    return jb.instances.sphere(key, num_arms=64, dim=10, noise_var=0.1)


def gse_16(quick=False):
    """Sixteen orthogonal arms, one of them good."""
    instance = jb.instances.canonical(16, gap=1.0)
    return _gse("gse 16", instance, 320, few=1000, quick=quick)


def gse_64(quick=False):
    """Sixty-four arms in ten dimensions."""
    return _gse("gse 64", _sphere(), 1280, few=500, quick=quick)


def gse_64_d_opt(quick=False):
    """The same arms, drawn by a D-optimal design of those alive; "uniform" is ours without it."""
    instance, budget = _sphere(), 1280
    numbers = gse.problem(instance, budget)
    ours = partial(_simulate, instance, budget, design="d_opt")

    def agree():
        # With this little to spend errors are common, so that a difference would show.
        number, little = 300, 180
        found = gse.in_numpy_d_opt(gse.problem(instance, little), number, 1)
        runs = _simulate(instance, little, number, design="d_opt")
        wrong = ~runs.correct, found != best(instance)
        rates = [float(np.mean(w)) for w in wrong]
        error = math.sqrt(sum(p * (1.0 - p) for p in rates) / number)
        assert abs(rates[0] - rates[1]) <= 4.0 * error, rates
        worst = max(designs.excess(x, designs.d_optimal(x, TOL)) for x in some_alive(numbers))
        assert worst <= TOL + 1e-9, worst
        return f"errors {rates[0]:.3f} and {rates[1]:.3f} of {number}; designs to {worst:.4f}"

    many, few = (200, 3) if quick else (2000, 100)
    contestants = {
        OURS: lambda: len(ours(many).answer),
        "uniform": lambda: len(_simulate(instance, budget, many).answer),
        "numpy": lambda: len(gse.in_numpy_d_opt(numbers, few, 1)),
    }
    return Contest("gse 64 d-opt", "replication", contestants, agree, rounds=2 if quick else 5)


def best(instance):
    """The arm with the largest mean."""
    return int(np.argmax(instance.means))


def some_alive(numbers):
    """Features of random survivors of each stage, among them sets that do not span."""
    rng = np.random.default_rng(0)
    for size in (len(numbers.arms), *numbers.sizes):
        yield numbers.arms[rng.permutation(len(numbers.arms))[:size]]


CONTESTS = {"gse-16": gse_16, "gse-64": gse_64, "gse-64-d-opt": gse_64_d_opt}
