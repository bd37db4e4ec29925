"""The nouns of the house: `Move`, `Algorithm`, `Env`, `Run`.

A bandit algorithm is a sampling rule, a stopping rule and a recommendation. `ask` answers all
three at once, so that what they share (leader, gap, radius) is computed once; `tell` learns.
Shapes: `K` arms, `M` targets, `d` features; `S` is the shape of a move, `()` for one arm a
round and `(K,)` for a phase that allocates counts to every arm.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax import Array


class Move(NamedTuple):
    """What an algorithm wants next, and what it would answer now."""

    arm: Array  # int [S]: the arms to draw
    count: Array | None  # int [S]: draws of each; None: one each
    done: Array  # bool []: stop before drawing
    answer: Any  # int []: index into targets, or bool [M]: a set
    info: Any = ()  # a dict of scalars is kept with the results, and explains runs cut short where
    # it has names of `reasons.REASONS`; anything may serve `tell`; a pair of both does both


class Algorithm(NamedTuple):
    """Three pure functions; the same key gives the same move.

    `init(key) -> state`; `ask(key, state, *context) -> Move` never changes the state;
    `tell(state, move, total [S]) -> state` needs no key. `total` holds the sum of the rewards
    of each entry of `move.arm`.
    """

    init: Callable
    ask: Callable
    tell: Callable


class Env(NamedTuple):
    """A world in two halves: standardised randomness, then a pure response to a move.

    `noise(key, shape, counted)` draws what does not depend on the move (for 32 rounds at once
    where a move is one arm); `reward(noise, move, *context)` turns it into `total [S]`. Two
    algorithms given the same key therefore meet the same noise. What changes with time is
    `now(pulls)`, a tuple handed to `reward` and `regret` after the context.
    """

    noise: Callable
    reward: Callable
    regret: Callable  # (move, *context) -> []: expected loss of the move against the best arm
    correct: Callable  # (answer) -> bool []
    num_arms: int
    context: Callable = lambda key: ()
    num_answers: int | None = None  # M, of which an answer is an index or a mask; None: not known
    # answer -> bool []: whether others are exactly as good, so that no draws tell them apart
    tied: Callable = lambda answer: np.False_
    now: Callable = lambda pulls: ()


class Run(NamedTuple):
    """One replication, paused before a round: a plain pytree that can be saved and resumed."""

    key: Array  # the replication's key; every draw is folded out of it
    state: Any
    rounds: Array  # int []: moves played
    pulls: Array  # int []
    arm_pulls: Array  # int [K]
    regret: Array  # float []: expected regret so far
    live: Array  # bool []: neither done nor cut short
    done: Array  # bool []: the algorithm has stopped
    answer: Any  # of the last move asked
    info: Any  # of the last move asked, where it is a dict
    broken: Array  # bool []: the state held NaN when the run was cut short


def is_shown(ask):
    """Whether an `ask` must be given a context besides key and state."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        p
        for p in inspect.signature(ask).parameters.values()
        if p.kind in positional and p.default is p.empty
    ]
    return len(needed) > 2
