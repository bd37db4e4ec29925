"""Reductions, running totals and products of tables."""

import math

from .elementwise import entrywise
from .values import Kind, Value, add, constant, kind_of, literal, spread
from .writer import UNROLL, rule, scalar_kind

CHAINS = 4  # sums under way side by side, because each waits for its own last addition
TILE = 4  # entries of a product along an axis that are summed side by side
SMALLEST = {"f64": -math.inf, "f32": -math.inf, "i64": -(2**63), "i32": -(2**31), "u64": 0, "u32": 0}
LARGEST = {
    "f64": math.inf,
    "f32": math.inf,
    "i64": 2**63 - 1,
    "i32": 2**31 - 1,
    "u64": 2**64 - 1,
    "u32": 2**32 - 1,
}


def _begin(name, type):
    if name in ("reduce_and", "reduce_min", "cummin"):
        return -1 if type == "b64" or name == "reduce_and" else LARGEST[type]
    if name in ("reduce_max", "cummax"):
        return 0 if type == "b64" else SMALLEST[type]
    return 1 if name in ("reduce_prod", "cumprod") else 0


def _join(name, value):
    type, s = value.kind.type, "" if value.varies else "_s"
    sort = name.removeprefix("reduce_").removeprefix("cum")
    if sort in ("max", "min") and type != "b64":
        return lambda a, b: f"{sort}_{type}{s}({a}, {b})"
    sign = {"sum": "+", "prod": "*", "and": "&", "or": "|", "xor": "^", "max": "|", "min": "&"}[sort]
    return lambda a, b: f"({a} {sign} {b})"


def _woven(index, inner, axes):
    """An index from its kept and its reduced part."""
    outer, inner = iter(index), iter(inner)
    return lambda n: tuple(next(inner) if axis in axes else next(outer) for axis in range(n))


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")
def reduction(eqn, operands, writer):
    """Several chains along the last reduced axis, joined at the end."""
    (value,), axes, name = operands, eqn.params["axes"], eqn.primitive.name
    kind, inner = kind_of(eqn.outvars[0].aval), [value.shape[axis] for axis in eqn.params["axes"]]
    if value.kind.type == "b64" and name not in ("reduce_and", "reduce_or", "reduce_xor", "reduce_max", "reduce_min"):
        value = entrywise(value.shape, kind.type, [value], lambda a: f"(-{a})")
    array = writer.new(kind, value.varies)
    join, begin = _join(name, value), _begin(name, value.kind.type)

    def one(index):
        total = _fold(writer, value, index, sorted(axes), inner, join, begin)
        writer.store(array, index, total)

    writer.loops(kind.shape, one, unroll=UNROLL if math.prod(value.shape) <= UNROLL else 1)
    return [array]


def _fold(writer, value, index, axes, inner, join, begin):
    """The expression of what is joined over the reduced axes."""
    rank, axes_set = len(value.shape), set(axes)
    inner = [value.shape[axis] for axis in axes]

    def entry(part):
        return value.read(_woven(index, part, axes_set)(rank))

    if math.prod(inner) <= UNROLL:
        texts = []
        writer.loops(inner, lambda part: texts.append(entry(part)))
        while len(texts) > 1:
            pairs = [join(*texts[k : k + 2]) for k in range(0, len(texts) - 1, 2)]
            texts = pairs + texts[len(pairs) * 2 :]
        return texts[0] if texts else literal(begin, value.kind.type)
    long = max(range(len(inner)), key=lambda k: inner[k])
    number = inner[long]
    chains = [writer.name("t", value.varies) for _ in range(CHAINS)]
    start = spread(literal(begin, value.kind.type), Value(value.kind, False, None), value.varies)
    writer.line(f"{value.type} {', '.join(f'{c} = {start}' for c in chains)};")
    rest = [n for k, n in enumerate(inner) if k != long]

    def others(part):
        def step(i, chain):
            whole = list(part)
            whole.insert(long, i)
            writer.line(f"{chain} = {join(chain, entry(whole))};")

        i = writer.name("i")
        with writer.block(f"for (i64 {i} = 0; {i} < {number // CHAINS * CHAINS}; {i} += {CHAINS}) "):
            for k, chain in enumerate(chains):
                step(add(i, k), chain)
        for k in range(number // CHAINS * CHAINS, number):
            step(k, chains[k % CHAINS])

    writer.loops(rest, others, unroll=1)
    return join(join(chains[0], chains[1]), join(chains[2], chains[3]))


@rule("cumsum", "cumprod", "cummax", "cummin")
def running(eqn, operands, writer):
    """Totals so far along an axis."""
    (value,), axis, name = operands, eqn.params["axis"], eqn.primitive.name
    array, backwards = writer.new(value.kind, value.varies), eqn.params["reverse"]
    join, length = _join(name, value), value.shape[axis]
    start = spread(
        literal(_begin(name, value.kind.type), value.kind.type),
        Value(value.kind, False, None),
        value.varies,
    )

    def one(index):
        total = writer.name("t", value.varies)
        writer.line(f"{value.type} {total} = {start};")

        def step(part):
            i = part[0]
            if backwards:
                i = length - 1 - i if isinstance(i, int) else f"({length - 1} - {i})"
            place = (*index[:axis], i, *index[axis:])
            writer.line(f"{total} = {join(total, value.read(place))};")
            writer.store(array, place, total)

        writer.loops((length,), step)

    writer.loops((*value.shape[:axis], *value.shape[axis + 1 :]), one)
    return [array]


@rule("argmax", "argmin")
def extreme(eqn, operands, writer):
    """The first position of the largest or smallest value, NaN before all."""
    value, (axis,) = writer.kept(operands[0]), eqn.params["axes"]
    kind = kind_of(eqn.outvars[0].aval)
    array = writer.new(kind, value.varies)
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
            ask = f"({x} {sign} {best}) | (({x} != {x}) & ({best} == {best}))"
            if v:
                wide = "ASK64" if value.kind.type.endswith("64") else "ASK32"
                mask = writer.scalar("vb64", f"{wide}({ask})")
                writer.line(f"{best} = select_{value.kind.type}({mask}, {x}, {best});")
                writer.line(f"{where} = select_i64({mask}, all_i64({i}), {where});")
            else:
                writer.line(f"if ({ask}) {{ {best} = {x}; {where} = {i}; }}")

        writer.loops((value.shape[axis],), step)
        narrow = f"__builtin_convertvector({where}, v{kind.type})" if v else where
        writer.store(array, index, narrow)

    writer.loops(kind.shape, one, unroll=1)
    return [array]


def pick_best(eqn, operands, writer):
    """`kernels.pick.best`: an index only moves up, so equal values need no comparison."""
    (values,) = operands
    best, arm = _begin_pick(writer)

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        above = writer.scalar("vb64", f"(vi64)({x} > {best})")
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=8)
    return _picked(eqn, best, arm, values.kind.size)


def pick_argmax(eqn, operands, writer):
    """`kernels.pick.argmax`: of equal values that of the larger order."""
    values, order = operands
    best, arm = _begin_pick(writer)
    rank = writer.name("t", True)
    writer.line(f"vi64 {rank} = all_i64(-1);")

    def step(index):
        x = writer.scalar(values.type, values.read(index))
        y = writer.scalar("vi64", spread(order.read(index), order, True))
        ask = f"(vi64)({x} > {best}) | ((vi64)({x} == {best}) & (vi64)({y} > {rank}))"
        above = writer.scalar("vb64", ask)
        writer.line(f"{best} = select_f64({above}, {x}, {best});")
        writer.line(f"{rank} = select_i64({above}, {y}, {rank});")
        writer.line(f"{arm} = select_i64({above}, all_i64({index[0]}), {arm});")

    writer.loops(values.shape, step, unroll=8)
    return _picked(eqn, best, arm, values.kind.size)


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


@rule("reduce")
def general(eqn, operands, writer):
    """A reduction by any function of scalars, one entry after the other."""
    half, axes, closed = len(operands) // 2, set(eqn.params["dimensions"]), eqn.params["jaxpr"]
    tables, begins = operands[:half], operands[half:]
    varies = any(x.varies for x in operands)
    kinds = [kind_of(var.aval) for var in eqn.outvars]
    arrays = [writer.new(kind, varies) for kind in kinds]
    rank = len(tables[0].shape)
    inner = [tables[0].shape[axis] for axis in sorted(axes)]

    def one(index):
        for array, begin in zip(arrays, begins, strict=True):
            writer.store(array, index, spread(begin.read(()), begin, varies))

        def step(part):
            place = _woven(index, part, axes)(rank)
            old = [_entry(array, index) for array in arrays]
            new = [_named(writer, table, place) for table in tables]
            found = writer.call(closed, [*old, *new])
            texts = [writer.scalar(a.type, spread(x.read(()), x, varies)) for a, x in zip(arrays, found, strict=True)]
            for array, text in zip(arrays, texts, strict=True):
                writer.store(array, index, text)

        writer.loops(inner, step)

    writer.loops(kinds[0].shape, one, unroll=1)
    return arrays


def _entry(array, index):
    text = array.read(index)
    return Value(scalar_kind(array.kind), array.varies, lambda _: text)


def _named(writer, table, place):
    text = writer.scalar(table.type, table.read(place))
    return Value(scalar_kind(table.kind), table.varies, lambda _: text)


@rule("dot_general")
def dot_general(eqn, operands, writer):
    """Products of tables, a tile of entries at a time."""
    (left_sum, right_sum), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    left, right = map(writer.kept, operands)
    kind, varies = kind_of(eqn.outvars[0].aval), left.varies or right.varies
    array = writer.new(kind, varies)
    inner = [left.shape[axis] for axis in left_sum]
    left_free = [k for k in range(len(left.shape)) if k not in (*left_sum, *left_batch)]
    right_free = [k for k in range(len(right.shape)) if k not in (*right_sum, *right_batch)]
    zero = f"all_{kind.type}(0)" if varies else f"({kind.type})0"

    def place(batch, free, part, batch_axes, free_axes, sum_axes, rank):
        known = dict(zip(batch_axes, batch, strict=True))
        known.update(zip(free_axes, free, strict=True))
        known.update(zip(sum_axes, part, strict=True))
        return tuple(known[axis] for axis in range(rank))

    def tile(batch, lefts, rights):
        """Entries for some free places of either side, summed side by side."""
        totals = {(a, b): writer.name("t", varies) for a in range(len(lefts)) for b in range(len(rights))}
        writer.line(f"{array.type} {', '.join(f'{t} = {zero}' for t in totals.values())};")

        def step(part):
            xs = [
                left.read(place(batch, free, part, left_batch, left_free, left_sum, len(left.shape)))
                for free in lefts
            ]
            ys = [
                right.read(
                    place(batch, free, part, right_batch, right_free, right_sum, len(right.shape))
                )
                for free in rights
            ]
            if len(ys) > 1:
                xs = [writer.scalar(left.type, x) for x in xs]
            if len(xs) > 1:
                ys = [writer.scalar(right.type, y) for y in ys]
            for (a, b), total in totals.items():
                writer.line(f"{total} += {xs[a]} * {ys[b]};")

        writer.loops(inner, step, unroll=8)
        for (a, b), total in totals.items():
            writer.store(array, (*batch, *lefts[a], *rights[b]), total)

    batch_shape = [left.shape[axis] for axis in left_batch]
    left_shape = [left.shape[axis] for axis in left_free]
    right_shape = [right.shape[axis] for axis in right_free]
    rows = TILE if math.prod(right_shape) > 1 else 2 * TILE
    columns = TILE if math.prod(left_shape) > 1 else 2 * TILE

    def for_batch(batch):
        _tiles(
            writer,
            left_shape,
            rows,
            lambda lefts: _tiles(
                writer, right_shape, columns, lambda rights: tile(batch, lefts, rights)
            ),
        )

    writer.loops(batch_shape, for_batch, unroll=1)
    return [array]


def _tiles(writer, shape, width, body):
    """`body(list of indices)` for all indices of a shape, up to `width` of the last axis at once."""
    if not shape:
        body([()])
        return
    number = shape[-1]

    def row(outer):
        whole = number // width
        if whole > 1:
            i = writer.name("i")
            with writer.block(f"for (i64 {i} = 0; {i} < {whole * width}; {i} += {width}) "):
                body([(*outer, add(i, k)) for k in range(width)])
        elif whole:
            with writer.block():
                body([(*outer, k) for k in range(width)])
        if number % width:
            with writer.block():
                body([(*outer, k) for k in range(whole * width, number)])

    writer.loops(shape[:-1], row, unroll=1)


__all__ = ["Kind", "constant"]
