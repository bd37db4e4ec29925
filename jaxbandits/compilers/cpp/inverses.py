"""C++ for `SWEEP_COLUMNS`, the primitive of inverses in `kernels.linalg.spd`.

The table stays symmetric, so rows are computed only to a little beyond the diagonal, and two
columns are swept in one pass: together this leaves a quarter of the loads and stores. Each loop has
a fixed number of iterations, because processors predict others badly.
"""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .values import ArraySpec, Value, in_lanes, spec_of
from .writer import Writer

TILE: int = 4  # neighbouring rows that end at the same column
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


class _Sweep:
    """The table on and below the diagonal, two of its columns, and both divided by their pivots."""

    def __init__(self, writer, dim, arrays, least):
        self.writer, self.dim, self.arrays, self.least = writer, dim, arrays, least
        self.table = writer.new(ArraySpec((dim, dim), "f64"), True)
        self.columns = [writer.new(ArraySpec((dim,), "f64"), True) for _ in range(2)]
        self.scaled = [writer.new(ArraySpec((dim,), "f64"), True) for _ in range(2)]

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

        def change(i, k):
            pairs = list(zip(self.columns, self.scaled, strict=True))[:number]
            parts = [f" - {c.read((i,))} * {s.read((k,))}" for c, s in pairs]
            self.writer.store(self.table, (i, k), self.table.read((i, k)) + "".join(parts))

        self._rows(change)

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
