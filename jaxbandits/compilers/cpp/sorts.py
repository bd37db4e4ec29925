"""The rule for sorting tables, lane by lane."""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .values import ArraySpec, Unsupported, Value, spec_of
from .writer import Writer, rule


@rule("sort")
def sort(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A stable sort of all tables by the first `num_keys` of them.

    NaN comes last, whatever its sign; -0 equals 0.
    """
    axis, specs = eqn.params["dimension"], [spec_of(var.aval) for var in eqn.outvars]
    if any(spec.shape != x.shape for spec, x in zip(specs, operands, strict=True)):
        raise Unsupported("the operation 'sort' on keys")
    given = [writer.fill(writer.new(x.spec, True), x) for x in operands]
    sorted_, keys = [writer.new(x.spec, True) for x in given], given[: eqn.params["num_keys"]]
    length = specs[0].shape[axis]
    positions = ArraySpec((length,), "i64")
    order, other = (writer.new(positions, False).array for _ in range(2))

    def entry(array, index, i):
        return array.read((*index[:axis], i, *index[axis + 1 :])) + "[lane]"

    def one(index):
        comparisons = "".join(_before(x, entry(x, index, "a"), entry(x, index, "b")) for x in keys)
        less = f"[&](i64 a, i64 b) {{ {comparisons} return false; }}"
        moves = " ".join(
            f"{entry(new, index, 'i')} = {entry(old, index, f'{order}[i]')};"
            for new, old in zip(sorted_, given, strict=True)
        )
        # One statement, which the writer repeats for each group of lanes.
        writer.line(
            f"EACH_LANE {{ sort_positions({order}, {other}, {length}, {less}); "
            f"for (i64 i = 0; i < {length}; i++) {{ {moves} }} }}"
        )

    writer.loops((*specs[0].shape[:axis], 1, *specs[0].shape[axis + 1 :]), one)
    return sorted_


def _before(key, a, b):
    """C++ that returns whether entry a comes before entry b of a key, where they differ."""
    if key.spec.type == "b64":  # as integers, true is -1 and false is 0
        a, b = b, a
    less = "if ({0} < {1} || ({1} != {1} && {0} == {0})) return true; "
    more = "if ({1} < {0} || ({0} != {0} && {1} == {1})) return false; "
    return less.format(a, b) + more.format(a, b)
