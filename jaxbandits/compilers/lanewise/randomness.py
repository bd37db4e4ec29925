"""Threefry across lanes, written out: the same numbers as `jax.random`, in one pass.

The compiler gets JAX's own version for CPUs as a loop of many small programs, which saves
compile time where a key is used once; for lanes the plain code is both shorter and faster.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array

from ..jaxprs import shape_of
from .interpreter import Lanes, Width, by_vmap, rule
from .reductions import sealed

ROTATIONS: tuple[tuple[int, ...], ...] = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: np.uint32 = np.uint32(0x1BD11BDA)


@jax.jit  # traced once for a shape, however often it is used
def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011): two words for two words."""
    # Operations of `lax`, for those of `jnp` take five times as long to trace.
    add, xor = lax.add, lax.bitwise_xor
    first, second, a, b = jnp.broadcast_arrays(*key, *counter)
    keys = first, second, xor(xor(first, second), lax.full_like(first, PARITY))
    a, b = add(a, first), add(b, second)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            a = add(a, b)
            b = xor(a, _rotated(b, rotation))
        a = add(a, keys[(group + 1) % 3])
        b = add(add(b, keys[(group + 2) % 3]), lax.full_like(b, group + 1))
    return a, b


def _rotated(word, by):
    left = lax.shift_left(word, lax.full_like(word, by))
    right = lax.shift_right_logical(word, lax.full_like(word, 32 - by))
    return lax.bitwise_or(left, right)


def _plain(eqn):
    """Whether this is about one threefry key a lane, in the order of draws known here."""
    aval = eqn.invars[0].aval
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    usual = str(aval.dtype) == "key<fry>" and config.jax_threefry_partitionable
    return usual and aval.shape == ()


def _words(keys):
    data = jax.random.key_data(keys.value if isinstance(keys, Lanes) else keys)
    return data[..., 0], data[..., 1]


def _counter(shape):
    """The running index of the entries of a shape, in two words, with room for the lanes."""
    index = np.arange(np.prod(shape, dtype=np.uint64), dtype=np.uint64).reshape(*shape, 1)
    return (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)


def _keys(words, lanes):
    """Keys that are used again and again are computed once."""
    data = jnp.stack([sealed(word, lanes) for word in words], -1)
    return Lanes(jax.random.wrap_key_data(data, impl="threefry2x32"))


@rule("random_fold_in")
def fold_in(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A key and a number."""
    keys, number = operands
    if not _plain(eqn) or shape_of(eqn.invars[1]) != ():
        return by_vmap(eqn, operands, lanes)
    word = number.value if isinstance(number, Lanes) else jnp.asarray(number)
    word = jnp.broadcast_to(word.astype(jnp.uint32), (lanes.number,))
    return [_keys(threefry(_words(keys), (jnp.zeros_like(word), word)), lanes)]


@rule("random_split")
def split(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A key into several."""
    if not _plain(eqn):
        return by_vmap(eqn, operands, lanes)
    return [_keys(threefry(_words(operands[0]), _counter(eqn.params["shape"])), lanes)]


@rule("random_bits")
def bits(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Words of 32 or 64 random bits."""
    width, shape = eqn.params["bit_width"], eqn.params["shape"]
    if not _plain(eqn) or width not in (32, 64):
        return by_vmap(eqn, operands, lanes)
    high, low = threefry(_words(operands[0]), _counter(shape))
    if width == 32:
        return [Lanes(high ^ low)]
    return [Lanes(lax.shift_left(high.astype(jnp.uint64), np.uint64(32)) | low.astype(jnp.uint64))]
