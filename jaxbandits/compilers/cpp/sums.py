"""Rules for reductions and cumulative sums, products, maxima and minima."""

import math
from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from ..jaxprs import reduce_by_pairs
from .elementwise import as_type
from .values import Index, Value, add, in_lanes, literal, spec_of
from .writer import UNROLL, Writer, rule, scalar_spec

CHAINS: int = 4  # partial results of a reduction; an addition waits for the last to the same one
SMALLEST: dict[str, float | str] = {
    "f64": -math.inf,
    "f32": -math.inf,
    "i64": -(2**63),
    "i32": -(2**31),
    "u64": 0,
    "u32": 0,
}
REDUCTIONS: tuple[str, ...] = tuple(
    f"reduce_{x}" for x in ("sum", "prod", "max", "min", "and", "or", "xor")
)
LARGEST: dict[str, float | str] = {
    "f64": math.inf,
    "f32": math.inf,
    "i64": 2**63 - 1,
    "i32": 2**31 - 1,
    "u64": 2**64 - 1,
    "u32": 2**32 - 1,
}


def _neutral(name, value):
    """The expression of the neutral element of an operation."""
    type = value.spec.type
    if name in ("reduce_and", "reduce_min", "cummin"):
        number = -1 if type == "b64" or name == "reduce_and" else LARGEST[type]
    elif name in ("reduce_max", "cummax"):
        number = 0 if type == "b64" else SMALLEST[type]
    else:
        number = 1 if name in ("reduce_prod", "cumprod") else 0
    text = literal(number, type)
    return f"all_{type}({text})" if value.varies else text


def _join(name, value):
    type, s = value.spec.type, "" if value.varies else "_s"
    operation = name.removeprefix("reduce_").removeprefix("cum")
    if operation in ("max", "min") and type != "b64":
        return lambda a, b: f"{operation}_{type}{s}({a}, {b})"
    sign = {"sum": "+", "prod": "*", "and": "&", "or": "|", "xor": "^", "max": "|", "min": "&"}[
        operation
    ]
    return lambda a, b: f"({a} {sign} {b})"


def _merged(index, inner, axes):
    """The index whose entries along `axes` are `inner` and whose others are `index`."""
    rank, outer, inner = len(index) + len(axes), iter(index), iter(inner)
    return tuple(next(inner) if axis in axes else next(outer) for axis in range(rank))


@rule(*REDUCTIONS)
def reduction(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Reductions, in several chains along the longest reduced axis, joined at the end."""
    (value,), name = operands, eqn.primitive.name
    axes, spec = sorted(eqn.params["axes"]), spec_of(eqn.outvars[0].aval)
    if name in ("reduce_sum", "reduce_prod"):
        value = as_type(value, spec.type)
    array = writer.new(spec, value.varies)

    def one(index):
        writer.store(array, index, fold(writer, name, value, index, axes))

    writer.loops(spec.shape, one, unroll=UNROLL if math.prod(value.shape) <= UNROLL else 1)
    return [array]


def fold(writer: Writer, name: str, value: Value, index: Index, axes: Sequence[int]) -> str:
    """The expression of the reduction of the entries along `axes` at an index of the others."""
    inner, join = [value.shape[axis] for axis in axes], _join(name, value)
    neutral = _neutral(name, value)

    def entry(part):
        return value.read(_merged(index, part, axes))

    if math.prod(inner) <= UNROLL:
        texts = []
        writer.loops(inner, lambda part: texts.append(entry(part)))
        return reduce_by_pairs(join, texts) if texts else neutral
    long = max(range(len(inner)), key=lambda k: inner[k])
    number = inner[long]
    chains = [writer.name("t", value.varies) for _ in range(CHAINS)]
    writer.line(f"{value.type} {', '.join(f'{c} = {neutral}' for c in chains)};")
    rest = [n for k, n in enumerate(inner) if k != long]

    def chain_along(part):
        def step(i, chain):
            whole = list(part)
            whole.insert(long, i)
            writer.line(f"{chain} = {join(chain, entry(whole))};")

        i = writer.name("i")
        with writer.block(
            f"for (i64 {i} = 0; {i} < {number // CHAINS * CHAINS}; {i} += {CHAINS}) "
        ):
            for k, chain in enumerate(chains):
                step(add(i, k), chain)
        for k in range(number // CHAINS * CHAINS, number):
            step(k, chains[k % CHAINS])

    writer.loops(rest, chain_along, unroll=1)
    return join(join(chains[0], chains[1]), join(chains[2], chains[3]))


@rule("cumsum", "cumprod", "cummax", "cummin")
def cumulative(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Cumulative sums, products, maxima and minima along an axis."""
    (value,), axis, name = operands, eqn.params["axis"], eqn.primitive.name
    array, backwards = writer.new(value.spec, value.varies), eqn.params["reverse"]
    join, length = _join(name, value), value.shape[axis]
    start = _neutral(name, value)

    def one(index):
        total = writer.name("t", value.varies)
        writer.line(f"{value.type} {total} = {start};")

        def step(part):
            i = part[0]
            if backwards:
                i = length - 1 - i if isinstance(i, int) else f"({length - 1} - {i})"
            at = (*index[:axis], i, *index[axis:])
            writer.line(f"{total} = {join(total, value.read(at))};")
            writer.store(array, at, total)

        writer.loops((length,), step)

    writer.loops((*value.shape[:axis], *value.shape[axis + 1 :]), one)
    return [array]


@rule("argmax", "argmin")
def arg_extreme(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The first position of the largest or smallest value; NaN counts as more extreme than all."""
    (value,), (axis,) = operands, eqn.params["axes"]
    if value.spec.type == "b64":
        value = as_type(value, "i64")
    value = writer.materialised(value)
    spec = spec_of(eqn.outvars[0].aval)
    array = writer.new(spec, value.varies)
    sign = ">" if eqn.primitive.name == "argmax" else "<"
    v = "v" if value.varies else ""

    def one(index):
        def at(i):
            return value.read((*index[:axis], i, *index[axis:]))

        best, where = writer.name("t", value.varies), writer.name("t", value.varies)
        writer.line(f"{value.type} {best} = {at(0)};")
        zero = "all_i64(0)" if v else "0"
        writer.line(f"{v}i64 {where} = {zero};")

        def step(part):
            (i,) = part
            x = writer.scalar(value.type, at(i))
            test = f"({x} {sign} {best}) | (({x} != {x}) & ({best} == {best}))"
            if v:
                as_mask = "MASK64" if value.spec.type.endswith("64") else "MASK32"
                mask = writer.scalar("vb64", f"{as_mask}({test})")
                writer.line(f"{best} = select_{value.spec.type}({mask}, {x}, {best});")
                writer.line(f"{where} = select_i64({mask}, all_i64({i}), {where});")
            else:
                writer.line(f"if ({test}) {{ {best} = {x}; {where} = {i}; }}")

        writer.loops((value.shape[axis],), step)
        converted = f"CONVERT({where}, v{spec.type})" if v else where
        writer.store(array, index, converted)

    writer.loops(spec.shape, one, unroll=1)
    return [array]


@rule("reduce")
def reduce_by(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A reduction by a function of scalars that the user wrote, one entry after the other."""
    half, axes, closed = len(operands) // 2, sorted(eqn.params["dimensions"]), eqn.params["jaxpr"]
    tables, initial = operands[:half], operands[half:]
    varies = any(x.varies for x in operands)
    specs = [spec_of(var.aval) for var in eqn.outvars]
    arrays = [writer.new(spec, varies) for spec in specs]
    inner = [tables[0].shape[axis] for axis in axes]

    def one(index):
        for array, value in zip(arrays, initial, strict=True):
            writer.store(array, index, in_lanes(value.read(()), value, varies))

        def step(part):
            at = _merged(index, part, axes)
            old = [_entry(array, index) for array in arrays]
            new = [_named(writer, table, at) for table in tables]
            found = writer.call(closed, [*old, *new])
            texts = [
                writer.scalar(array.type, in_lanes(x.read(()), x, varies))
                for array, x in zip(arrays, found, strict=True)
            ]
            for array, text in zip(arrays, texts, strict=True):
                writer.store(array, index, text)

        writer.loops(inner, step)

    writer.loops(specs[0].shape, one, unroll=1)
    return arrays


def _entry(array, index):
    """An entry of an array as a value."""
    text = array.read(index)
    return Value(scalar_spec(array.spec), array.varies, lambda _: text)


def _named(writer, table, index):
    """An entry of a table as a value that is computed once."""
    text = writer.scalar(table.type, table.read(index))
    return Value(scalar_spec(table.spec), table.varies, lambda _: text)
