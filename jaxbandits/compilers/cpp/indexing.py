"""Rules that read and write entries of tables, at indices that are shared or differ by lane."""

from collections.abc import Callable, Sequence

from jax.extend.core import JaxprEqn

from ..jaxprs import clips_indices
from .layout import no_keys, view
from .values import (
    ArraySpec,
    Value,
    add,
    constant,
    flat,
    in_lanes,
    known_entry,
    literal,
    spec_of,
    strides,
    times,
    words_of,
)
from .writer import UNROLL, Writer, rule

CHAIN: int = 12  # up to this many entries, a chain of `select` is faster than reads lane by lane
# What is written, from the suffix of functions of the type, the old and the new entry.
JOIN: dict[str, Callable[[str, str, str], str]] = {
    "scatter": lambda end, old, new: new,
    "scatter-add": lambda end, old, new: f"({old} + {new})",
    "scatter-sub": lambda end, old, new: f"({old} - {new})",
    "scatter-mul": lambda end, old, new: f"({old} * {new})",
    "scatter-min": lambda end, old, new: f"min_{end}({old}, {new})",
    "scatter-max": lambda end, old, new: f"max_{end}({old}, {new})",
}


def _position(value, index, high, writer, clamp=True):
    """A position as a C++ expression or a number, clipped to 0 and `high` unless not `clamp`."""
    if (number := known_entry(value.known, index)) is not None:
        return max(0, min(int(number), high)) if clamp else int(number)
    text, v = value.read(index), "v" if value.varies else ""
    if value.spec.type != "i64":
        text = f"CONVERT({text}, vi64)" if v else f"((i64){text})"
    if clamp and not (value.range and value.range[0] >= 0 and value.range[1] <= high):
        s = "" if v else "_s"
        low, top = (f"all_i64({x})" if v else f"((i64){x})" for x in (0, high))
        text = f"min_i64{s}(max_i64{s}({text}, {low}), {top})"
    return writer.scalar(f"{v}i64", text)


def _entry_per_lane(table, own, shared):
    """For each lane the entry of an array at the position `shared + own`; `own` differs by lane."""
    function = "gather_own" if table.varies else "gather_shared"
    return f"{function}_{table.spec.type}({table.array} + {shared}, {own})"


def _by_choices(writer, table, begin, differs, shape, index):
    """The same by a chain of `select`, where lanes differ along one short axis alone."""
    axis = differs.index(True)

    def entry(i):
        own = [add(b, k) for b, k in zip(begin, index, strict=True)]
        own[axis] = i
        return in_lanes(f"{table.array}[{flat(tuple(own), shape)}]", table, True)

    text = entry(shape[axis] - 1)
    for i in range(shape[axis] - 1):
        text = f"select_{table.spec.type}((vi64)({begin[axis]} == {i}), {entry(i)}, {text})"
    return text


def _starts(starts, shape, window, writer):
    """Where a window begins along each axis, and whether that differs by lane."""
    bounds = zip(starts, shape, window, strict=True)
    return [_position(x, (), n - k, writer) for x, n, k in bounds], [x.varies for x in starts]


def _linear(begin, differs, shape):
    """The shared part of a row-major position, and the part that differs by lane."""
    parts = list(zip(begin, differs, strides(shape), strict=True))
    shared = add(0, *[times(at, step) for at, own, step in parts if not own])
    return shared, " + ".join(str(times(at, step)) for at, own, step in parts if own)


@rule("dynamic_slice")
def dynamic_slice(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A slice whose start is computed."""
    table, *starts = operands
    spec, shape = spec_of(eqn.outvars[0].aval), table.shape
    if words_of(eqn.invars[0].aval):
        starts = [*starts, constant(0, ArraySpec((), "i64"))]
    begin, differs = _starts(starts, shape, spec.shape, writer)
    if not any(differs):
        return [view(writer.materialised(table), spec.shape, lambda i: tuple(map(add, begin, i)))]
    table = writer.as_array(_addressable(table))
    shared, own = _linear(begin, differs, shape)
    short = sum(differs) == 1 and _short(shape, spec.shape, differs.index(True))
    if not short:
        own = writer.scalar("vi64", own)

    def read(index):
        if short:
            return _by_choices(writer, table, begin, differs, shape, index)
        return _entry_per_lane(table, own, add(shared, flat(index, shape)))

    reads = dict.fromkeys(table.reads, False)
    heavy = not short or spec.size * shape[differs.index(True)] > 2 * UNROLL
    return [Value(spec, True, read, cheap=False, reads=reads, heavy=heavy)]


def _short(shape, window, axis):
    return shape[axis] <= CHAIN and window[axis] == 1


def _addressable(table):
    """A table that the program gets as an argument, as an array whose entries have addresses."""
    passed_in = table.outer is not None and table.known is None
    if passed_in and table.array is None and table.spec.size > 1:
        name = table.read((0,) * len(table.shape)).partition("[")[0]
        return table._replace(array=name)
    return table


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A copy of a table with a slice replaced, whose start is computed."""
    no_keys(eqn)
    table, new, *starts = operands
    varies = any(x.varies for x in operands)
    array = _writable(table, varies, writer)
    begin, differs = _starts(starts, table.shape, new.shape, writer)

    def one(index):
        text = in_lanes(new.read(index), new, varies)
        if not any(differs):
            writer.store(array, tuple(map(add, begin, index)), text)
            return
        shared, own = _linear(begin, differs, table.shape)
        at = add(shared, flat(index, table.shape))
        _write_per_lane(writer, array, f"{own} + {at}", text, JOIN["scatter"])

    writer.loops(new.shape, one)
    return [array]


def _writable(table, varies, writer):
    """An array with the numbers of a table: its own array if no other value reads that."""
    if table.owned and table.array is not None and table.varies == varies:
        return table
    return writer.fill(writer.new(table.spec, varies), table)


def _write_per_lane(writer, array, at, text, join, inside=None):
    """Write an entry at a position that differs by lane, lane by lane."""
    type = array.spec.type
    where, new = writer.scalar("vi64", at), writer.scalar(f"v{type}", text)
    entry = f"ENTRY({type}, {array.array}, {where})"
    guard = f"if ({inside}[lane]) " if inside else ""
    writer.line(f"EACH_LANE {guard}{entry} = {join(f'{type}_s', entry, f'{new}[lane]')};")


class _Windows:
    """The windows of a gather or a scatter.

    Args:
      writer: of the program.
      indices: where the windows begin, along the axes `mapped` of the table.
      shape: of the table.
      outer: the shape of all windows together, with the axes `dims` of a single window.
      mapped: see `indices`.
      hidden: axes of the table that are none of a window, which has length one there.
      dims: see `outer`.
      batching: axes of the table and of the indices along which both advance together.
    """

    def __init__(self, writer, indices, shape, outer, mapped, hidden, dims, batching):
        self.writer, self.indices, self.shape = writer, indices, shape
        self.mapped, self.dims = tuple(mapped), tuple(dims)
        self.batching = dict(zip(*batching, strict=True))
        self.axes = [k for k in range(len(shape)) if k not in (*hidden, *self.batching)]
        self.window = self._along(outer, 1)

    def _along(self, entries, default):
        """For each axis of the table the entry of the window's axis, or the default."""
        found = [default] * len(self.shape)
        for axis, k in zip(self.axes, self.dims, strict=True):
            found[axis] = entries[k]
        return found

    def position(self, index, clamp):
        """Where the window of an entry begins, whether that differs by lane, the index in it."""
        batch = [i for k, i in enumerate(index) if k not in self.dims]
        begin = [self._begin(axis, batch, clamp) for axis in range(len(self.shape))]
        starts, differs = zip(*begin, strict=True) if begin else ((), ())
        return list(starts), list(differs), self._along(index, 0)

    def _begin(self, axis, batch, clamp):
        if axis in self.mapped:
            index = (*batch, self.mapped.index(axis))
            high = self.shape[axis] - self.window[axis]
            at = _position(self.indices, index, high, self.writer, clamp)
            return at, self.indices.varies and not isinstance(at, int)
        return (batch[self.batching[axis]] if axis in self.batching else 0), False

    def out_of_bounds(self, begin, differs):
        """Whether the mask differs by lane, and the mask of windows that leave the table.

        None where no window can leave it.
        """
        parts = []
        for at, own, n, w in zip(begin, differs, self.shape, self.window, strict=True):
            if isinstance(at, int) and 0 <= at <= n - w:
                continue
            v = "(vi64)" if own else "-(i64)"
            parts.append((own, f"({v}({at} < 0) | {v}({at} > {n - w}))"))
        if not parts:
            return None
        own = any(o for o, _ in parts)
        joined = " | ".join(text if o or not own else f"all_i64({text})" for o, text in parts)
        return own, self.writer.scalar("vi64" if own else "i64", joined)


@rule("gather")
def gather(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Windows of a table, one for each row of indices."""
    no_keys(eqn)
    table, indices = operands
    numbers, clip = eqn.params["dimension_numbers"], clips_indices(eqn.params["mode"])
    spec, shape = spec_of(eqn.outvars[0].aval), table.shape
    table, indices = writer.as_array(_addressable(table)), writer.materialised(indices)
    windows = _Windows(
        writer,
        indices,
        shape,
        spec.shape,
        numbers.start_index_map,
        numbers.collapsed_slice_dims,
        numbers.offset_dims,
        (numbers.operand_batching_dims, numbers.start_indices_batching_dims),
    )
    varies = table.varies or indices.varies
    array = writer.new(spec, varies)

    def one(index):
        begin, differs, inner = windows.position(index, True)
        shared, own = _linear(begin, differs, shape)
        at = add(shared, flat(inner, shape))
        if not own:
            text = in_lanes(f"{table.array}[{at}]", table, varies)
        elif sum(differs) == 1 and _short(shape, windows.window, differs.index(True)):
            text = _by_choices(writer, table, begin, differs, shape, inner)
        else:
            text = _entry_per_lane(table, f"({own})", at)
        outside = None if clip else windows.out_of_bounds(*windows.position(index, False)[:2])
        if outside is not None:
            text = _with_filler(text, outside, eqn, spec.type, varies)
        writer.store(array, index, text)

    lane_by_lane = indices.varies and max(shape) > CHAIN
    writer.loops(spec.shape, one, unroll=1 if lane_by_lane else UNROLL)
    return [array]


def _with_filler(text, outside, eqn, type, varies):
    """An entry, or the filler where its window leaves the table."""
    filler = eqn.params["fill_value"]
    if filler is None:
        extremes = {"i64": -(2**63), "i32": -(2**31), "u64": 2**64 - 1, "u32": 2**32 - 1, "b64": 1}
        filler = extremes.get(type, float("nan"))
    own, mask = outside
    filler = literal(filler, type)
    if not varies:
        return f"select_{type}_s({mask}, {filler}, {text})"
    mask = mask if own else f"all_i64({mask})"
    return f"select_{type}({mask}, all_{type}({filler}), {text})"


@rule(*JOIN)
def scatter(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A copy of a table into which windows are written, one after the other."""
    no_keys(eqn)
    table, indices, new = operands
    numbers, join = eqn.params["dimension_numbers"], JOIN[eqn.primitive.name]
    shape, clip, type = table.shape, clips_indices(eqn.params["mode"]), table.spec.type
    varies = any(x.varies for x in operands)
    array = _writable(table, varies, writer)
    windows = _Windows(
        writer,
        writer.materialised(indices),
        shape,
        new.shape,
        numbers.scatter_dims_to_operand_dims,
        numbers.inserted_window_dims,
        numbers.update_window_dims,
        (numbers.operand_batching_dims, numbers.scatter_indices_batching_dims),
    )

    def one(index):
        begin, differs, inner = windows.position(index, clip)
        outside = None if clip else windows.out_of_bounds(begin, differs)
        shared, own = _linear(begin, differs, shape)
        at = add(shared, flat(inner, shape))
        text = in_lanes(new.read(index), new, varies)
        if own:
            inside = writer.scalar("vi64", f"~{outside[1]}") if outside else None
            _write_per_lane(writer, array, f"{own} + {at}", text, join, inside)
            return
        entry = f"{array.array}[{at}]"
        with writer.block(f"if (!{outside[1]}) " if outside else ""):
            writer.line(f"{entry} = {join(type if varies else f'{type}_s', entry, text)};")

    writer.loops(new.shape, one)
    return [array]
