"""Entries of tables at places that all lanes share or each has its own."""

from jax.lax import GatherScatterMode

from .layout import no_keys, view
from .values import (
    Kind,
    Value,
    add,
    constant,
    flat,
    kind_of,
    literal,
    spread,
    strides,
    times,
    words_of,
)
from .writer import UNROLL, rule

CHAIN = 12  # up to this many entries a chain of choices beats reading lane by lane
JOIN = {
    "scatter": lambda type, old, new: new,
    "scatter-add": lambda type, old, new: f"({old} + {new})",
    "scatter-sub": lambda type, old, new: f"({old} - {new})",
    "scatter-mul": lambda type, old, new: f"({old} * {new})",
    "scatter-min": lambda type, old, new: f"min_{type}_s({old}, {new})",
    "scatter-max": lambda type, old, new: f"max_{type}_s({old}, {new})",
}


def _place(value, index, high, writer, clamp=True):
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
    """The entry of an array at each lane's own place, beyond a shared one."""
    look = "look" if table.varies else "read"
    return f"{look}_{table.kind.type}({table.array} + {shared}, {own})"


def _chosen(writer, table, begin, moved, shape, index):
    """The same for a short axis along which alone lanes differ: a chain of choices."""
    axis = moved.index(True)

    def entry(i):
        place = [add(b, k) for b, k in zip(begin, index, strict=True)]
        place[axis] = i
        return spread(f"{table.array}[{flat(place, shape)}]", table, True)

    text = entry(shape[axis] - 1)
    for i in range(shape[axis] - 1):
        text = f"select_{table.kind.type}((vi64)({begin[axis]} == {i}), {entry(i)}, {text})"
    return text


def _linear(places, moved, steps):
    """Shared and own part of a row-major place."""
    shared = add(0, *[times(p, s) for p, m, s in zip(places, moved, steps, strict=True) if not m])
    own = [times(p, s) for p, m, s in zip(places, moved, steps, strict=True) if m]
    return shared, " + ".join(map(str, own))


@rule("dynamic_slice")
def dynamic_slice(eqn, operands, writer):
    """A part that starts somewhere."""
    table, *starts = operands
    kind, shape = kind_of(eqn.outvars[0].aval), table.shape
    if words_of(eqn.invars[0].aval):
        starts = [*starts, constant(0, Kind((), "i64"))]
    moved = [x.varies for x in starts]
    table = writer.array(_held(table, writer)) if any(moved) else writer.kept(table)
    bounds = zip(starts, shape, kind.shape, strict=True)
    begin = [_place(x, (), n - k, writer) for x, n, k in bounds]
    if not any(moved):
        found = view(table, kind.shape, lambda i: tuple(map(add, begin, i)))
        return [found]
    shared, own = _linear(begin, moved, strides(shape))
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


def _held(table, writer):
    """An array passed in from outside can be addressed as it is."""
    if table.host is not None and table.array is None and table.kind.size > 1:
        name = table.read((0,) * len(table.shape)).partition("[")[0]
        return table._replace(array=name)
    return table


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn, operands, writer):
    """A part put somewhere."""
    no_keys(eqn)
    table, new, *starts = operands
    varies = any(x.varies for x in operands)
    array = _to_change(table, varies, writer)
    bounds = zip(starts, table.shape, new.shape, strict=True)
    begin = [_place(x, (), n - k, writer) for x, n, k in bounds]
    moved = [x.varies for x in starts]

    def one(index):
        text = spread(new.read(index), new, varies)
        if not any(moved):
            writer.store(array, tuple(map(add, begin, index)), text)
            return
        shared, own = _linear(begin, moved, strides(table.shape))
        place = add(shared, flat(index, table.shape))
        _write_own(writer, array, f"{own} + {place}", text, JOIN["scatter"])

    writer.loops(new.shape, one)
    return [array]


def _to_change(table, varies, writer):
    """An array with the numbers of a table, itself where nobody else reads it."""
    if table.owned and table.array is not None and table.varies == varies:
        return table
    return writer.fill(writer.new(table.kind, varies), table)


def _write_own(writer, array, place, text, join, inside=None):
    """An entry at each lane's own place, lane by lane."""
    type = array.kind.type
    where, new = writer.scalar("vi64", place), writer.scalar(f"v{type}", text)
    entry = f"(({type} *)({array.array} + {where}[lane]))[lane]"
    guard = f"if ({inside}[lane]) " if inside else ""
    writer.line(f"EACH {guard}{entry} = {join(type, entry, f'{new}[lane]')};")


class _Places:
    """Where the windows of a gather or a scatter begin."""

    def __init__(self, indices, mapped, axes, batching, writer):
        self.indices, self.mapped, self.axes = indices, tuple(mapped), axes
        self.operand_batch, self.index_batch = batching
        self.writer = writer

    def begin(self, batch, shape, window, clamp):
        """One position for each axis of the table, `(place, whether it is a lane's own)`."""
        found = []
        for axis, n in enumerate(shape):
            if axis in self.mapped:
                index = (*batch, self.mapped.index(axis))
                place = _place(self.indices, index, n - window[axis], self.writer, clamp)
                found.append((place, self.indices.varies and not isinstance(place, int)))
            elif axis in self.operand_batch:
                where = self.index_batch[self.operand_batch.index(axis)]
                found.append((batch[where], False))
            else:
                found.append((0, False))
        return found


def _clips(mode):
    return mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


def _outside(begin, shape, window, writer):
    """A mask of the windows that leave the table, or None where none can."""
    parts = []
    for (place, own), n, w in zip(begin, shape, window, strict=True):
        if place == 0:
            continue
        v = "(vi64)" if own else "-(i64)"
        parts.append((own, f"({v}({place} < 0) | {v}({place} > {n - w}))"))
    if not parts:
        return None
    own = any(o for o, _ in parts)
    joined = " | ".join(text if o or not own else f"all_i64({text})" for o, text in parts)
    return own, writer.scalar("vi64" if own else "i64", joined)


@rule("gather")
def gather(eqn, operands, writer):
    """Windows of a table, one for each row of indices."""
    no_keys(eqn)
    table, indices = operands
    numbers, window = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    kind, shape, clip = kind_of(eqn.outvars[0].aval), table.shape, _clips(eqn.params["mode"])
    table, indices = writer.array(_held(table, writer)), writer.kept(indices)
    batching = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    places = _Places(indices, numbers.start_index_map, numbers, batching, writer)
    hidden = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept_axes = [axis for axis in range(len(shape)) if axis not in hidden]
    varies = table.varies or indices.varies
    array = writer.new(kind, varies)

    def one(index):
        batch = tuple(i for k, i in enumerate(index) if k not in numbers.offset_dims)
        inner = [0] * len(shape)
        for axis, k in zip(kept_axes, numbers.offset_dims, strict=True):
            inner[axis] = index[k]
        begin = places.begin(batch, shape, window, True)
        moved = [own for _, own in begin]
        shared, own = _linear([p for p, _ in begin], moved, strides(shape))
        place = add(shared, flat(inner, shape))
        if not own:
            text = spread(f"{table.array}[{place}]", table, varies)
        elif sum(moved) == 1 and _short(shape, window, moved.index(True)):
            text = _chosen(writer, table, [p for p, _ in begin], moved, shape, inner)
        else:
            text = _own_entry(table, f"({own})", place)
        if not clip:
            raw = places.begin(batch, shape, window, False)
            beyond = _outside(raw, shape, window, writer)
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
def scatter(eqn, operands, writer):
    """Windows put into a table, one after the other."""
    no_keys(eqn)
    table, indices, new = operands
    numbers, join = eqn.params["dimension_numbers"], JOIN[eqn.primitive.name]
    shape, clip, type = table.shape, _clips(eqn.params["mode"]), table.kind.type
    varies = any(x.varies for x in operands)
    array = _to_change(table, varies, writer)
    indices = writer.kept(indices)
    batching = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
    places = _Places(indices, numbers.scatter_dims_to_operand_dims, numbers, batching, writer)
    hidden = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    kept_axes = [axis for axis in range(len(shape)) if axis not in hidden]
    window = [1] * len(shape)
    for axis, k in zip(kept_axes, numbers.update_window_dims, strict=True):
        window[axis] = new.shape[k]

    def one(index):
        batch = tuple(i for k, i in enumerate(index) if k not in numbers.update_window_dims)
        inner = [0] * len(shape)
        for axis, k in zip(kept_axes, numbers.update_window_dims, strict=True):
            inner[axis] = index[k]
        begin = places.begin(batch, shape, window, clip)
        beyond = None if clip else _outside(begin, shape, window, writer)
        moved = [own for _, own in begin]
        shared, own = _linear([p for p, _ in begin], moved, strides(shape))
        place = add(shared, flat(inner, shape))
        text = spread(new.read(index), new, varies)
        if own:
            inside = None
            if beyond is not None:
                inside = writer.scalar("vi64", f"~{beyond[1]}")
            _write_own(writer, array, f"{own} + {place}", text, join, inside)
            return
        entry = f"{array.array}[{place}]"
        joined = join(type, entry, text)
        if varies:
            joined = joined.replace(f"_{type}_s(", f"_{type}(")
        with writer.block(f"if (!{beyond[1]}) " if beyond is not None else ""):
            writer.line(f"{entry} = {joined};")

    writer.loops(new.shape, one)
    return [array]
