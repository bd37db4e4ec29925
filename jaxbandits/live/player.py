"""Where a live run stands, and the two steps that ask the algorithm: begin and learn."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Move
from ..driver import INIT, ask_key, fold_in
from ..options import require
from .plan import Plan


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

    @property
    def one_arm(self):
        """Whether a move is one pull of one arm, and not a phase."""
        return self.move.count is None

    @property
    def done(self):
        """Whether the algorithm has stopped."""
        return bool(self.move.done)

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
def _ask(plan, numbers, key, rounds, state):
    return plan(numbers).ask(ask_key(key, rounds), state)


@partial(jax.jit, static_argnums=0)
def _tell(plan, numbers, state, move, total):
    return plan(numbers).tell(state, move, total)


class Player(NamedTuple):
    """An algorithm with its numbers and its random stream: replication 0 of a simulation."""

    plan: Plan
    numbers: dict
    key: jax.Array

    def begin(self):
        """The `Standing` before the first reward."""
        with jax.enable_x64(True):
            state = _init(self.plan, self.numbers, self.key)
            move = self._ask(0, state)
        zeros = np.zeros(len(self.numbers["arms"]), np.int64)
        empty = Standing(state, move, 0, zeros, zeros, zeros.astype(float), {}, 0)
        return self._skip_empty(empty)

    def learn(self, standing, move, total):
        """The `Standing` after a round: `total [S]` are the rewards of `move`."""
        with jax.enable_x64(True):
            state = _tell(self.plan, self.numbers, standing.state, move, np.float64(total))
            move = self._ask(standing.rounds + 1, state)
        zeros = np.zeros_like(standing.told)
        after = standing._replace(
            state=state,
            move=move,
            rounds=standing.rounds + 1,
            told=zeros,
            sums=zeros.astype(float),
        )
        return self._skip_empty(after)

    def _ask(self, rounds, state):
        move = _ask(self.plan, self.numbers, self.key, np.int64(rounds), state)
        return jax.tree.map(np.asarray, move)

    def _skip_empty(self, standing):
        """A phase that wants nothing is over at once: nobody could tell its rewards."""
        move = standing.move
        if move.count is None or move.done or move.count.any():
            return standing
        return self.learn(standing, move, np.zeros(move.count.shape))

    def shapes(self):
        """State and `Move` as shapes, from tracing alone.

        Raises:
          ValueError: moves are neither one arm nor a count for every arm.
        """
        with jax.enable_x64(True):
            state = jax.eval_shape(partial(_init, self.plan), self.numbers, self.key)
            rounds = jax.ShapeDtypeStruct((), jnp.int64)
            move = jax.eval_shape(partial(_ask, self.plan), self.numbers, self.key, rounds, state)
        phase = move.count is not None and move.arm.shape == (len(self.numbers["arms"]),)
        require(
            phase or (move.count is None and move.arm.shape == ()),
            f"constructor {self.plan.name} must ask for one arm or for a count of every arm, "
            f"it asks for arms of shape {move.arm.shape}",
        )
        return state, move
