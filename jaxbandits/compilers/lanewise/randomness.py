"""Rules for random keys and bits: threefry for all lanes, the same numbers as `jax.random`.

On a CPU, JAX compiles threefry to a loop over its rounds. That saves compile time where a key is
used once; for many lanes the rounds written one after the other are both shorter and faster.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array

from .. import keys
from ..jaxprs import shape_of
from .interpreter import LaneContext, PerLane, by_vmap, rule
from .reductions import materialised

ROTATIONS: tuple[tuple[int, ...], ...] = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: np.uint32 = np.uint32(0x1BD11BDA)


@jax.jit  # traced once for a shape, however often it is used
def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011): two words from a key and a counter."""
    # Operations of `lax`, because those of `jnp` take five times as long to trace.
    add, xor = lax.add, lax.bitwise_xor
    first, second, a, b = jnp.broadcast_arrays(*key, *counter)

    @functools.cache
    def full(number):
        return lax.full_like(first, number)

    def rotated(word, by):
        left = lax.shift_left(word, full(by))
        return lax.bitwise_or(left, lax.shift_right_logical(word, full(32 - by)))

    schedule = first, second, xor(xor(first, second), full(PARITY))
    a, b = add(a, first), add(b, second)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = add(a, b)
            b = xor(a, rotated(b, rotation))
        a = add(a, schedule[(group + 1) % 3])
        b = add(add(b, schedule[(group + 2) % 3]), full(group + 1))
    return a, b


def _is_known(eqn):
    """Whether the first operand is one threefry key for each lane, and JAX's order is known."""
    aval = eqn.invars[0].aval
    return keys.is_threefry(aval.dtype) and keys.in_known_order() and aval.shape == ()


def _words(key):
    data = jax.random.key_data(key.value if isinstance(key, PerLane) else key)
    return data[..., 0], data[..., 1]


def _counter(shape):
    """The row-major number of each entry of a shape in two words, with an axis for the lanes."""
    index = np.arange(np.prod(shape, dtype=np.uint64), dtype=np.uint64).reshape(*shape, 1)
    return (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)


def _keys(words, lanes):
    """Keys of two words, computed once however often they are used."""
    # Joined before: one operation computes both words, where two would repeat the rounds.
    both = materialised(jnp.stack(words), lanes.unit)
    return PerLane(keys.from_words(jnp.moveaxis(both, 0, -1)))


@rule("random_fold_in")
def fold_in(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """A new key from a key and a number."""
    key, number = operands
    if not _is_known(eqn) or shape_of(eqn.invars[1]) != ():
        return by_vmap(eqn, operands, lanes)
    word = number.value if isinstance(number, PerLane) else jnp.asarray(number)
    word = jnp.broadcast_to(word.astype(jnp.uint32), (lanes.number,))
    return [_keys(threefry(_words(key), (jnp.zeros_like(word), word)), lanes)]


@rule("random_split")
def split(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Several keys from one."""
    if not _is_known(eqn):
        return by_vmap(eqn, operands, lanes)
    return [_keys(threefry(_words(operands[0]), _counter(eqn.params["shape"])), lanes)]


@rule("random_bits")
def bits(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Words of 32 or 64 random bits."""
    width, shape = eqn.params["bit_width"], eqn.params["shape"]
    if not _is_known(eqn) or width not in (32, 64):
        return by_vmap(eqn, operands, lanes)
    high, low = threefry(_words(operands[0]), _counter(shape))
    if width == 32:
        return [PerLane(high ^ low)]
    return [
        PerLane(lax.shift_left(high.astype(jnp.uint64), np.uint64(32)) | low.astype(jnp.uint64))
    ]
