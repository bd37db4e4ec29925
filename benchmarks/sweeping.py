"""Times a sweep of 200 cells that differ only in numbers, and a `simulate` for each cell."""

import time
from functools import partial

import numpy as np

import jaxbandits as jb
from jaxbandits.engine import host_loop

ANGLES, DELTAS = np.linspace(0.3, 1.0, 20), np.linspace(0.01, 0.2, 10)
SCALE, DIM = 2.0, 5


def measure(replications, engine, angles=ANGLES, deltas=DELTAS, rounds=3):
    """Minimum wall seconds of both ways, without compilation, and whether the pulls agree."""
    cells = [(float(a), float(d)) for a in angles for d in deltas]
    programs = host_loop.program.cache_info().misses
    began = time.perf_counter()
    swept = _sweep(angles, deltas, replications, engine)  # the first call compiles
    cold = time.perf_counter() - began
    programs = host_loop.program.cache_info().misses - programs
    began = time.perf_counter()
    alone = _one_by_one(cells, replications, engine)
    cold_alone = time.perf_counter() - began
    least = {"sweep": np.inf, "simulate": np.inf}
    for _ in range(rounds):
        for name, work in (
            ("sweep", lambda: _sweep(angles, deltas, replications, engine)),
            ("simulate", lambda: _one_by_one(cells, replications, engine)),
        ):
            began = time.perf_counter()
            work()
            least[name] = min(least[name], time.perf_counter() - began)
    pulls = np.stack([runs.pulls for runs in alone])
    return {
        "cells": len(cells),
        "replications": replications,
        "programs": programs,
        "seconds": least,
        "with_compiling": {"sweep": cold, "simulate": cold_alone},
        "ratio": least["simulate"] / least["sweep"],
        "equal": bool((swept.pulls.values.reshape(pulls.shape) == pulls).all()),
    }


def _sweep(angles, deltas, replications, engine):
    return jb.sweep(
        {"soare": partial(jb.instances.soare, dim=DIM, scale=SCALE)},
        {"LinGapE": jb.lingape},
        axes={"angle": angles.tolist(), "delta": deltas.tolist()},
        replications=replications,
        engine=engine,
        progress=False,
    )


def _one_by_one(cells, replications, engine):
    return [
        jb.simulate(
            jb.instances.soare(DIM, angle=angle, scale=SCALE),
            partial(jb.lingape, delta=delta),
            replications=replications,
            engine=engine,
        )
        for angle, delta in cells
    ]
