"""Entries of tables at indices that all lanes share or each has its own."""

from collections.abc import Callable, Sequence

from jax.extend.core import JaxprEqn
from jax.lax import GatherScatterMode

from .layout import no_keys, view
from .values import (
    Kind,
    Value,
    add,
    constant,
    flat,
    in_lanes,
    kind_of,
    literal,
    strides,
    times,
    words_of,
)
from .writer import UNROLL, Writer, rule

CHAIN: int = 12  # up to this many entries a chain of choices beats reading lane by lane
JOIN: dict[str, Callable[[str, str, str], str]] = {  # by the ending of functions of the type
    "scatter": lambda end, old, new: new,
    "scatter-add": lambda end, old, new: f"({old} + {new})",
    "scatter-sub": lambda end, old, new: f"({old} - {new})",
    "scatter-mul": lambda end, old, new: f"({old} * {new})",
    "scatter-min": lambda end, old, new: f"min_{end}({old}, {new})",
    "scatter-max": lambda end, old, new: f"max_{end}({old}, {new})",
}


def _position(value, index, high, writer, clamp=True):
    """A position as a C expression, put between 0 and `high`."""
    text, v = value.read(index), "v" if value.varies else ""
    if value.number is not None:
        return max(0, min(value.number, high)) if clamp else value.number
    if value.kind.type != "i64":
        text = f"__builtin_convertvector({text}, vi64)" if v else f"((i64){text})"
    if clamp and not (value.range and value.range[0] >= 0 and value.range[1] <= high):
        s = "" if v else "_s"
        low, top = (f"all_i64({x})" if v else f"((i64){x})" for x in (0, high))
        text = f"min_i64{s}(max_i64{s}({text}, {low}), {top})"
    return writer.scalar(f"{v}i64", text)


def _own_entry(table, own, shared):
    """The entry of an array at each lane's own position, beyond a shared one."""
    look = "look" if table.varies else "read"
    return f"{look}_{table.kind.type}({table.array} + {shared}, {own})"


def _chosen(writer, table, begin, moved, shape, index):
    """The same for a short axis along which alone lanes differ: a chain of choices."""
    axis = moved.index(True)

    def entry(i):
        own = [add(b, k) for b, k in zip(begin, index, strict=True)]
        own[axis] = i
        return in_lanes(f"{table.array}[{flat(tuple(own), shape)}]", table, True)

    text = entry(shape[axis] - 1)
    for i in range(shape[axis] - 1):
        text = f"select_{table.kind.type}((vi64)({begin[axis]} == {i}), {entry(i)}, {text})"
    return text


def _starts(starts, shape, window, writer):
    """Where a window begins along each axis, and whether that is a lane's own."""
    bounds = zip(starts, shape, window, strict=True)
    return [_position(x, (), n - k, writer) for x, n, k in bounds], [x.varies for x in starts]


def _linear(begin, moved, shape):
    """Shared and own part of a row-major position."""
    parts = list(zip(begin, moved, strides(shape), strict=True))
    shared = add(0, *[times(at, step) for at, own, step in parts if not own])
    return shared, " + ".join(str(times(at, step)) for at, own, step in parts if own)


@rule("dynamic_slice")
def dynamic_slice(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A part that starts somewhere."""
    table, *starts = operands
    kind, shape = kind_of(eqn.outvars[0].aval), table.shape
    if words_of(eqn.invars[0].aval):
        starts = [*starts, constant(0, Kind((), "i64"))]
    begin, moved = _starts(starts, shape, kind.shape, writer)
    if not any(moved):
        return [view(writer.kept(table), kind.shape, lambda i: tuple(map(add, begin, i)))]
    table = writer.array(_held(table))
    shared, own = _linear(begin, moved, shape)
    short = sum(moved) == 1 and _short(shape, kind.shape, moved.index(True))
    if not short:
        own = writer.scalar("vi64", own)

    def read(index):
        if short:
            return _chosen(writer, table, begin, moved, shape, index)
        return _own_entry(table, own, add(shared, flat(index, shape)))

    reads = dict.fromkeys(table.reads, False)
    heavy = not short or kind.size * shape[moved.index(True)] > 2 * UNROLL
    return [Value(kind, True, read, cheap=False, reads=reads, heavy=heavy)]


def _short(shape, window, axis):
    return shape[axis] <= CHAIN and window[axis] == 1


def _held(table):
    """An array passed in from outside can be addressed as it is."""
    if table.host is not None and table.array is None and table.kind.size > 1:
        name = table.read((0,) * len(table.shape)).partition("[")[0]
        return table._replace(array=name)
    return table


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A part put somewhere."""
    no_keys(eqn)
    table, new, *starts = operands
    varies = any(x.varies for x in operands)
    array = _to_change(table, varies, writer)
    begin, moved = _starts(starts, table.shape, new.shape, writer)

    def one(index):
        text = in_lanes(new.read(index), new, varies)
        if not any(moved):
            writer.store(array, tuple(map(add, begin, index)), text)
            return
        shared, own = _linear(begin, moved, table.shape)
        at = add(shared, flat(index, table.shape))
        _write_own(writer, array, f"{own} + {at}", text, JOIN["scatter"])

    writer.loops(new.shape, one)
    return [array]


def _to_change(table, varies, writer):
    """An array with the numbers of a table, itself where nobody else reads it."""
    if table.owned and table.array is not None and table.varies == varies:
        return table
    return writer.fill(writer.new(table.kind, varies), table)


def _write_own(writer, array, at, text, join, inside=None):
    """An entry at each lane's own position, lane by lane."""
    type = array.kind.type
    where, new = writer.scalar("vi64", at), writer.scalar(f"v{type}", text)
    entry = f"(({type} *)({array.array} + {where}[lane]))[lane]"
    guard = f"if ({inside}[lane]) " if inside else ""
    writer.line(f"EACH {guard}{entry} = {join(f'{type}_s', entry, f'{new}[lane]')};")


class _Windows:
    """The windows of a gather or a scatter, whose entries are those of `outer`."""

    def __init__(self, writer, indices, shape, outer, mapped, hidden, dims, batching):
        self.writer, self.indices, self.shape = writer, indices, shape
        self.mapped, self.dims = tuple(mapped), tuple(dims)
        self.batching = dict(zip(*batching, strict=True))
        self.axes = [k for k in range(len(shape)) if k not in (*hidden, *self.batching)]
        self.window = self._along(outer, 1)

    def _along(self, entries, other):
        """By the axes of the table, those of the windows' axes."""
        found = [other] * len(self.shape)
        for axis, k in zip(self.axes, self.dims, strict=True):
            found[axis] = entries[k]
        return found

    def position(self, index, clamp):
        """Where the window of an entry begins, whether that is a lane's own, the position in it."""
        batch = [i for k, i in enumerate(index) if k not in self.dims]
        begin = [self._begin(axis, batch, clamp) for axis in range(len(self.shape))]
        starts, moved = zip(*begin, strict=True) if begin else ((), ())
        return list(starts), list(moved), self._along(index, 0)

    def _begin(self, axis, batch, clamp):
        if axis in self.mapped:
            index = (*batch, self.mapped.index(axis))
            high = self.shape[axis] - self.window[axis]
            at = _position(self.indices, index, high, self.writer, clamp)
            return at, self.indices.varies and not isinstance(at, int)
        return (batch[self.batching[axis]] if axis in self.batching else 0), False

    def outside(self, begin, moved):
        """A mask of the windows that leave the table, or None where none can."""
        parts = []
        for at, own, n, w in zip(begin, moved, self.shape, self.window, strict=True):
            if at == 0:
                continue
            v = "(vi64)" if own else "-(i64)"
            parts.append((own, f"({v}({at} < 0) | {v}({at} > {n - w}))"))
        if not parts:
            return None
        own = any(o for o, _ in parts)
        joined = " | ".join(text if o or not own else f"all_i64({text})" for o, text in parts)
        return own, self.writer.scalar("vi64" if own else "i64", joined)


def _clips(mode):
    return mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


@rule("gather")
def gather(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Windows of a table, one for each row of indices."""
    no_keys(eqn)
    table, indices = operands
    numbers, clip = eqn.params["dimension_numbers"], _clips(eqn.params["mode"])
    kind, shape = kind_of(eqn.outvars[0].aval), table.shape
    table, indices = writer.array(_held(table)), writer.kept(indices)
    windows = _Windows(
        writer,
        indices,
        shape,
        kind.shape,
        numbers.start_index_map,
        numbers.collapsed_slice_dims,
        numbers.offset_dims,
        (numbers.operand_batching_dims, numbers.start_indices_batching_dims),
    )
    varies = table.varies or indices.varies
    array = writer.new(kind, varies)

    def one(index):
        begin, moved, inner = windows.position(index, True)
        shared, own = _linear(begin, moved, shape)
        at = add(shared, flat(inner, shape))
        if not own:
            text = in_lanes(f"{table.array}[{at}]", table, varies)
        elif sum(moved) == 1 and _short(shape, windows.window, moved.index(True)):
            text = _chosen(writer, table, begin, moved, shape, inner)
        else:
            text = _own_entry(table, f"({own})", at)
        beyond = None if clip else windows.outside(*windows.position(index, False)[:2])
        if beyond is not None:
            text = _filled(text, beyond, eqn, kind.type, varies)
        writer.store(array, index, text)

    apart = indices.varies and max(shape) > CHAIN
    writer.loops(kind.shape, one, unroll=1 if apart else UNROLL)
    return [array]


def _filled(text, beyond, eqn, type, varies):
    filler = eqn.params["fill_value"]
    if filler is None:
        extremes = {"i64": -(2**63), "i32": -(2**31), "u64": 2**64 - 1, "u32": 2**32 - 1, "b64": 1}
        filler = extremes.get(type, float("nan"))
    own, mask = beyond
    filler = literal(filler, type)
    if not varies:
        return f"select_{type}_s({mask}, {filler}, {text})"
    mask = mask if own else f"all_i64({mask})"
    return f"select_{type}({mask}, all_{type}({filler}), {text})"


@rule(*JOIN)
def scatter(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Windows put into a table, one after the other."""
    no_keys(eqn)
    table, indices, new = operands
    numbers, join = eqn.params["dimension_numbers"], JOIN[eqn.primitive.name]
    shape, clip, type = table.shape, _clips(eqn.params["mode"]), table.kind.type
    varies = any(x.varies for x in operands)
    array = _to_change(table, varies, writer)
    windows = _Windows(
        writer,
        writer.kept(indices),
        shape,
        new.shape,
        numbers.scatter_dims_to_operand_dims,
        numbers.inserted_window_dims,
        numbers.update_window_dims,
        (numbers.operand_batching_dims, numbers.scatter_indices_batching_dims),
    )

    def one(index):
        begin, moved, inner = windows.position(index, clip)
        beyond = None if clip else windows.outside(begin, moved)
        shared, own = _linear(begin, moved, shape)
        at = add(shared, flat(inner, shape))
        text = in_lanes(new.read(index), new, varies)
        if own:
            inside = writer.scalar("vi64", f"~{beyond[1]}") if beyond else None
            _write_own(writer, array, f"{own} + {at}", text, join, inside)
            return
        entry = f"{array.array}[{at}]"
        with writer.block(f"if (!{beyond[1]}) " if beyond else ""):
            writer.line(f"{entry} = {join(type if varies else f'{type}_s', entry, text)};")

    writer.loops(new.shape, one)
    return [array]
