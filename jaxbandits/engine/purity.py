"""That functions of users draw from the keys that they are given, and from nothing else.

Functions of the package do, so they are not traced for it.
"""

from typing import Any

import jax
import numpy as np
from jax.random import fold_in

from ..core import Algorithm
from ..signatures import name_of
from ..system.jax_options import pinned
from ..system.named import is_named
from ..system.randomness import Watch, check, reward_drawn
from ..system.traces import TraceCache, traces_of
from ..types import Key, Pytree
from .device_loop import Numbers
from .episode import INIT, ask_key, root_key
from .partition import CellStructure
from .problems import is_problem
from .traits import shapes_of


def check_randomness(structure: CellStructure, numbers: Numbers) -> None:
    """Raise where an instance, a simulator or an algorithm of a user has randomness of its own.

    Args:
      structure, numbers: a cell, as `partition.prepared` returns it.
    Raises:
      ValueError: names the function and shows the right form.
    """
    traces = traces_of(structure)
    if traces is not None:
        once = "randomness", structure, shapes_of(numbers)
        with pinned():
            key = root_key(0)  # here: what is computed while functions are read is compiled anew
            traces.remembered(once, lambda: _check(structure, numbers, key, traces))


def _check(structure: CellStructure, numbers: Numbers, key: Key, traces: TraceCache) -> None:
    problem, build, _ = structure.tree(numbers)
    # Names for errors; "" for what is not a function of a user.
    instance = "" if is_problem(problem) else f"instance {name_of(problem)}"
    algorithm = "" if _is_own(build) else f"algorithm {name_of(build)}"

    def whole(watch: Watch, numbers: Numbers, key: Key, zero: Any) -> Pytree:
        constructor = f"{algorithm}: its constructor"
        factory = watch.call(constructor, structure)(numbers) if algorithm else structure(numbers)
        draw = lambda key: factory.draw(key, *factory.locate(zero))  # noqa: E731
        drawn = (watch.part(instance, draw) if instance else draw)(key)
        found = [drawn]
        simulator = getattr(drawn if instance else problem, "simulator", None)
        if simulator is not None and not _is_own(simulator):
            found.append(reward_drawn(watch, simulator, key, zero))
        if algorithm:
            env, made, _ = watch.call(constructor, factory.build)(drawn)
            found.append(one_round(watch, algorithm, made, key, env.context(key)))
        return found

    check(
        whole,
        numbers,
        key,
        np.zeros((), int),
        traces=traces,
        rest=f"{algorithm or instance}: its constructor",
        constant=1,
    )


def _is_own(tree: Any) -> bool:
    """Whether a pytree is made of what is of this package, Python or JAX, and of numbers."""
    leaves, treedef = jax.tree.flatten(tree)
    return is_named(treedef, *(x for x in leaves if not isinstance(x, jax.Array)))


def one_round(
    watch: Watch, name: str, algorithm: Algorithm, key: Key, context: tuple[Any, ...]
) -> Pytree:
    """What the three functions of an algorithm return, each looked at; `name` is for errors."""
    state = watch.part(f"{name}: its init", algorithm.init)(fold_in(key, INIT))
    move = watch.part(f"{name}: its ask", algorithm.ask)(ask_key(key, 0), state, *context)
    total = jax.random.normal(key, move.arm.shape)  # rewards that no function knows before
    return state, move, watch.part(f"{name}: its tell", algorithm.tell)(state, move, total)
