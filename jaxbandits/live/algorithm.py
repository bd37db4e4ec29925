"""The two steps of a live run that call the algorithm: begin and learn."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..core import Move
from ..engine.episode import INIT, ask_key, fold_in, kept
from ..engine.protocol import check_built
from ..engine.purity import one_round
from ..parameters import require
from ..system import keeping
from ..system.callbacks import errors_named
from ..system.jax_options import pinned
from ..system.randomness import Watch, check
from ..system.traces import Trace, arguments_of, reading, shapes_of
from ..types import Key, Pytree
from .constructor import BoundConstructor, Numbers
from .snapshot import Snapshot

NO_ROWS: Int[np.ndarray, " 0"] = np.zeros(0, np.int64)  # shown


class Step(NamedTuple):
    """One of the three functions of an algorithm, as it is compiled; hashable."""

    constructor: BoundConstructor  # static; its numbers are arguments
    function: Callable[..., Pytree]  # one of those below

    def __call__(self, *arguments: Any) -> Pytree:
        """What the function returns; other numbers of the same shapes compile nothing."""
        treedef, avals = shapes_of(arguments)
        program = _program(self.known(treedef, avals), treedef, avals)
        if self.constructor.traces is None:
            return program(*arguments)
        with errors_named():
            return jax.block_until_ready(program(*arguments))

    def shapes(self, *arguments: Any) -> Pytree:
        """The shapes of what it returns, from tracing alone."""
        known = self.known(*shapes_of(arguments))
        return known.shapes if isinstance(known, Trace) else _jitted(known).eval_shape(*arguments)

    def known(self, treedef: Any, avals: tuple[Any, ...]) -> "Step | Trace":
        """That by which its program is known, and of which it is made.

        Of functions that are not this package's own it is a trace, made once for a live run: they
        may read something else later.
        """
        traces = self.constructor.traces
        if traces is None:
            return self
        call = functools.partial(self.function, self.constructor)
        return traces.trace_of(self.function, call, treedef, avals)


@keeping.remembered
def _program(step: Step | Trace, treedef: Any, avals: tuple[Any, ...]) -> Callable[..., Pytree]:
    arguments = arguments_of(treedef, avals)
    name = keeping.name_of("live", step, treedef, avals)
    more = getattr(step, "digest", None)
    return keeping.program(name, lambda: _jitted(step).lower(*arguments), arguments, more)


@keeping.remembered
def _jitted(step: Step | Trace) -> Any:
    """The function under `jit`: what was traced for its shapes is not traced again."""
    whole = step if isinstance(step, Trace) else functools.partial(step.function, step.constructor)
    return jax.jit(whole, keep_unused=True)


def _init(constructor: BoundConstructor, numbers: Numbers, key: Key) -> Pytree:
    return constructor(numbers).init(fold_in(key, INIT))


def _ask(
    constructor: BoundConstructor,
    numbers: Numbers,
    key: Key,
    rounds: Int[Array, ""],
    state: Pytree,
    *context: Any,
) -> Move:
    return constructor(numbers).ask(ask_key(key, rounds), state, *context)


def _tell(
    constructor: BoundConstructor,
    numbers: Numbers,
    state: Pytree,
    move: Move,
    total: Float[Array, "*S"],
) -> Pytree:
    return constructor(numbers).tell(state, move, total)


class LiveAlgorithm(NamedTuple):
    """An algorithm with its numbers and its random stream: replication 0 of a simulation."""

    constructor: BoundConstructor
    numbers: Numbers
    key: Key
    contextual: bool  # whether the algorithm is shown some rows of the arms each round

    def begin(self) -> Snapshot:
        """The `Snapshot` before the first reward."""
        with pinned():
            state = Step(self.constructor, _init)(self.numbers, self.key)
            move = self._nothing_asked() if self.contextual else self._ask(0, state)
        zeros = np.zeros(len(self.numbers["arms"]), np.int64)
        empty = Snapshot(state, move, 0, zeros, zeros, zeros.astype(float), {}, 0)
        if self.contextual:
            return empty._replace(shown=NO_ROWS)
        return self._skip_empty(empty)

    def learn(self, snapshot: Snapshot, move: Move, total: Any) -> Snapshot:
        """The `Snapshot` after a round: `total [S]` are the rewards of `move`."""
        with pinned():
            total = np.float64(total)
            state = Step(self.constructor, _tell)(self.numbers, snapshot.state, move, total)
            # What will be shown next is not known; most algorithms that stop do so whatever it is.
            rounds, context = snapshot.rounds + 1, (snapshot.shown,) * self.contextual
            move = self._ask(rounds, state, *context)
            if self.contextual:
                blank = self._nothing_asked()
                move = blank._replace(done=move.done, info=_with_kept(blank.info, move.info))
        zeros = np.zeros_like(snapshot.told)
        after = snapshot._replace(
            state=state,
            move=move,
            rounds=rounds,
            told=zeros,
            sums=zeros.astype(float),
        )
        return after._replace(shown=NO_ROWS) if self.contextual else self._skip_empty(after)

    def show(self, snapshot: Snapshot, shown: Int[np.ndarray, " N"]) -> Snapshot:
        """The `Snapshot` that has asked for one of the rows `shown`."""
        with pinned():
            move = self._ask(snapshot.rounds, snapshot.state, shown)
        return snapshot._replace(move=move, shown=shown)

    def _ask(self, rounds: int, state: Pytree, *context: Any) -> Move:
        ask = Step(self.constructor, _ask)
        move = ask(self.numbers, self.key, np.int64(rounds), state, *context)
        move = jax.tree.map(np.asarray, move)
        self._check(move, len(context[0]) if context else len(self.numbers["arms"]))
        return move

    def _check(self, move: Move, num_arms: int) -> None:
        """Raise for a move that cannot be made."""
        if move.done:
            return
        drawn = move.arm if move.count is None else move.arm[move.count != 0]
        outside = drawn[(drawn < 0) | (drawn >= num_arms)]
        least = 0 if move.count is None else move.count.min()
        if not outside.size and least >= 0:
            return
        text = f"constructor {self.constructor.name} must ask for arms"
        if outside.size:
            raise ValueError(f"{text} from 0 to {num_arms - 1}, it asks for {outside[0]}")
        raise ValueError(f"{text} 0 times or more, it asks for one {least} times")

    def _nothing_asked(self) -> Move:
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self.shapes()[1])

    def _skip_empty(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot after phases that want nothing: there are no rewards of theirs to tell."""
        move = snapshot.move
        if move.count is None or move.done or move.count.any():
            return snapshot
        return self.learn(snapshot, move, np.zeros(move.count.shape))

    def shapes(self, shown: int = 1) -> tuple[Pytree, Move]:
        """State and `Move` as shapes, from tracing alone; of a context of so many rows.

        Raises:
          ValueError: moves are neither one arm nor a count for every arm.
        """
        with pinned():
            tables = {name: (x.shape, x.dtype) for name, x in self.numbers.items()}
            name = keeping.name_of("live shapes", self.constructor, tables, self.contextual, shown)
            make, traces = functools.partial(self._traced_shapes, shown), self.constructor.traces
            if traces is None:
                state, move = keeping.shapes(name, make)
            else:
                state, move = traces.remembered(("shapes", shown), make)
        phase = move.count is not None and move.arm.shape == (len(self.numbers["arms"]),)
        phase = phase and not self.contextual
        require(
            phase or (move.count is None and move.arm.shape == ()),
            f"constructor {self.constructor.name} must ask for one arm or for a count of every "
            f"arm, it asks for arms of shape {move.arm.shape}",
        )
        return state, move

    def _traced_shapes(self, shown: int) -> tuple[Pytree, Move]:
        rounds = jax.ShapeDtypeStruct((), jnp.int64)
        rows = jax.ShapeDtypeStruct((shown,), jnp.int64)
        context = (rows,) if self.contextual else ()
        build = lambda *args: (self.constructor(args[0]), *args[1:])  # noqa: E731
        with reading(self.constructor):
            check_built(build, self.numbers, self.key, context)
        self._check_randomness(context)
        init, ask, tell = (Step(self.constructor, f) for f in (_init, _ask, _tell))
        state = init.shapes(self.numbers, self.key)
        move = ask.shapes(self.numbers, self.key, rounds, state, *context)
        if self.constructor.traces is not None:  # all are read when the run begins
            tell.shapes(self.numbers, state, move, jax.ShapeDtypeStruct(move.arm.shape, float))
        return state, move

    def _check_randomness(self, context: tuple[Any, ...]) -> None:
        """Raise where an algorithm of a user draws from anything but its keys."""
        traces, name = self.constructor.traces, f"algorithm {self.constructor.name}"
        if traces is None:
            return
        constructor = f"{name}: its constructor"

        def whole(watch: Watch, numbers: Numbers, key: Key, context: tuple[Any, ...]) -> Pytree:
            algorithm = watch.call(constructor, self.constructor)(numbers)
            return one_round(watch, name, algorithm, key, context)

        check(whole, self.numbers, self.key, context, traces=traces, rest=constructor, constant=1)


def _with_kept(blank: Any, info: Any) -> Any:
    """The `info` of a move, of which only what results keep; `blank` besides."""
    if isinstance(info, dict):
        return info
    if not kept(info):
        return blank
    parts = (info[0], *blank[1:])
    return type(info)(*parts) if hasattr(info, "_fields") else parts
