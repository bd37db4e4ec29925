"""C++ for `PICK_BEST` and `PICK_ARGMAX`, the primitives of maxima in `kernels.selection`."""

from collections.abc import Sequence
from functools import reduce

from jax.extend.core import JaxprEqn

from ..jaxprs import reduce_by_pairs
from .elementwise import as_type
from .sums import CHAINS
from .values import ArraySpec, Value, add, in_lanes, spec_of
from .writer import Writer

SHORT: int = 8  # up to this many entries are written one by one
# An entry is a tuple of C++ expressions of these types: its value, its index, and its priority if
# there are priorities.
TYPES: tuple[str, ...] = ("f64", "i64", "i64")


def pick_best(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Largest value and its first index."""
    (values,) = operands
    return _results(eqn, values.spec.size, *largest(writer, values))


def pick_argmax(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Index of the largest value; among equal values, that with the largest entry of `order`."""
    values, order = operands
    best, arm, _ = largest(writer, values, as_type(order, "i64"))
    return _results(eqn, values.spec.size, best, arm)


def _results(eqn, size, best, arm):
    """Value and index, or one of them where JAX removed the other as unused."""
    value = Value(ArraySpec((), "f64"), True, lambda index: best)
    index = Value(ArraySpec((), "i64"), True, lambda index: arm, range=(0, size - 1))
    return [value if spec_of(var.aval).type == "f64" else index for var in eqn.outvars]


def largest(writer: Writer, values: Value, order: Value | None = None) -> tuple[str, ...]:
    """Names of the largest value, its first index, and its priority where there is an `order`.

    Entries are not compared one after the other, as each comparison would wait for the one before
    it. A GPU has other threads for that time, and no registers to spare.
    """
    (size,), alone = values.shape, writer.machine.lanes == 1

    def entry(i):
        value = writer.scalar("vf64", values.read((i,)))
        if order is None:
            return value, f"all_i64({i})"
        priority = writer.scalar("vi64", in_lanes(order.read((i,)), order, True))
        return value, f"all_i64({i})", priority

    def winner(first, second):
        better = _better(writer, first, second)
        return tuple(writer.scalar(f"v{type}", text) for type, text in better)

    if size <= SHORT:
        entries = [entry(i) for i in range(size)]
    else:
        values = values if alone else writer.materialised(values)
        entries = _winners_of_parts(writer, size, 1 if alone else CHAINS, entry)
    return (reduce if alone else reduce_by_pairs)(winner, entries)


def _winners_of_parts(writer, size, number, entry):
    """The best entries of so many parts of a table, of which all are read in one loop."""
    length, i = size // number, writer.name("i")
    starts = [part * length for part in range(number)]
    best = []
    for start in starts:
        first = entry(start)
        names = tuple(writer.name("t", True) for _ in first)
        for type, name, text in zip(TYPES, names, first, strict=False):
            writer.line(f"v{type} {name} = {text};")
        best.append(names)
    with writer.block(f"for (i64 {i} = 1; {i} < {length}; {i}++) "):
        for start, names in zip(starts, best, strict=True):
            better = _better(writer, names, entry(add(i, start)))
            for name, (_, text) in zip(names, better, strict=True):
                writer.line(f"{name} = {text};")
    return [*best, *map(entry, range(number * length, size))]


def _better(writer, first, second):
    """Types and texts of the second entry where it is larger or wins a tie, else of the first.

    The first NaN is larger than all others.
    """
    x, y = second[0], first[0]
    test = f"~(vi64)({x} <= {y}) & (vi64)({y} == {y})"
    if len(second) == len(TYPES):
        test = f"({test}) | ((vi64)({x} == {y}) & (vi64)({second[2]} > {first[2]}))"
    above = writer.scalar("vb64", test)
    pairs = zip(TYPES, first, second, strict=False)
    return [(type, f"select_{type}({above}, {new}, {old})") for type, old, new in pairs]
