"""C++ for `SWEEP_COLUMNS` and `SWEEP_LARGEST`, the primitives of inverses in `kernels.linalg.spd`.

Two columns are swept in one pass, which leaves half of the loads and stores. Where all lanes sweep
the same columns, the table stays symmetric and rows are computed only to a little beyond the
diagonal, which leaves a quarter. Each loop over entries has a fixed number of iterations, because
processors predict others badly.
"""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .selection import best_entry
from .sums import fold
from .values import ArraySpec, Value, add, in_lanes, spec_of
from .writer import Writer

TILE: int = 4  # neighbouring rows that are changed in one loop, all up to the same column
# Names of the results by number of axes and type. A call from which JAX removed unused results has
# only some of them.
NAMES: dict[tuple[int, str], str] = {
    (2, "f64"): "inverse",
    (0, "f64"): "logdet",
    (0, "b64"): "positive",
    (3, "f64"): "factor",
}


def sweep_columns(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The results of `kernels.linalg.spd.sweep_columns` that the equation has."""
    matrix, least = operands
    specs = [spec_of(var.aval) for var in eqn.outvars]
    names = [NAMES[len(spec.shape), spec.type] for spec in specs]
    arrays = {name: writer.new(spec, True) for name, spec in zip(names, specs, strict=True)}
    for name, initial in (("logdet", "all_f64(0)"), ("positive", "all_b64(-1)")):
        if name in arrays:
            writer.store(arrays[name], (), initial)
    _Sweep(writer, matrix.shape[0], arrays, in_lanes(least.read(()), least, True)).run(matrix)
    if "factor" in arrays:
        stored = arrays["factor"]  # transposed
        arrays["factor"] = Value(stored.spec, True, lambda index: stored.read((*index[1::-1], 0)))
    return [arrays[name] for name in names]


def sweep_largest(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The results of `kernels.linalg.spd.sweep_largest` that the equation has."""
    matrix, pivots, least = operands
    table = _SweepLargest(writer, matrix, pivots, in_lanes(least.read(()), least, True))
    table.run()
    results = {2: table.table, 1: table.swept}
    return [results[len(spec_of(var.aval).shape)] for var in eqn.outvars]


class _Table:
    """A table, one or two of its columns that are swept in one pass, and both divided by pivots."""

    def __init__(self, writer, dim):
        self.writer, self.dim = writer, dim
        self.table = writer.new(ArraySpec((dim, dim), "f64"), True)
        self.columns = [writer.new(ArraySpec((dim,), "f64"), True) for _ in range(2)]
        self.scaled = [writer.new(ArraySpec((dim,), "f64"), True) for _ in range(2)]

    def change(self, row, column, number):
        """Subtract from an entry what the sweep of so many columns changes."""
        pairs = zip(self.columns[:number], self.scaled[:number], strict=True)
        parts = [f" - {c.read((row,))} * {s.read((column,))}" for c, s in pairs]
        self.writer.store(
            self.table, (row, column), self.table.read((row, column)) + "".join(parts)
        )


class _SweepLargest(_Table):
    """A whole table, because the column of a pivot, another one in each lane, is read as a row.

    What remains of a pivot is -inf once its column is swept. A lane without pivots subtracts zeros.
    """

    def __init__(self, writer, matrix, pivots, least):
        super().__init__(writer, pivots.spec.size)
        self.least = least
        writer.fill(self.table, matrix)
        self.rest = writer.fill(writer.new(pivots.spec, True, mutable=True), pivots)
        self.swept = self._whether("== all_f64(-INFINITY)")

    def _whether(self, test):
        """A flag for each column, of what remains of its pivot."""

        def read(index):
            return f"((vi64)({self.rest.read(index)} {test}))"

        return Value(ArraySpec((self.dim,), "b64"), True, read, cheap=False)

    def run(self):
        """Sweep two columns at a time, until no lane has a pivot."""
        with self.writer.block("for (;;) "):
            self._column(0)
            self._column(1)
            self._sweep()

    def _column(self, slot):
        """Read the column of the largest pivot as it is after the sweep of the one before."""
        writer, rest, column, scaled = self.writer, self.rest, self.columns[slot], self.scaled[slot]
        some = fold(writer, "reduce_or", self._whether(f"> {self.least}"), (), [0])
        # Other lanes of a branch would only make the loop longer.
        active = writer.scalar("vb64", f"{some} & {writer.mask}" if writer.mask else some)
        if slot == 0:
            writer.line(f"if (!{writer.any(active)}) break;")
        pivot = best_entry(writer, rest)
        row = writer.scalar("vi64", f"{pivot.index} * {self.dim}")
        inverse = writer.scalar("vf64", f"1.0 / {pivot.value}")
        swept = ""
        if slot:
            swept = f"gather_own_f64({self.columns[0].array}, {pivot.index})"
            swept = f" - {writer.scalar('vf64', swept)} * "

        def read(index):
            text = f"gather_own_f64({self.table.array} + {index[0]}, {row})"
            if slot:
                text += swept + self.scaled[0].read(index)
            entry = writer.scalar("vf64", text)
            here = writer.scalar("vb64", f"(vi64)({pivot.index} == {index[0]})")
            left = f"{rest.read(index)} - square_f64({entry}) * {inverse}"
            left = f"select_f64({here}, all_f64(-INFINITY), {left})"
            writer.store(rest, index, f"select_f64({active}, {left}, {rest.read(index)})")
            change = writer.scalar("vf64", f"{entry} - select_f64({here}, all_f64(1), all_f64(0))")
            for array, text in ((column, change), (scaled, f"{change} * {inverse}")):
                writer.store(array, index, f"select_f64({active}, {text}, all_f64(0))")

        writer.loops((self.dim,), read, unroll=1)

    def _sweep(self):
        """Subtract from the table what the sweeps of two columns change, some rows at a time."""

        def rows(first, number):
            def change(index):
                for i in range(number):
                    self.change(add(first, i), index[0], 2)

            self.writer.loops((self.dim,), change, unroll=1)

        whole = self.dim - self.dim % TILE
        if whole:
            i = self.writer.name("i")
            with self.writer.block(f"for (i64 {i} = 0; {i} < {whole}; {i} += {TILE}) "):
                rows(i, TILE)
        if whole < self.dim:
            rows(whole, self.dim - whole)


class _Sweep(_Table):
    """The table on and below the diagonal."""

    def __init__(self, writer, dim, arrays, least):
        super().__init__(writer, dim)
        self.arrays, self.least = arrays, least

    def run(self, matrix):
        """Sweep all columns, two at a time, and fill the inverse above the diagonal."""
        writer, dim = self.writer, self.dim
        self._rows(
            lambda i, k: writer.store(
                self.table, (i, k), in_lanes(matrix.read((i, k)), matrix, True)
            )
        )
        if dim > 1:
            first, second = writer.name("j"), writer.name("j")
            with writer.block(f"for (i64 {first} = 0; {first} < {dim - 1}; {first} += 2) "):
                writer.line(f"const i64 {second} = {first} + 1;")
                self._column(0, first)
                self._column(1, second)
                self._sweep(2)
        if dim % 2:
            self._column(0, dim - 1)
            self._sweep(1)
        if "inverse" in self.arrays:
            self._mirror()

    def _entries(self, body):
        """Write `body(index)` for each entry of a column."""
        self.writer.loops((self.dim,), body, unroll=1)

    def _rows(self, body):
        """Write `body(row, column)` for entries up to the diagonal and a few beyond it."""
        for first in range(0, self.dim, TILE):
            rows = range(first, min(first + TILE, self.dim))

            def one(index, rows=rows):
                for row in rows:
                    body(row, index[0])

            self.writer.loops((rows.stop,), one, unroll=1)

    def _column(self, slot, j):
        """Read column j and its pivot; the second of two as it is after the sweep of the first."""
        writer, column, scaled = self.writer, self.columns[slot], self.scaled[slot]
        name = self.table.array

        def read(index):
            (i,) = index
            text = f"{name}[{i} < {j} ? {j} * {self.dim} + {i} : {i} * {self.dim} + {j}]"
            if slot:
                text += f" - {self.columns[0].read(index)} * {self.scaled[0].read((j,))}"
            writer.store(column, index, text)

        self._entries(read)
        pivot = column.read((j,))
        positive = writer.scalar("vb64", f"(vi64)({pivot} > {self.least})")
        pivot = writer.scalar("vf64", f"select_f64({positive}, {pivot}, all_f64(1))")
        inverse = writer.scalar("vf64", f"1.0 / {pivot}")
        if "logdet" in self.arrays:
            writer.line(f"{self.arrays['logdet'].read(())} += log_f64({pivot});")
        if "positive" in self.arrays:
            writer.line(f"{self.arrays['positive'].read(())} &= {positive};")
        if "factor" in self.arrays:
            root = writer.scalar("vf64", f"1.0 / sqrt_f64({pivot})")

            def keep(index):
                below = f"all_b64(-(i64)({index[0]} >= {j}))"
                text = f"select_f64({below}, {column.read(index)} * {root}, all_f64(0))"
                writer.store(self.arrays["factor"], (j, *index, 0), text)  # transposed, for speed

            self._entries(keep)
        writer.line(f"{column.read((j,))} -= 1;")
        self._entries(lambda i: writer.store(scaled, i, f"{column.read(i)} * {inverse}"))

    def _sweep(self, number):
        """Subtract from the table what the sweep of one or two columns changes."""
        self._rows(lambda i, k: self.change(i, k, number))

    def _mirror(self):
        """Copy the swept table to the inverse; they differ by sign and on the diagonal."""
        writer, table, inverse = self.writer, self.table, self.arrays["inverse"]
        i, k = writer.name("i"), writer.name("k")
        with writer.block(f"for (i64 {i} = 0; {i} < {self.dim}; {i}++) "):
            with writer.block(f"for (i64 {k} = 0; {k} < {i}; {k}++) "):
                entry = writer.scalar("vf64", f"-{table.read((i, k))}")
                writer.store(inverse, (i, k), entry)
                writer.store(inverse, (k, i), entry)
            writer.store(inverse, (i, i), f"2.0 - {table.read((i, i))}")
