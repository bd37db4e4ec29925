"""Where a live run stands, and the two steps that ask the algorithm: begin and learn."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Move
from ..engine.episode import INIT, ask_key, fold_in, kept
from ..engine.protocol import check_built
from ..parameters import require
from .plan import Plan

NOTHING = np.zeros(0, np.int64)  # is shown


class Standing(NamedTuple):
    """All that is saved; K arms. A new one is made for every change."""

    state: Any  # the algorithm's
    move: Move  # what it wants now; NumPy arrays
    rounds: int  # moves learnt from
    arm_pulls: np.ndarray  # int [K] rewards told
    told: np.ndarray  # int [K] of those, in the phase under way
    sums: np.ndarray  # float [K] their sums
    tickets: dict  # number -> arm, of the pulls handed out and not yet told
    issued: int  # tickets handed out so far
    shown: np.ndarray | None = None  # int [.] rows that the move is one of; None: of all

    @property
    def one_arm(self):
        """Whether a move is one pull of one arm, and not a phase."""
        return self.move.count is None

    @property
    def done(self):
        """Whether the algorithm has stopped."""
        return bool(self.move.done)

    @property
    def asked(self):
        """The row of the one arm that is asked for."""
        place = int(self.move.arm)
        return place if self.shown is None else int(self.shown[place])

    def wanted(self):
        """Int [K]: draws of each arm that the phase still waits for, handed out or not."""
        counts = np.zeros_like(self.told)
        counts[self.move.arm] = self.move.count
        return counts - self.told

    def handed_out(self):
        """Int [K]: draws of each arm whose tickets are out."""
        return np.bincount([*self.tickets.values()], minlength=len(self.told)).astype(np.int64)


# Static plan, traced numbers: a second live run that differs in numbers compiles nothing.
@partial(jax.jit, static_argnums=0)
def _init(plan, numbers, key):
    return plan(numbers).init(fold_in(key, INIT))


@partial(jax.jit, static_argnums=0)
def _ask(plan, numbers, key, rounds, state, *context):
    return plan(numbers).ask(ask_key(key, rounds), state, *context)


@partial(jax.jit, static_argnums=0)
def _tell(plan, numbers, state, move, total):
    return plan(numbers).tell(state, move, total)


class Player(NamedTuple):
    """An algorithm with its numbers and its random stream: replication 0 of a simulation."""

    plan: Plan
    numbers: dict
    key: jax.Array
    contextual: bool  # whether the algorithm is shown some rows of the arms each round

    def begin(self):
        """The `Standing` before the first reward."""
        with jax.enable_x64(True):
            state = _init(self.plan, self.numbers, self.key)
            move = self._nothing_asked() if self.contextual else self._ask(0, state)
        zeros = np.zeros(len(self.numbers["arms"]), np.int64)
        empty = Standing(state, move, 0, zeros, zeros, zeros.astype(float), {}, 0)
        if self.contextual:
            return empty._replace(shown=NOTHING)
        return self._skip_empty(empty)

    def learn(self, standing, move, total):
        """The `Standing` after a round: `total [S]` are the rewards of `move`."""
        with jax.enable_x64(True):
            state = _tell(self.plan, self.numbers, standing.state, move, np.float64(total))
            # What will be shown next is not known; most that stop do so whatever it is.
            rounds, context = standing.rounds + 1, (standing.shown,) * self.contextual
            move = self._ask(rounds, state, *context)
            if self.contextual:
                known = self._nothing_asked()
                move = known._replace(done=move.done, info=_with_kept(known.info, move.info))
        zeros = np.zeros_like(standing.told)
        after = standing._replace(
            state=state,
            move=move,
            rounds=rounds,
            told=zeros,
            sums=zeros.astype(float),
        )
        return after._replace(shown=NOTHING) if self.contextual else self._skip_empty(after)

    def show(self, standing, shown):
        """The `Standing` that has asked for one of the rows `shown`, int [.]."""
        with jax.enable_x64(True):
            move = self._ask(standing.rounds, standing.state, shown)
        return standing._replace(move=move, shown=shown)

    def _ask(self, rounds, state, *context):
        move = _ask(self.plan, self.numbers, self.key, np.int64(rounds), state, *context)
        move = jax.tree.map(np.asarray, move)
        self._check(move, len(context[0]) if context else len(self.numbers["arms"]))
        return move

    def _check(self, move, num_arms):
        """Raise for a move that nobody can make."""
        if move.done:
            return
        told = f"constructor {self.plan.name} must ask for arms"
        drawn = move.arm if move.count is None else move.arm[move.count != 0]
        outside = drawn[(drawn < 0) | (drawn >= num_arms)]
        wrong = next(iter(outside.tolist()), None)
        require(wrong is None, f"{told} from 0 to {num_arms - 1}, it asks for {wrong}")
        least = 0 if move.count is None else move.count.min()
        require(least >= 0, f"{told} 0 times or more, it asks for one {least} times")

    def _nothing_asked(self):
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self.shapes()[1])

    def _skip_empty(self, standing):
        """A phase that wants nothing is over at once: nobody could tell its rewards."""
        move = standing.move
        if move.count is None or move.done or move.count.any():
            return standing
        return self.learn(standing, move, np.zeros(move.count.shape))

    def shapes(self, shown=1):
        """State and `Move` as shapes, from tracing alone; of a context of so many rows.

        Raises:
          ValueError: moves are neither one arm nor a count for every arm.
        """
        with jax.enable_x64(True):
            rounds = jax.ShapeDtypeStruct((), jnp.int64)
            rows = jax.ShapeDtypeStruct((shown,), jnp.int64)
            context = (rows,) if self.contextual else ()
            build = lambda *args: (self.plan(args[0]), *args[1:])  # noqa: E731
            check_built(build, self.numbers, self.key, context)
            state = jax.eval_shape(partial(_init, self.plan), self.numbers, self.key)
            ask = partial(_ask, self.plan)
            move = jax.eval_shape(ask, self.numbers, self.key, rounds, state, *context)
        phase = move.count is not None and move.arm.shape == (len(self.numbers["arms"]),)
        phase = phase and not self.contextual
        require(
            phase or (move.count is None and move.arm.shape == ()),
            f"constructor {self.plan.name} must ask for one arm or for a count of every arm, "
            f"it asks for arms of shape {move.arm.shape}",
        )
        return state, move


def _with_kept(blank, info):
    """The `info` of a move, of which only what results keep; `blank` besides."""
    if isinstance(info, dict):
        return info
    if not kept(info):
        return blank
    parts = (info[0], *blank[1:])
    return type(info)(*parts) if hasattr(info, "_fields") else parts
