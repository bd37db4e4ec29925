"""Lanes that are stepped one by one: for learners that carry more than a cache holds.

A network of 40,000 weights with what Adam remembers of them is half a megabyte. Side by side,
lanes would compete for the cache with every operation. One after the other, each loads its
weights once and keeps them for some hundred rounds, and its products of matrices are those of
one lane, which the machine computes fastest. Branches and loops are a lane's own too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from ..compilers import keys
from ..types import Pytree

# Entries of an array of a lane. Larger ones are not packed, as copying them takes time, nor is
# their lane axis the last one, where reading a lane touches the memory of all.
FEW_ENTRIES: int = 4096


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Packed:
    """A state with all its small arrays of a dtype in one vector.

    A program takes the arrays of a lane out of those of all lanes and puts them back. For many
    arrays that takes longer to compile than the rounds.
    """

    joined: dict[str, Array]  # by the name of the dtype; keys are two words
    large: list[Array]
    structure: Any = field(metadata={"static": True})  # of the pytree
    shapes: tuple[tuple[int, ...], ...] = field(metadata={"static": True})  # of its leaves
    dtypes: tuple[Any, ...] = field(metadata={"static": True})


def packed(state: Pytree) -> Packed:
    """The state of a lane, packed."""
    leaves, structure = jax.tree.flatten(state)
    parts: dict[str, list[Array]] = {}
    for leaf in leaves:
        if leaf.size <= FEW_ENTRIES:
            plain = jax.random.key_data(leaf) if keys.is_key(leaf.dtype) else leaf
            parts.setdefault(plain.dtype.name, []).append(plain.ravel())
    joined = {name: jnp.concatenate(each) for name, each in parts.items()}
    large = [x for x in leaves if x.size > FEW_ENTRIES]
    shapes, dtypes = tuple(x.shape for x in leaves), tuple(x.dtype for x in leaves)
    return Packed(joined, large, structure, shapes, dtypes)


def unpacked(state: Packed) -> Pytree:
    """The state that was packed."""
    rest, large, leaves = dict(state.joined), iter(state.large), []
    for shape, dtype in zip(state.shapes, state.dtypes, strict=True):
        if math.prod(shape) > FEW_ENTRIES:
            leaves.append(next(large))
            continue
        is_key = keys.is_key(dtype)
        name, own = ("uint32", (*shape, 2)) if is_key else (jnp.dtype(dtype).name, shape)
        plain, rest[name] = jnp.split(rest[name], [math.prod(own)])
        plain = plain.reshape(own)
        leaves.append(keys.from_words(plain) if is_key else plain)
    return jax.tree.unflatten(state.structure, leaves)


def with_state(lane: Any, change: Callable[[Any], Any]) -> Any:
    """The lane with another form of its run's state."""
    return lane._replace(run=lane.run._replace(state=change(lane.run.state)))


# A chunk of one lane, or of all lanes: `lane -> (lane, rounds played, rounds computed)`.
Chunk: TypeAlias = Callable[[Any], tuple[Any, Int[Array, "..."], Int[Array, "..."]]]


def engine_for(contextual: bool, platform: str, engine: str) -> str:
    """The engine; algorithms with a context learn with large tables, so their lanes go one by one.

    Args:
      contextual: whether `ask` is given a context each round.
      engine: what the user has asked for.
    """
    if not contextual:
        return engine
    return "in turn" if platform == "cpu" else "together"


def in_turn(lane_chunk: Chunk, most: int) -> Chunk:
    """A chunk of all lanes `[..., L]`, stepped one lane after the other; states are packed.

    Args:
      lane_chunk: a chunk of one lane, without the lane axis.
      most: chunks of a lane before the next lane is stepped; fewer where its run ends.
    """

    def burst(lane):
        def going(carry):
            lane, chunks, _, _ = carry
            return lane.run.live & (chunks < most)

        def step(carry):
            lane, chunks, *tallies = carry
            lane, *more = lane_chunk(lane)
            return lane, chunks + 1, *(a + b for a, b in zip(tallies, more, strict=True))

        zero, lane = jnp.zeros((), int), with_state(lane, unpacked)
        lane, _, played, offered = lax.while_loop(going, step, (lane, zero, zero, zero))
        return with_state(lane, packed), played, offered

    def chunk(lanes):
        axes = jax.tree.map(lambda x: 0 if x.size > FEW_ENTRIES * x.shape[-1] else -1, lanes)

        def one(k, carry):
            lanes, *sums = carry
            lane = jax.tree.map(
                lambda x, axis: lax.dynamic_index_in_dim(x, k, axis, keepdims=False), lanes, axes
            )
            lane, *tallies = burst(lane)
            lanes = jax.tree.map(partial(_put, k), lanes, lane, axes)
            return lanes, *(a + b for a, b in zip(sums, tallies, strict=True))

        zero, number = jnp.zeros((), int), lanes.id.size
        lanes = jax.tree.map(lambda x, axis: jnp.moveaxis(x, -1, axis), lanes, axes)
        lanes, played, offered = lax.fori_loop(0, number, one, (lanes, zero, zero))
        lanes = jax.tree.map(lambda x, axis: jnp.moveaxis(x, axis, -1), lanes, axes)
        return lanes, played, offered

    return chunk


def _put(k, lanes, lane, axis):
    """The array of all lanes with that of lane k replaced."""
    return lax.dynamic_update_index_in_dim(lanes, lane, k, axis)


def together(lane_chunk: Chunk) -> Chunk:
    """The same for an accelerator: a chunk of all lanes, batched by the compiler."""

    def chunk(lanes):
        lanes, played, offered = jax.vmap(lane_chunk)(_lane_axis_to(0, lanes))
        return _lane_axis_to(-1, lanes), played, offered

    return chunk


def _lane_axis_to(axis: int, tree: Pytree) -> Pytree:
    """The arrays with their lane axis moved to the other end: to `axis` 0 or -1."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, -1 - axis, axis), tree)
