"""Random bits: the same as those of `jax.random` from the same key."""

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import JaxprEqn

from .values import Kind, Unsupported, Value, flat, in_lanes, kind_of
from .writer import Writer, rule


def _words(value, writer, varies=False):
    """The two words of one key, for each lane where they differ."""
    if math.prod(value.shape) != 2:
        raise Unsupported("several keys at once")
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    if not config.jax_threefry_partitionable:
        raise Unsupported("random bits in the order of jax_threefry_partitionable=False")
    lead = (0,) * (len(value.shape) - 1)
    kind = "vu32" if value.varies or varies else "u32"
    parts = [in_lanes(value.read((*lead, k)), value, kind == "vu32") for k in range(2)]
    return [writer.scalar(kind, part) for part in parts]


@rule("random_wrap", "random_unwrap")
def same(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A key is its two words."""
    return list(operands)


@rule("random_fold_in")
def fold_in(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A key and a number."""
    key, number = operands
    varies = key.varies or number.varies
    words = _words(key, writer, varies)
    text = number.read(())
    if number.varies and number.kind.type != "u32":
        text = f"__builtin_convertvector({text}, vu32)"
    elif not number.varies:
        text = _word(text, varies)
    array = writer.new(kind_of(eqn.outvars[0].aval), varies)
    _mix(writer, words, text, array, ())
    return [array]


def _word(text, varies):
    """A number of all lanes as a word."""
    return f"all_u32({text})" if varies else f"((u32){text})"


def _mix(writer, words, number, array, index):
    """Key and number into the key at `index`."""
    to = ", ".join(f"&{array.read((*index, k))}" for k in range(2))
    writer.line(f"threefry({', '.join(words)}, {_word(0, array.varies)}, {number}, {to});")


@rule("random_split")
def split(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A key into several."""
    words, kind = _words(operands[0], writer), kind_of(eqn.outvars[0].aval)
    array = writer.new(kind, operands[0].varies)

    def one(index):
        _mix(writer, words, _word(flat(index, kind.shape[:-1]), array.varies), array, index)

    writer.loops(kind.shape[:-1], one)
    return [array]


@rule("random_bits")
def bits(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Words of 32 or 64 random bits."""
    width, kind = eqn.params["bit_width"], kind_of(eqn.outvars[0].aval)
    if width not in (32, 64):
        raise Unsupported(f"random words of {width} bits")
    words = ", ".join(_words(operands[0], writer))

    def read(index):
        return f"bits_{width}({words}, {flat(index, kind.shape)})"

    varies = operands[0].varies
    return [Value(Kind(kind.shape, kind.type), varies, read, cheap=False, heavy=True)]
