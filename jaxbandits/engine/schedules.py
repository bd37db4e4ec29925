"""Lanes that are each played by themselves: for learners that carry more than a cache holds.

A network of 40,000 weights with what Adam remembers of them is half a megabyte. Side by side,
lanes would take turns in the cache with every operation; one after the other each brings its
weights there once and stays for some hundred rounds, and its products of matrices are those of
one lane, as fast as the machine has them. Branches and loops are a lane's own too.
"""

import jax
import jax.numpy as jnp
from jax import lax


def engine_for(contextual, platform, engine):
    """What plays: who is shown something each round learns with tables of that size."""
    if not contextual:
        return engine
    return "in turn" if platform == "cpu" else "together"


def in_turn(one, most):
    """What plays lanes `[..., L]`: `lanes -> (lanes, rounds played, rounds there were to play)`.

    Args:
      one: the same for a chunk of one lane, without its axis.
      most: chunks that a lane plays before the next has its turn; fewer where it ends.
    """

    def burst(lane):
        def going(carry):
            lane, chunks, _, _ = carry
            return lane.run.live & (chunks < most)

        def step(carry):
            lane, chunks, *tallies = carry
            lane, *more = one(lane)
            return lane, chunks + 1, *(a + b for a, b in zip(tallies, more, strict=True))

        zero = jnp.zeros((), int)
        lane, _, played, offered = lax.while_loop(going, step, (lane, zero, zero, zero))
        return lane, played, offered

    def chunk(lanes):
        lanes, played, offered = lax.map(burst, _lanes_to(0, lanes))
        return _lanes_to(-1, lanes), played, offered

    return chunk


def together(one):
    """The same for an accelerator: a chunk of all lanes, batched by the compiler."""

    def chunk(lanes):
        lanes, played, offered = jax.vmap(one)(_lanes_to(0, lanes))
        return _lanes_to(-1, lanes), played, offered

    return chunk


def _lanes_to(place, tree):
    """Arrays with the lane axis, which is at the other end, first or last."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1 - place, place), tree)
