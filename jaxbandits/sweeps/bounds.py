"""What no algorithm can beat, beside the cells of a sweep for which it is known."""

import inspect

import numpy as np

# Options of algorithms that promise something else than the best answer with probability 1 - delta.
OTHER_PROMISES = ("budget", "horizon", "m")


def pull_lower_bounds(cells):
    """Least mean pulls of each cell's task, float; NaN where it is not known.

    Known for one instance with normal rewards, linear in the features, and an algorithm that
    promises the best answer with probability 1 - delta.
    """
    from ..theory import confidence, known_pull_time

    times, found = {}, []
    for cell in cells:
        delta = _promised(cell)
        problem = cell.problem
        if delta is None or not hasattr(problem, "arms"):
            found.append(np.nan)
            continue
        if id(problem) not in times:
            times[id(problem)] = known_pull_time(problem)
        found.append(times[id(problem)] * confidence(delta))
    return found


def _promised(cell):
    """The delta of a cell whose algorithm is to find the best answer, or None."""
    build = cell.algorithm.build
    options = cell.algorithm.at(cell.point)
    known = inspect.signature(build).parameters
    if "delta" not in known or any(name in known for name in OTHER_PROMISES):
        return None
    options = {name: p.default for name, p in known.items()} | options
    delta = options["delta"]
    exact = not options.get("epsilon", 0.0)
    return float(delta) if exact and isinstance(delta, float | int) else None
