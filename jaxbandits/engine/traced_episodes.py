"""What a lane does by functions that are not this package's own, as traces of these."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ..core import Run
from ..system.traces import Trace
from ..types import Pytree, Scalar
from .device_loop import Factories, Lane, LoopInputs, Numbers, Record
from .episode import MoveTraits, Traits

NO_QUEUE: Int[np.ndarray, " 0"] = np.zeros(0, int)


class TracedEpisodes:
    """The `Episodes` of a structure as traces, of which programs are made.

    They are equal where the traces are, so they stand for the structure in keys of programs: what
    its functions read is part of the traces, and another structure that does the same shares the
    programs of this one. The numbers of a cell come with the inputs.

    Args:
      structure: makes an `EpisodeFactory` of numbers; its functions are called here, and never
        again.
      inputs: `LoopInputs` with an empty queue, of which the shapes count.
      lane: the shapes of a lane.
      ended: those of the record of one that has ended.
      traits: what is known of the algorithm.
    """

    def __init__(
        self, structure: Factories, inputs: LoopInputs, lane: Lane, ended: Record, traits: Traits
    ) -> None:
        self.lane: Lane = lane
        self.ended: Record = ended
        self.traits: Traits = traits
        zero, lane, moves = np.zeros((), int), jax.tree.map(_strong, lane), traits.moves

        def of_factory(name: str, **options: Any) -> Any:
            def call(inputs: LoopInputs, *args: Any) -> Pytree:
                return getattr(structure(inputs.numbers), name)(inputs, *args, **options)

            return call

        self._problem = Trace(of_factory("problem"), inputs, zero)
        start = of_factory("start", like=lane.run)
        self._start = Trace(start, inputs, zero, lane.problem)
        chunk = lambda inputs, lane: of_factory("chunk")(inputs, moves, lane)  # noqa: E731
        self._chunk = Trace(chunk, inputs, lane)
        record = of_factory("record", stops=moves.stops)
        self._record = Trace(record, inputs, _without_state(lane))

    def __call__(self, numbers: Numbers) -> "TracedEpisodes":
        """Itself."""
        return self

    @property
    def traces(self) -> tuple[Trace, ...]:
        """All that its programs are made of."""
        return self._problem, self._start, self._chunk, self._record

    @property
    def digests(self) -> tuple[str, ...]:
        """What these are, the same in every process."""
        return tuple(trace.digest for trace in self.traces)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedEpisodes) and other.traces == self.traces

    def __hash__(self) -> int:
        return hash(self.traces)

    def problem(self, inputs: LoopInputs, id: Scalar) -> Pytree:
        """See `Episodes`."""
        return self._problem(_unqueued(inputs), id)

    def start(self, inputs: LoopInputs, id: Scalar, problem: Pytree, like: Run) -> Lane:
        """See `Episodes`; shapes are known here."""
        return self._start(_unqueued(inputs), id, problem)

    def chunk(
        self, inputs: LoopInputs, moves: MoveTraits, lane: Lane
    ) -> tuple[Lane, Int[Array, ""], Int[Array, ""]]:
        """See `Episodes`; the moves are those of the trace."""
        return self._chunk(_unqueued(inputs), lane)

    def record(self, inputs: LoopInputs, lane: Lane, *, stops: bool) -> Record:
        """See `Episodes`; whether runs stop is known here."""
        return self._record(_unqueued(inputs), _without_state(lane))


def _unqueued(inputs):
    """The inputs without the queue, whose length is no matter of a lane."""
    return inputs._replace(queue=NO_QUEUE)


def _without_state(lane):
    """The lane as a record needs it: how its state is held depends on the engine."""
    return lane._replace(run=lane.run._replace(state=()))


def _strong(x):
    """The shape of an array that is not weakly typed, as those in a batch of lanes are."""
    return jax.ShapeDtypeStruct(jnp.shape(x), x.dtype)
