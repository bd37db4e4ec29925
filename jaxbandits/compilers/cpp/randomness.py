"""Rules for random keys and bits: the same numbers as `jax.random` gives."""

import math
from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .. import keys
from .values import ArraySpec, Unsupported, Value, flat, in_lanes, spec_of
from .writer import Writer, rule


def _words(value, writer, varies=False):
    """The two words of one key; for each lane if keys differ by lane or `varies` asks for it."""
    if math.prod(value.shape) != 2:
        raise Unsupported("a random operation on several keys at once")
    if not keys.in_known_order():
        raise Unsupported("random bits in the order of jax_threefry_partitionable=False")
    lead = (0,) * (len(value.shape) - 1)
    spec = "vu32" if value.varies or varies else "u32"
    parts = [in_lanes(value.read((*lead, k)), value, spec == "vu32") for k in range(2)]
    return [writer.scalar(spec, part) for part in parts]


@rule("random_wrap", "random_unwrap")
def same(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Keys and their words are the same value here."""
    return list(operands)


@rule("random_fold_in")
def fold_in(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A new key from a key and a number."""
    key, number = operands
    if math.prod(number.shape) != 1:
        raise Unsupported("a key folded with several numbers at once")
    varies = key.varies or number.varies
    words = _words(key, writer, varies)
    text = number.read((0,) * len(number.shape))
    if number.varies and number.spec.type != "u32":
        text = f"CONVERT({text}, vu32)"
    elif not number.varies:
        text = _word(text, varies)
    array = writer.new(spec_of(eqn.outvars[0].aval), varies)
    _mix(writer, words, text, array, ())
    return [array]


def _word(text, varies):
    """A number that all lanes share as a word of 32 bits."""
    return f"all_u32({text})" if varies else f"((u32){text})"


def _mix(writer, words, number, array, index):
    """Write the key that follows from a key and a number to an index of an array."""
    to = ", ".join(f"&{array.read((*index, k))}" for k in range(2))
    writer.line(f"threefry({', '.join(words)}, {_word(0, array.varies)}, {number}, {to});")


@rule("random_split")
def split(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Several keys from one."""
    words, spec = _words(operands[0], writer), spec_of(eqn.outvars[0].aval)
    array = writer.new(spec, operands[0].varies)

    def one(index):
        _mix(writer, words, _word(flat(index, spec.shape[:-1]), array.varies), array, index)

    writer.loops(spec.shape[:-1], one)
    return [array]


@rule("random_bits")
def bits(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Words of 32 or 64 random bits."""
    width, spec = eqn.params["bit_width"], spec_of(eqn.outvars[0].aval)
    if width not in (32, 64):
        raise Unsupported(f"random words of {width} bits")
    words, varies = ", ".join(_words(operands[0], writer)), operands[0].varies
    spec = ArraySpec(spec.shape, spec.type)
    if varies and writer.in_pairs(spec):
        array = writer.new(spec, True)
        function = f"bits_{width}"
        two, one = f"{function}_of_two({words}, {{at}}, {{to}});", f"{function}({words}, {{at}});"
        writer.pairs(array, two, f"*{{to}} = {one}")
        return [array]

    def read(index):
        return f"bits_{width}({words}, {flat(index, spec.shape)})"

    return [Value(spec, varies, read, cheap=False, heavy=True)]
