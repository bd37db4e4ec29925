"""C++ for `PICK_BEST` and `PICK_ARGMAX`, the primitives of maxima in `kernels.selection`."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from jax.extend.core import JaxprEqn

from ..jaxprs import reduce_by_pairs
from .elementwise import as_type
from .sums import CHAINS
from .values import ArraySpec, Value, add, in_lanes, spec_of
from .writer import Writer

SHORT: int = 8  # up to this many entries are written one by one


class Entry(NamedTuple):
    """C++ expressions of a value, its index, and its priority among equals if there is one."""

    value: str
    index: str
    priority: str | None = None


TYPES = Entry("vf64", "vi64", "vi64")


def pick_best(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Largest value and its first index."""
    (values,) = operands
    return _results(eqn, values.spec.size, best_entry(writer, values))


def pick_argmax(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Index of the largest value; among equal values, that with the largest entry of `order`."""
    values, order = operands
    return _results(eqn, values.spec.size, best_entry(writer, values, as_type(order, "i64")))


def _results(eqn, size, best):
    """Value and index, or one of them where JAX removed the other as unused."""
    value = Value(ArraySpec((), "f64"), True, lambda index: best.value)
    index = Value(ArraySpec((), "i64"), True, lambda index: best.index, range=(0, size - 1))
    return [value if spec_of(var.aval).type == "f64" else index for var in eqn.outvars]


def best_entry(writer: Writer, values: Value, order: Value | None = None) -> Entry:
    """The largest value, its first index, and its priority where there is an `order`.

    Entries are not compared one after the other, as each comparison would wait for the one before
    it. A GPU has other threads for that time, and no registers to spare.
    """
    (size,), alone = values.shape, writer.machine.lanes == 1

    def entry(i):
        priority = None
        if order is not None:
            priority = writer.scalar("vi64", in_lanes(order.read((i,)), order, True))
        return Entry(writer.scalar("vf64", values.read((i,))), f"all_i64({i})", priority)

    def winner(first, second):
        better = _better(writer, first, second)
        return _each(lambda type, text: writer.scalar(type, text), TYPES, better)

    if size <= SHORT:
        entries = [entry(i) for i in range(size)]
    else:  # what is costly is not written once for each part
        values = values if alone and not values.heavy else writer.materialised(values)
        order = writer.materialised(order) if order is not None and order.heavy else order
        entries = _winners_of_parts(writer, size, 1 if alone else CHAINS, entry)
    return (reduce if alone else reduce_by_pairs)(winner, entries)


def _winners_of_parts(writer, size, parts, entry):
    """The best entries of so many parts of a table, of which all are read in one loop."""
    length, i = size // parts, writer.name("i")
    starts = [part * length for part in range(parts)]

    def variable(type, text):
        name = writer.name("t", True)
        writer.line(f"{type} {name} = {text};")
        return name

    best = [_each(variable, TYPES, entry(start)) for start in starts]
    with writer.block(f"for (i64 {i} = 1; {i} < {length}; {i}++) "):
        for start, names in zip(starts, best, strict=True):
            better = _better(writer, names, entry(add(i, start)))
            _each(lambda name, text: writer.line(f"{name} = {text};"), names, better)
    return [*best, *map(entry, range(parts * length, size))]


def _better(writer, first, second):
    """The second entry where it is larger or wins a tie, else the first; the first NaN wins."""
    x, y = second.value, first.value
    test = f"~(vi64)({x} <= {y}) & (vi64)({y} == {y})"
    if second.priority is not None:
        wins = f"(vi64)({second.priority} > {first.priority})"
        test = f"({test}) | ((vi64)({x} == {y}) & {wins})"
    above = writer.scalar("vb64", test)
    return _each(
        lambda type, old, new: f"select_{type[1:]}({above}, {new}, {old})", TYPES, first, second
    )


def _each(function, *entries):
    """`function` of the values of entries, of their indices, and of their priorities."""
    of_values, of_indices, of_priorities = zip(*entries, strict=True)
    priority = None if None in of_priorities else function(*of_priorities)
    return Entry(function(*of_values), function(*of_indices), priority)
