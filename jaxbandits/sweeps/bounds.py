"""Lower bounds on the pulls of any algorithm, for the cells of a sweep where they are known."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .cells import Cell

# Options of algorithms that promise no error rate, or that of another answer than the best one.
NO_ERROR_RATE = ("budget", "horizon")
OTHER_ANSWERS = ("m",)


def pull_lower_bounds(cells: Iterable[Cell | None]) -> list[float]:
    """Least mean pulls of each cell's task, float; NaN where it is not known.

    Known for one instance with normal rewards, linear in the features, and an algorithm that
    promises the best answer with probability 1 - delta.
    """
    from ..theory import confidence, pull_time, why_not

    times: dict[int, float] = {}
    found: list[float] = []
    for cell in cells:
        if cell is None:
            found.append(np.nan)
            continue
        delta, problem = _promised(cell), cell.problem
        if delta is not None and id(problem) not in times:
            known = why_not(problem) is None
            times[id(problem)] = float(pull_time(problem)) if known else np.nan
        found.append(np.nan if delta is None else times[id(problem)] * confidence(delta))
    return found


def promised_error(build: Any, options: Mapping[str, Any]) -> float:
    """The error rate that an algorithm with these options promises not to exceed; NaN: none."""
    known = inspect.signature(build).parameters
    if "delta" not in known or any(name in known for name in NO_ERROR_RATE):
        return np.nan
    given = {name: p.default for name, p in known.items()} | dict(options)
    delta = given["delta"]
    exact = not given.get("epsilon", 0.0)
    return float(delta) if exact and isinstance(delta, float | int) else np.nan


def _promised(cell: Cell) -> float | None:
    """The delta of a cell whose algorithm is to find the best answer, or None."""
    delta = promised_error(cell.algorithm.build, cell.options)
    known = inspect.signature(cell.algorithm.build).parameters
    one_answer = not any(name in known for name in OTHER_ANSWERS)
    return delta if one_answer and np.isfinite(delta) else None
