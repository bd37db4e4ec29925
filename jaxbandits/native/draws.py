"""Random bits: the same as those of `jax.random` from the same key."""

import math

import jax

from .values import Kind, Unsupported, Value, flat, kind_of, spread
from .writer import rule


def _words(value, writer):
    """The two words of one key, for each lane."""
    if math.prod(value.shape) != 2:
        raise Unsupported("several keys at once")
    if not jax.config.jax_threefry_partitionable:
        raise Unsupported("random bits in the order of jax_threefry_partitionable=False")
    lead = (0,) * (len(value.shape) - 1)
    return [writer.scalar("vu32", spread(value.read((*lead, k)), value, True)) for k in range(2)]


@rule("random_wrap", "random_unwrap")
def same(eqn, operands, writer):
    """A key is its two words."""
    return operands


@rule("random_fold_in")
def fold_in(eqn, operands, writer):
    """A key and a number."""
    key, number = operands
    words = _words(key, writer)
    text = number.read(())
    if number.kind.type != "u32":
        v = "v" if number.varies else ""
        text = f"__builtin_convertvector({text}, vu32)" if v else f"((u32){text})"
    if not number.varies:
        text = f"all_u32({text})"
    array = writer.new(kind_of(eqn.outvars[0].aval), True)
    to = ", ".join(f"&{array.read((k,))}" for k in range(2))
    writer.line(f"threefry({', '.join(words)}, all_u32(0), {text}, {to});")
    return [array]


@rule("random_split")
def split(eqn, operands, writer):
    """A key into several."""
    words, kind = _words(operands[0], writer), kind_of(eqn.outvars[0].aval)
    array = writer.new(kind, True)

    def one(index):
        to = ", ".join(f"&{array.read((*index, k))}" for k in range(2))
        place = f"all_u32({flat(index, kind.shape[:-1])})"
        writer.line(f"threefry({', '.join(words)}, all_u32(0), {place}, {to});")

    writer.loops(kind.shape[:-1], one)
    return [array]


@rule("random_bits")
def bits(eqn, operands, writer):
    """Words of 32 or 64 random bits."""
    width, kind = eqn.params["bit_width"], kind_of(eqn.outvars[0].aval)
    if width not in (32, 64):
        raise Unsupported(f"random words of {width} bits")
    words = ", ".join(_words(operands[0], writer))

    def read(index):
        return f"bits_{width}({words}, {flat(index, kind.shape)})"

    return [Value(Kind(kind.shape, kind.type), True, read, cheap=False, heavy=True)]
