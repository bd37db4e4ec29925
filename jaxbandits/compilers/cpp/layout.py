"""Layout: the same entries in another order, repeated, joined or cut."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from jax.extend.core import JaxprEqn

from .values import (
    Index,
    Kind,
    Unsupported,
    Value,
    add,
    flat,
    in_lanes,
    kind_of,
    literal,
    times,
    words_of,
)
from .writer import UNROLL, Writer, rule


def view(value: Value, shape: Sequence[int], index_of: Callable[[Index], Index]) -> Value:
    """The value whose entry i is the entry `index_of(i)` of another."""
    return Value(
        Kind(tuple(shape), value.kind.type),
        value.varies,
        lambda index: value.read(index_of(index)),
        cheap=value.cheap,
        reads=dict.fromkeys(value.reads, False),
        heavy=value.heavy,
    )


def no_keys(eqn: JaxprEqn) -> None:
    """Raise for an operation that is not known for keys."""
    if words_of(eqn.invars[0].aval):
        raise Unsupported(f"the operation {eqn.primitive.name!r} on keys")


@rule("broadcast_in_dim", entrywise=True)
def broadcast_in_dim(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Repeated along new axes and those of length one."""
    value, words = operands[0], words_of(eqn.invars[0].aval)
    axes, shape = eqn.params["broadcast_dimensions"], (*eqn.params["shape"], *words)
    axes = (*axes, len(shape) - 1) if words else axes
    if Kind(shape, value.kind.type).size > value.kind.size:
        value = writer.kept(value)
    ones = [n == 1 for n in value.shape]

    def index_of(index):
        return tuple(0 if one else index[axis] for axis, one in zip(axes, ones, strict=True))

    return [view(value, shape, index_of)]


@rule("reshape", "squeeze", entrywise=True)
def reshape(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Row-major order stays."""
    value, kind = operands[0], kind_of(eqn.outvars[0].aval)
    if value.array is None and _long(value.shape) != _long(kind.shape):
        value = writer.array(value)
    if value.array is not None:
        name = value.array
        return [
            value._replace(kind=kind, read=lambda i: f"{name}[{flat(i, kind.shape)}]", host=None)
        ]

    def index_of(index):
        rest = iter(i for i, n in zip(index, kind.shape, strict=True) if n != 1)
        return tuple(0 if n == 1 else next(rest) for n in value.shape)

    moved = view(value, kind.shape, index_of)
    return [moved._replace(reads=value.reads, number=value.number, range=value.range)]


def _long(shape):
    return [n for n in shape if n != 1]


@rule("transpose", entrywise=True)
def transpose(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Axes change places."""
    order, kind = eqn.params["permutation"], kind_of(eqn.outvars[0].aval)
    order = (*order, len(order)) if words_of(eqn.invars[0].aval) else order

    def index_of(index):
        found = [0] * len(order)
        for place, axis in enumerate(order):
            found[axis] = index[place]
        return tuple(found)

    return [view(operands[0], kind.shape, index_of)]


@rule("slice", entrywise=True)
def slice_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A part at a known place."""
    starts, kind = eqn.params["start_indices"], kind_of(eqn.outvars[0].aval)
    steps = eqn.params["strides"] or (1,) * len(starts)
    if words_of(eqn.invars[0].aval):
        starts, steps = (*starts, 0), (*steps, 1)

    def index_of(index):
        parts = zip(starts, steps, index, strict=True)
        return tuple(add(start, times(i, step)) for start, step, i in parts)

    return [view(operands[0], kind.shape, index_of)]


@rule("rev", entrywise=True)
def rev(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Backwards."""
    shape, axes = operands[0].shape, eqn.params["dimensions"]

    def index_of(index):
        return tuple(
            (n - 1 - i if isinstance(i, int) else f"({n - 1} - {i})") if axis in axes else i
            for axis, (i, n) in enumerate(zip(index, shape, strict=True))
        )

    return [view(operands[0], shape, index_of)]


@rule("tile", entrywise=True)
def tile(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Repeated whole, along each axis."""
    value, kind = writer.kept(operands[0]), kind_of(eqn.outvars[0].aval)
    no_keys(eqn)

    def index_of(index):
        pairs = zip(index, value.shape, strict=True)
        return tuple(i % n if isinstance(i, int) else f"({i} % {n})" for i, n in pairs)

    return [view(value, kind.shape, index_of)]


@rule("concatenate", entrywise=True)
def concatenate(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """One after the other."""
    kind, axis = kind_of(eqn.outvars[0].aval), eqn.params["dimension"]
    firsts = accumulate([x.shape[axis] for x in operands], initial=0)
    places = [
        lambda i, first=first: (*i[:axis], add(i[axis], first), *i[axis + 1 :]) for first in firsts
    ]
    return _joined(kind, operands, places, writer)


def _joined(kind, operands, places, writer):
    """An array into which each operand goes, its entry i to `place(i)`."""
    array = writer.new(kind, any(x.varies for x in operands))
    for value, place in zip(operands, places, strict=False):

        def one(index, value=value, place=place):
            writer.store(array, place(index), in_lanes(value.read(index), value, array.varies))

        writer.loops(value.shape, one, unroll=1 if value.heavy else UNROLL)
    return [array]


@rule("stack", entrywise=True)
def stack(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """One beside the other, along a new axis."""
    kind, axis = kind_of(eqn.outvars[0].aval), eqn.params["axis"]
    places = [lambda i, k=k: (*i[:axis], k, *i[axis:]) for k in range(len(operands))]
    return _joined(kind, operands, places, writer)


@rule("pad", entrywise=True)
def pad(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """With a filler before, between and after; a negative width cuts."""
    value, filler = operands
    no_keys(eqn)
    kind, config = kind_of(eqn.outvars[0].aval), eqn.params["padding_config"]
    array = writer.new(kind, any(x.varies for x in operands))
    writer.loops(
        kind.shape,
        lambda index: writer.store(array, index, in_lanes(filler.read(()), filler, array.varies)),
    )

    def one(index):
        parts = list(zip(index, config, strict=True))
        place = tuple(add(low, times(i, inner + 1)) for i, (low, _, inner) in parts)
        inside = [
            f"{i} >= 0 && {i} < {n}"
            for i, n, (low, high, _) in zip(place, kind.shape, config, strict=True)
            if low < 0 or high < 0
        ]
        with writer.block(f"if ({' && '.join(inside)}) " if inside else ""):
            writer.store(array, place, in_lanes(value.read(index), value, array.varies))

    writer.loops(value.shape, one)
    return [array]


@rule("iota")
def iota(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The place along an axis."""
    axis, kind = eqn.params["dimension"], kind_of(eqn.outvars[0].aval)

    def read(index):
        i = index[axis]
        return literal(i, kind.type) if isinstance(i, int) else f"(({kind.type}){i})"

    return [Value(kind, False, read)]
