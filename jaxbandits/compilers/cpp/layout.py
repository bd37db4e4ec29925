"""Rules that change shapes: entries in another order, repeated, concatenated or sliced."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from jax.extend.core import JaxprEqn

from .values import (
    ArraySpec,
    Index,
    Unsupported,
    Value,
    add,
    flat,
    in_lanes,
    literal,
    spec_of,
    times,
    words_of,
)
from .writer import UNROLL, Writer, rule


def view(value: Value, shape: Sequence[int], index_of: Callable[[Index], Index]) -> Value:
    """The value whose entry at an index i is the entry of `value` at `index_of(i)`."""
    return Value(
        ArraySpec(tuple(shape), value.spec.type),
        value.varies,
        lambda index: value.read(index_of(index)),
        cheap=value.cheap,
        reads=dict.fromkeys(value.reads, False),
        heavy=value.heavy,
    )


def no_keys(eqn: JaxprEqn) -> None:
    """Raise where an operation that has no rule for random keys is given some."""
    if words_of(eqn.invars[0].aval):
        raise Unsupported(f"the operation {eqn.primitive.name!r} on keys")


@rule("broadcast_in_dim", entrywise=True)
def broadcast_in_dim(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A table repeated along new axes and axes of length one."""
    value, words = operands[0], words_of(eqn.invars[0].aval)
    axes, shape = eqn.params["broadcast_dimensions"], (*eqn.params["shape"], *words)
    axes = (*axes, len(shape) - 1) if words else axes
    if ArraySpec(shape, value.spec.type).size > value.spec.size:
        value = writer.materialised(value)
    pairs = list(zip(axes, value.shape, strict=True))

    def index_of(index):
        return tuple(0 if n == 1 else index[axis] for axis, n in pairs)

    return [view(value, shape, index_of)]


@rule("reshape", "squeeze", entrywise=True)
def reshape(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Another shape; entries keep their row-major order."""
    value, spec = operands[0], spec_of(eqn.outvars[0].aval)
    if value.array is None and _long(value.shape) != _long(spec.shape):
        value = writer.as_array(value)
    if value.array is not None:
        name = value.array
        return [
            value._replace(
                spec=spec,
                read=lambda i: f"{name}[{flat(i, spec.shape)}]",
                outer=None,
                known=None,
            )
        ]

    def index_of(index):
        rest = iter(i for i, n in zip(index, spec.shape, strict=True) if n != 1)
        return tuple(0 if n == 1 else next(rest) for n in value.shape)

    reshaped = view(value, spec.shape, index_of)
    return [reshaped._replace(reads=value.reads, range=value.range)]


def _long(shape):
    return [n for n in shape if n != 1]


@rule("transpose", entrywise=True)
def transpose(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A permutation of the axes."""
    order, spec = eqn.params["permutation"], spec_of(eqn.outvars[0].aval)
    order = (*order, len(order)) if words_of(eqn.invars[0].aval) else order

    def index_of(index):
        found = [0] * len(order)
        for i, axis in zip(index, order, strict=True):
            found[axis] = i
        return tuple(found)

    return [view(operands[0], spec.shape, index_of)]


@rule("slice", entrywise=True)
def slice_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A slice whose start is known."""
    starts, spec = eqn.params["start_indices"], spec_of(eqn.outvars[0].aval)
    steps = eqn.params["strides"] or (1,) * len(starts)
    if words_of(eqn.invars[0].aval):
        starts, steps = (*starts, 0), (*steps, 1)

    def index_of(index):
        parts = zip(starts, steps, index, strict=True)
        return tuple(add(start, times(i, step)) for start, step, i in parts)

    return [view(operands[0], spec.shape, index_of)]


@rule("rev", entrywise=True)
def rev(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The reverse order along some axes."""
    shape, axes = operands[0].shape, eqn.params["dimensions"]

    def index_of(index):
        return tuple(
            (n - 1 - i if isinstance(i, int) else f"({n - 1} - {i})") if axis in axes else i
            for axis, (i, n) in enumerate(zip(index, shape, strict=True))
        )

    return [view(operands[0], shape, index_of)]


@rule("tile", entrywise=True)
def tile(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A table repeated along each axis."""
    value, spec = writer.materialised(operands[0]), spec_of(eqn.outvars[0].aval)
    no_keys(eqn)

    def index_of(index):
        pairs = zip(index, value.shape, strict=True)
        return tuple(i % n if isinstance(i, int) else f"({i} % {n})" for i, n in pairs)

    return [view(value, spec.shape, index_of)]


@rule("concatenate", entrywise=True)
def concatenate(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Tables one after the other along an axis."""
    spec, axis = spec_of(eqn.outvars[0].aval), eqn.params["dimension"]
    firsts = accumulate([x.shape[axis] for x in operands], initial=0)
    targets = [
        lambda i, first=first: (*i[:axis], add(i[axis], first), *i[axis + 1 :]) for first in firsts
    ]
    return _joined(spec, operands, targets, writer)


def _joined(spec, operands, targets, writer):
    """An array that holds all operands: `target(i)` is the index of an operand's entry i in it."""
    array = writer.new(spec, any(x.varies for x in operands))
    for value, target in zip(operands, targets, strict=False):

        def one(index, value=value, target=target):
            writer.store(array, target(index), in_lanes(value.read(index), value, array.varies))

        writer.loops(value.shape, one, unroll=1 if value.heavy else UNROLL)
    return [array]


@rule("stack", entrywise=True)
def stack(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Tables along a new axis."""
    spec, axis = spec_of(eqn.outvars[0].aval), eqn.params["axis"]
    targets = [lambda i, k=k: (*i[:axis], k, *i[axis:]) for k in range(len(operands))]
    return _joined(spec, operands, targets, writer)


@rule("pad", entrywise=True)
def pad(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A filler before, between and after the entries; a negative width removes entries."""
    value, filler = operands
    no_keys(eqn)
    spec, config = spec_of(eqn.outvars[0].aval), eqn.params["padding_config"]
    array = writer.new(spec, any(x.varies for x in operands))
    writer.loops(
        spec.shape,
        lambda index: writer.store(array, index, in_lanes(filler.read(()), filler, array.varies)),
    )

    def one(index):
        parts = list(zip(index, config, strict=True))
        target = tuple(add(low, times(i, inner + 1)) for i, (low, _, inner) in parts)
        inside = [
            f"{i} >= 0 && {i} < {n}"
            for i, n, (low, high, _) in zip(target, spec.shape, config, strict=True)
            if low < 0 or high < 0
        ]
        with writer.block(f"if ({' && '.join(inside)}) " if inside else ""):
            writer.store(array, target, in_lanes(value.read(index), value, array.varies))

    writer.loops(value.shape, one)
    return [array]


@rule("iota")
def iota(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The index along an axis."""
    axis, spec = eqn.params["dimension"], spec_of(eqn.outvars[0].aval)

    def read(index):
        i = index[axis]
        return literal(i, spec.type) if isinstance(i, int) else f"(({spec.type}){i})"

    return [Value(spec, False, read)]
