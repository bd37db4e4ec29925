"""The rule for products of tables."""

import math
from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .elementwise import as_flags, as_type
from .values import ArraySpec, Value, add, spec_of
from .writer import Writer, rule

FEW: int = 64  # entries of a product that long programs compute row by row
TILE: int = 4  # entries of a product along an axis that are summed in one loop


@rule("dot_general")
def dot_general(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A product of tables, computed for a tile of entries at a time."""
    (left_sum, right_sum), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    spec = spec_of(eqn.outvars[0].aval)
    # A product of flags says whether both are on at some index: these are counted and then tested.
    counted = "i64" if spec.type == "b64" else spec.type
    left, right = (writer.materialised(as_type(x, counted)) for x in operands)
    varies = left.varies or right.varies
    array = writer.new(ArraySpec(spec.shape, counted), varies)
    inner = [left.shape[axis] for axis in left_sum]
    left_free = [k for k in range(len(left.shape)) if k not in (*left_sum, *left_batch)]
    right_free = [k for k in range(len(right.shape)) if k not in (*right_sum, *right_batch)]
    zero = f"all_{counted}(0)" if varies else f"({counted})0"

    def index_of(batch, free, part, batch_axes, free_axes, sum_axes, rank):
        known = dict(zip(batch_axes, batch, strict=True))
        known.update(zip(free_axes, free, strict=True))
        known.update(zip(sum_axes, part, strict=True))
        return tuple(known[axis] for axis in range(rank))

    def tile(batch, lefts, rights):
        """Entries for some free indices of the left and of the right table, summed in one loop."""
        totals = {
            (a, b): writer.name("t", varies) for a in range(len(lefts)) for b in range(len(rights))
        }
        writer.line(f"{array.type} {', '.join(f'{t} = {zero}' for t in totals.values())};")

        def step(part):
            xs = [
                left.read(
                    index_of(batch, free, part, left_batch, left_free, left_sum, len(left.shape))
                )
                for free in lefts
            ]
            ys = [
                right.read(
                    index_of(
                        batch, free, part, right_batch, right_free, right_sum, len(right.shape)
                    )
                )
                for free in rights
            ]
            if len(ys) > 1:
                xs = [writer.scalar(left.type, x) for x in xs]
            if len(xs) > 1:
                ys = [writer.scalar(right.type, y) for y in ys]
            for (a, b), total in totals.items():
                writer.line(f"{total} += {xs[a]} * {ys[b]};")

        writer.loops(inner, step, unroll=1 if writer.compact else 8)
        for (a, b), total in totals.items():
            writer.store(array, (*batch, *lefts[a], *rights[b]), total)

    batch_shape = [left.shape[axis] for axis in left_batch]
    left_shape = [left.shape[axis] for axis in left_free]
    right_shape = [right.shape[axis] for axis in right_free]
    rows = TILE if math.prod(right_shape) > 1 else 2 * TILE
    columns = TILE if math.prod(left_shape) > 1 else 2 * TILE
    if writer.compact and math.prod(right_shape) > 1 and spec.size <= FEW:
        rows = 1  # in a loop over them

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
    return [as_flags(array) if spec.type == "b64" else array]


def _tiles(writer, shape, width, body):
    """Write `body(indices)` for all indices, up to `width` along the last axis at once."""
    if not shape:
        body([()])
        return
    number = shape[-1]
    if writer.compact:  # no rest, where a neighbouring width leaves none
        width = next((w for w in (width, width - 1, width + 1) if w and number % w == 0), width)

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
