"""Whether a simulator still draws the rewards whose means an instance has."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..feature_tables import is_concrete
from ..precision import is_traced
from ..system.jax_options import pinned
from ..system.named import is_named
from ..system.traces import Trace, TraceCache, digest_of, shapes_of
from ..types import Pytree, Table
from .instance import Instance
from .stress import Scaled


def reward_trace(simulator: Pytree, traces: TraceCache | None = None) -> Trace:
    """The reward of a simulator, a key and an arm, traced anew, or once for `traces`."""
    args = simulator, jax.random.key(0, impl="threefry2x32"), jnp.zeros((), int)
    return (traces or TraceCache()).trace("reward", lambda x, *rest: x.reward(*rest), *args)


class Code(str):
    """Types of a simulator's arrays, and the operations of its reward: what programs know.

    Codes are equal whatever the numbers are, which no program depends on.

    Attributes:
      arrays, means: digests of those of the simulator, and of the means that were taken from them.
    """

    __slots__: tuple[str, ...] = ("arrays", "means")
    arrays: str
    means: str

    def note_means(self, means: Table) -> None:
        """Keep the digest of the means."""
        self.means = _digest(means) if is_concrete(means) else ""


def code_of(simulator: Pytree, trace: Trace) -> Code:
    """`Instance.simulator_code` of a simulator, without its means."""
    code = Code(f"{_types(simulator)} {trace.digest}")
    code.arrays, code.means = _digest(simulator), ""
    return code


def _digest(tree: Any) -> str:
    return "".join(digest_of(np.asarray(x)) for x in jax.tree.leaves(tree))


def _types(simulator: Any) -> str:
    _, avals = shapes_of(simulator)
    return ",".join(f"{dtype}{[*shape]}" for shape, dtype in avals).replace(" ", "")


def check_code(instance: Instance, traces: TraceCache) -> None:
    """Raise where the reward of a simulator is not what it was when its means were taken.

    Where the types of its arrays are others, it cannot be compared. Where its arrays are others,
    the means have to be others too.

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
    if not (isinstance(code, Code) and is_concrete(instance.means)):
        return
    if _digest(instance.means) == code.means and _digest(simulator) != code.arrays:
        raise ValueError(
            "simulator: its arrays are not those from which the means of the instance were taken: "
            "build the instance again, by instances.simulated, or replace the means too"
        )
