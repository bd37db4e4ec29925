"""The basic types: `Move`, `Algorithm`, `Env`, `Run`.

A bandit algorithm is a sampling rule, a stopping rule and a recommendation. `ask` answers all
three at once, so that what they share (leader, gap, radius) is computed once; `tell` learns.
Shapes: `K` arms, `M` targets, `d` features; `S` is the shape of a move, `()` for one arm a
round and `(K,)` for a phase that allocates counts to every arm.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .signatures import publish
from .types import Key

__all__ = ["Algorithm", "Env", "Move", "Run"]

publish(globals())


class Move(NamedTuple):
    """What an algorithm wants next, and what it would answer now.

    >>> import jax.numpy as jnp
    >>> move = Move(jnp.array(2), None, jnp.array(False), jnp.array(0))
    >>> int(move.arm), bool(move.done)
    (2, False)
    """

    arm: Int[Array, "*S"]  #: the arms to draw
    count: Int[Array, "*S"] | None  #: draws of each; None: one each
    done: Bool[Array, ""]  #: stop before drawing
    answer: Any  #: int `[]`: index into targets, or bool `[M]`: a set
    #: For the results a dict of scalars, which explains runs cut short where it has flags of the
    #: table in "Read and compare results"; for `tell` anything else; or a pair of the two.
    info: Any = ()


class Algorithm(NamedTuple):
    """Three pure functions; the same key gives the same move.

    `init(key) -> state`; `ask(key, state, *context) -> Move` never changes the state;
    `tell(state, move, total [S]) -> state` needs no key. `total` holds the sum of the rewards
    of each entry of `move.arm`.

    >>> import jax, jaxbandits as jb
    >>> algorithm = jb.uniform(jax.numpy.eye(3))
    >>> key = jax.random.key(0)
    >>> state = algorithm.init(key)
    >>> move = algorithm.ask(key, state)
    >>> state = algorithm.tell(state, move, jax.numpy.array(1.0))
    """

    init: Callable[[Key], Any]
    ask: Callable[..., Move]
    tell: Callable[..., Any]


class Env(NamedTuple):
    """An environment in two parts: standardised noise, and a pure response to a move.

    `noise(key, shape, counted)` draws what does not depend on the move (for 32 rounds at once
    where a move is one arm); `reward(noise, move, *context)` turns it into `total [S]`. Two
    algorithms given the same key therefore meet the same noise. What changes with time is
    `now(pulls)`, a tuple handed to `reward` and `regret` after the context.

    >>> import jaxbandits as jb
    >>> from jaxbandits.instances.environments.finite import finite
    >>> finite(jb.instances.soare(3)).num_arms
    4
    """

    noise: Callable[[Key, tuple[int, ...], bool], Any]
    reward: Callable[..., Float[Array, "*S"]]
    #: `(move, *context)`: expected loss against the best arm
    regret: Callable[..., Float[Array, ""]]
    correct: Callable[[Any], Bool[Array, ""]]  #: of an answer
    num_arms: int
    context: Callable[[Key], tuple[Any, ...]] = lambda key: ()
    num_answers: int | None = None  #: M, of which an answer is an index or a mask; None: not known
    #: of an answer: whether others are exactly as good, so that no number of draws separates them
    tied: Callable[[Any], Bool[Array, ""] | np.bool] = lambda answer: np.False_
    now: Callable[[Int[Array, ""]], tuple[Any, ...]] = lambda pulls: ()
    #: of an answer: whether estimated means do not settle if it is right; None where they are known
    unsettled: Callable[[Any], Bool[Array, ""]] | None = None
    #: of pulls `[K]`: by how much the regret changes with a standard error of each estimated mean,
    #: `[K]` with signs; None where means are known
    regret_errors: Callable[[Int[Array, " K"]], Float[Array, " K"]] | None = None


class Run(NamedTuple):
    """One replication, paused before a round: a plain pytree that can be saved and resumed.

    >>> import jax, jaxbandits as jb
    >>> from jaxbandits.engine import episode
    >>> from jaxbandits.instances.environments.finite import finite
    >>> env, algorithm = finite(jb.instances.soare(3)), jb.uniform(jb.instances.soare(3).arms)
    >>> run = episode.start(jax.random.key(0), env, algorithm)
    >>> int(run.pulls), bool(run.live)
    (0, True)
    """

    key: Key  #: the replication's key; every draw is folded out of it
    state: Any
    rounds: Int[Array, ""]  #: moves played
    pulls: Int[Array, ""]
    arm_pulls: Int[Array, " K"]
    regret: Float[Array, ""]  #: expected regret so far
    live: Bool[Array, ""]  #: neither done nor cut short
    done: Bool[Array, ""]  #: the algorithm has stopped
    answer: Any  #: of the last move asked
    info: Any  #: of the last move asked, where it is a dict
    broken: Bool[Array, ""]  #: the state held NaN when the run was cut short


def needs_context(ask: Callable[..., Move]) -> bool:
    """Whether an `ask` must be given a context besides key and state."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        p
        for p in inspect.signature(ask).parameters.values()
        if p.kind in positional and p.default is p.empty
    ]
    return len(needed) > 2
