"""Maxima that `kernels.pick` looks for, its two primitives."""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .elementwise import as_type
from .values import Kind, Value, in_lanes, kind_of
from .writer import Writer

SHORT: int = 8  # up to this many entries are written one by one


def pick_best(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """`kernels.pick.best`: an index only moves up, so equal values need no comparison."""
    (values,) = operands
    best, arm = _begin_pick(writer)

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        above = writer.scalar("vb64", f"(vi64)({x} > {best}) | {_first_nan(x, best)}")
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=SHORT)
    return _picked(eqn, best, arm, values.kind.size)


def pick_argmax(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """`kernels.pick.argmax`: of equal values that of the larger order."""
    values, order = operands
    place = as_type(order, "i64")
    best, arm = _begin_pick(writer)
    rank = writer.name("t", True)
    writer.line(f"vi64 {rank} = all_i64(-1);")

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        y = writer.scalar("vi64", in_lanes(place.read(index), place, True))
        ask = f"(vi64)({x} > {best}) | ((vi64)({x} == {best}) & (vi64)({y} > {rank}))"
        above = writer.scalar("vb64", f"{ask} | {_first_nan(x, best)}")
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{rank} = select_i64({above}, {y}, {rank});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=SHORT)
    return _picked(eqn, best, arm, values.kind.size)


def _first_nan(x, best):
    return f"((vi64)({x} != {x}) & (vi64)({best} == {best}))"


def _begin_pick(writer):
    best, arm = writer.name("t", True), writer.name("t", True)
    writer.line(f"vf64 {best} = all_f64(-INFINITY);")
    writer.line(f"vi64 {arm} = all_i64(0);")
    return best, arm


def _picked(eqn, best, arm, size):
    """Value and arm, of which a pruned call may want one alone."""
    value = Value(Kind((), "f64"), True, lambda index: best)
    place = Value(Kind((), "i64"), True, lambda index: arm, range=(0, size - 1))
    return [value if kind_of(var.aval).type == "f64" else place for var in eqn.outvars]
