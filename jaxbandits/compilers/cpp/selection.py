"""C++ for `PICK_BEST` and `PICK_ARGMAX`, the primitives of maxima in `kernels.selection`."""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .elementwise import as_type
from .values import ArraySpec, Value, in_lanes, spec_of
from .writer import Writer

SHORT: int = 8  # up to this many entries are written one by one


def pick_best(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Largest value and its first index; indices ascend, so ties need no comparison of indices."""
    (values,) = operands
    best, arm = _begin_pick(writer)

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        above = writer.scalar("vb64", f"(vi64)({x} > {best}) | {_first_nan(x, best)}")
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=SHORT)
    return _picked(eqn, best, arm, values.spec.size)


def pick_argmax(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Index of the largest value; among equal values, that with the largest entry of `order`."""
    values, order = operands
    order = as_type(order, "i64")
    best, arm = _begin_pick(writer)
    rank = writer.name("t", True)
    writer.line(f"vi64 {rank} = all_i64(-1);")

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        y = writer.scalar("vi64", in_lanes(order.read(index), order, True))
        test = f"(vi64)({x} > {best}) | ((vi64)({x} == {best}) & (vi64)({y} > {rank}))"
        above = writer.scalar("vb64", f"{test} | {_first_nan(x, best)}")
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{rank} = select_i64({above}, {y}, {rank});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=SHORT)
    return _picked(eqn, best, arm, values.spec.size)


def _first_nan(x, best):
    return f"((vi64)({x} != {x}) & (vi64)({best} == {best}))"


def _begin_pick(writer):
    best, arm = writer.name("t", True), writer.name("t", True)
    writer.line(f"vf64 {best} = all_f64(-INFINITY);")
    writer.line(f"vi64 {arm} = all_i64(0);")
    return best, arm


def _picked(eqn, best, arm, size):
    """Value and index, or one of them where JAX removed the other as unused."""
    value = Value(ArraySpec((), "f64"), True, lambda index: best)
    index = Value(ArraySpec((), "i64"), True, lambda index: arm, range=(0, size - 1))
    return [value if spec_of(var.aval).type == "f64" else index for var in eqn.outvars]
