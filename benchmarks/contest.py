"""Times several programs (contestants) on the same task in turn; prints and stores the figures."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from jaxbandits.system.machine import features, processor

from . import build

OURS, NATIVE = "jaxbandits", "native engine"  # the package with its two engines
VECTORS = "avx512f", "avx2", "asimd"  # widest first


class Contest(NamedTuple):
    """A task and the programs that are timed on it."""

    name: str
    unit: str  # the unit of work: "round" or "replication"
    contestants: dict[str, Callable[[], int]]  # each does some work and returns how many units
    agree: Callable[[], str]  # compares the results; raises, or describes the agreement
    rounds: int = 5


def race(contest):
    """CPU seconds per unit of work of each contestant: median, minimum and maximum over rounds."""
    agreed = contest.agree()
    for work in contest.contestants.values():
        work()  # compiles
    seconds = {name: [] for name in contest.contestants}
    for _ in range(contest.rounds):
        for name, work in contest.contestants.items():
            began = time.process_time()
            done = work()
            seconds[name].append((time.process_time() - began) / done)
    figures = {
        name: {"median": statistics.median(x), "least": min(x), "most": max(x)}
        for name, x in seconds.items()
    }
    result = {"unit": contest.unit, "agreed": agreed, "seconds": figures, "ratios": ratios(figures)}
    if NATIVE in figures:
        result["native_ratios"] = ratios(figures, NATIVE)
    return result


def ratios(figures, ours=OURS):
    """How many times faster ours is than each other contestant, by minimum times."""
    least = figures[ours]["least"]
    return {name: f["least"] / least for name, f in figures.items() if name != ours}


def machine(device):
    """The machine and the versions with which the figures were measured."""
    packages = {}
    for name in ("jax", "jaxlib", "numpy", "numba"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "processor": processor(),
        "vectors": next((name for name in VECTORS if name in features()), None),
        "cores": os.cpu_count(),
        "device": device,
        "python": platform.python_version(),
        "compiler": build.version(),
        "date": time.strftime("%Y-%m-%d"),
        **packages,
    }


def table(results):
    """Lines of a table of all contests."""
    lines = [
        f"{'contest':16s} {'contestant':14s} {'microseconds per':>24s} {'ours is faster':>15s}"
        f" {'native':>12s}"
    ]
    for name, result in results.items():
        for who, figures in result["seconds"].items():
            times = [result.get(key, {}).get(who) for key in ("ratios", "native_ratios")]
            ratio, native = ("" if x is None else f"{x:.2f} times" for x in times)
            cost = f"{figures['least'] * 1e6:.4g} {result['unit']}"
            lines.append(f"{name:16s} {who:14s} {cost:>24s} {ratio:>15s} {native:>12s}")
    return lines


def save(path, results, device):
    """Write the figures of all contests and a description of the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine(device), "results": results}, indent=1) + "\n")
