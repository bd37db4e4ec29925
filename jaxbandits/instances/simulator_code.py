"""Whether a simulator still draws the rewards whose means an instance has."""

from typing import Any

import jax
import jax.numpy as jnp

from ..precision import is_traced
from ..system.jax_options import pinned
from ..system.named import is_named
from ..system.traces import Trace, TraceCache, shapes_of
from ..types import Pytree
from .instance import Instance
from .stress import Scaled


def reward_trace(simulator: Pytree, traces: TraceCache | None = None) -> Trace:
    """The reward of a simulator, a key and an arm, traced anew, or once for `traces`."""
    args = simulator, jax.random.key(0, impl="threefry2x32"), jnp.zeros((), int)
    return (traces or TraceCache()).trace("reward", lambda x, *rest: x.reward(*rest), *args)


def code_of(simulator: Pytree, trace: Trace) -> str:
    """`Instance.simulator_code`: types of the simulator's arrays, and operations of its reward."""
    return f"{_types(simulator)} {trace.digest}"


def _types(simulator: Any) -> str:
    _, avals = shapes_of(simulator)
    return ",".join(f"{dtype}{[*shape]}" for shape, dtype in avals).replace(" ", "")


def check_code(instance: Instance, traces: TraceCache) -> None:
    """Raise where the reward of a simulator is not what it was when its means were taken.

    Where the types of its arrays are others, it cannot be compared.

    Args:
      instance: any.
      traces: of the call that reads it.
    """
    code, simulator = instance.simulator_code, instance.simulator
    while isinstance(simulator, Scaled):
        simulator = simulator.simulator
    known = code is not None and simulator is not None and not is_traced(simulator)
    if not known or is_named(jax.tree.structure(simulator)):
        return
    with pinned():
        if code.split()[0] != _types(simulator):
            return
        now = code_of(simulator, reward_trace(simulator, traces))
    if now != code:
        raise ValueError(
            "simulator: its reward, or what that reads, is not what it was when the means of the "
            "instance were taken: build the instance again, by instances.simulated"
        )
