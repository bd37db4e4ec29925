"""Tables put in order, a lane at a time."""

from collections.abc import Sequence

from jax.extend.core import JaxprEqn

from .values import Unsupported, Value, kind_of
from .writer import Writer, rule

NEEDS: str = "#include <algorithm>"


@rule("sort")
def sort(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """By the first `num_keys` tables, the others moved alike; entries that are equal stay.

    NaN comes last, whatever its sign; -0 equals 0.
    """
    axis, kinds = eqn.params["dimension"], [kind_of(var.aval) for var in eqn.outvars]
    if any(kind.shape != x.shape for kind, x in zip(kinds, operands, strict=True)):
        raise Unsupported("the operation 'sort' on keys")
    writer.functions[NEEDS] = NEEDS
    given = [writer.fill(writer.new(x.kind, True), x) for x in operands]
    sorted_, keys = [writer.new(x.kind, True) for x in given], given[: eqn.params["num_keys"]]
    length, place = kinds[0].shape[axis], writer.name("p")

    def entry(array, index, i):
        return array.read((*index[:axis], i, *index[axis + 1 :])) + "[lane]"

    def one(index):
        order = "".join(_before(x, entry(x, index, "a"), entry(x, index, "b")) for x in keys)
        ranks = f"[&](i64 a, i64 b) {{ {order} return a < b; }}"
        moves = " ".join(
            f"{entry(new, index, 'i')} = {entry(old, index, f'{place}[i]')};"
            for new, old in zip(sorted_, given, strict=True)
        )
        # One statement, which the writer repeats for each group of lanes.
        writer.line(
            f"EACH {{ static thread_local i64 {place}[{length}]; "
            f"for (i64 i = 0; i < {length}; i++) {place}[i] = i; "
            f"std::sort({place}, {place} + {length}, {ranks}); "
            f"for (i64 i = 0; i < {length}; i++) {{ {moves} }} }}"
        )

    writer.loops((*kinds[0].shape[:axis], 1, *kinds[0].shape[axis + 1 :]), one)
    return sorted_


def _before(key, a, b):
    """Decides where two entries differ."""
    if key.kind.type == "b64":  # all bits set is less than none
        a, b = b, a
    less = "if ({0} < {1} || ({1} != {1} && {0} == {0})) return true; "
    more = "if ({1} < {0} || ({0} != {0} && {1} == {1})) return false; "
    return less.format(a, b) + more.format(a, b)
