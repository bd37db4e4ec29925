"""Reads beyond the end of a table, for which JAX takes its last entry without a word.

Of a function of the number of an arm, all indices that follow from that number are computed for
each arm, operation by operation and without compiling anything. What follows from a key is not
known, and never blamed. A read beyond an end counts where the result depends on it: one that
`where` or `cond` leaves out does not, nor does one whose mode is stated, as "clip" is.
"""

import linecache
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jaxtyping import Bool, Float

from ..whole_numbers import EXACT_BELOW
from .randomness import CALLS, JAX

MOST_ENTRIES: int = 10**6  # of a value with an entry for each arm: of larger ones nothing is known
LINES: int = 4  # of a call in the source
UNKNOWN = np.nan
COMPARISONS: dict[str, Callable[..., Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
BITS: tuple[str, ...] = ("and", "or")
ARITHMETIC: dict[str, Callable[..., Any]] = {  # NaN, which is not known, stays NaN
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "rem": np.fmod,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "sign": np.sign,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "and": np.multiply,
    "or": np.maximum,
    "copy": np.positive,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}


class Value(NamedTuple):
    """What is known of a value for each of K arms.

    Attributes:
      entries: with an axis K, or 1 where they are the same for all arms, first; NaN is not known.
        None: none is.
      beyond: `[K]` whether it depends on a read beyond the end of a table.
    """

    entries: Float[np.ndarray, "k ..."] | None
    beyond: Bool[np.ndarray, " K"]


class Read(NamedTuple):
    """A read beyond an end: by which arm, the index, and how many entries there are."""

    arm: int
    index: int
    length: int
    arms: Bool[np.ndarray, " K"]  # all arms that read beyond it


def beyond_the_end(closed: ClosedJaxpr, num_arms: int, known: Sequence[Any]) -> Read | None:
    """The first read beyond the end of a table on which a result depends.

    Args:
      closed: a function of `known`, a key and an arm.
      num_arms: K.
      known: the first arguments, arrays or None for what is not known.
    """
    reader = _Reader(num_arms)
    arms = np.arange(float(num_arms))
    inputs = [*map(reader.constant, known)]
    inputs += [reader.unknown()] * (len(closed.jaxpr.invars) - len(inputs) - 1)
    results = reader.run(closed, [*inputs, Value(arms, reader.none)])
    wrong = np.any([x.beyond for x in results], axis=0)
    return next((x._replace(arms=wrong) for x in reader.reads if (x.arms & wrong).any()), None)


class _Reader:
    """Computes what is known of each value of a jaxpr, and notes reads beyond an end."""

    def __init__(self, num_arms: int) -> None:
        self.none: Bool[np.ndarray, " K"] = np.zeros(num_arms, bool)
        self.reads: list[Read] = []

    def unknown(self, *sources: Value) -> Value:
        """A value of which nothing is known but what it depends on."""
        return Value(None, np.any([self.none, *(x.beyond for x in sources)], axis=0))

    def constant(self, value: Any) -> Value:
        """An array with the same entries for all arms; not known if traced, large or no numbers."""
        try:
            table = np.asarray(value)
        except Exception:  # a key, or what is traced
            return self.unknown()
        if table.dtype.kind not in "biuf" or table.size > MOST_ENTRIES:
            return self.unknown()
        return Value(table.astype(float)[None], self.none)

    def run(self, closed: ClosedJaxpr | Jaxpr, inputs: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr."""
        jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
        consts = closed.consts if isinstance(closed, ClosedJaxpr) else ()
        values = dict(zip(jaxpr.invars, inputs, strict=True))
        values |= zip(jaxpr.constvars, map(self.constant, consts), strict=False)

        def read(x: Any) -> Value:
            if isinstance(x, Literal):
                return self.constant(x.val)
            return values.get(x) or self.unknown()

        for eqn in jaxpr.eqns:
            given = [read(x) for x in eqn.invars]
            values |= zip(eqn.outvars, self._results(eqn, given), strict=True)
        return [read(x) for x in jaxpr.outvars]

    def _results(self, eqn: Any, given: list[Value]) -> list[Value]:
        name = eqn.primitive.name
        inner = [x for value in eqn.params.values() for x in _jaxprs(value)]
        if name in CALLS and len(inner) == 1 and len(_invars(inner[0])) == len(given):
            return self.run(inner[0], given)
        if name == "cond":
            return self._cond(eqn, given)
        if name in ("scan", "while") and inner:
            return self._loop(eqn, given, inner)
        if inner or len(eqn.outvars) != 1:
            return [self.unknown(*given)] * len(eqn.outvars)
        if name in ("dynamic_slice", "gather"):
            given[0] = self._noted(eqn, given)
        shapes = [x.aval.shape for x in (*eqn.invars, *eqn.outvars)]
        entries = [x.entries for x in given]
        if name == "concatenate":  # some of its parts may be known
            entries = [
                np.full((1, *s), UNKNOWN) if x is None else x
                for x, s in zip(entries, shapes, strict=False)
            ]
        found = None
        fits = math.prod(shapes[-1]) * self.none.size <= MOST_ENTRIES
        if fits and (name == "select_n" or all(x is not None for x in entries)):
            with np.errstate(all="ignore"):
                found = _computed(name, eqn, entries)
        return [Value(found, self._depends(name, given))]

    def _depends(self, name: str, given: list[Value]) -> Bool[np.ndarray, " K"]:
        """Of an operation, for which arms its result depends on a read beyond an end."""
        if name == "select_n":
            which, *cases = given
            taken = [which.beyond]
            for number, case in enumerate(cases):
                taken.append(case.beyond & self._may_be(which.entries, number))
            return np.any(taken, axis=0)
        if name == "mul":
            one, two = given
            zero = [~self._may_be(x.entries, 0, other=True) for x in given]
            return (one.beyond & ~zero[1]) | (two.beyond & ~zero[0])
        return self.unknown(*given).beyond

    def _may_be(self, entries: Any, number: int, *, other: bool = False) -> Any:
        """For which arms an entry may be this number, or with `other` another one."""
        if entries is None:
            return ~self.none
        rows = entries.reshape(len(entries), -1)
        may = np.isnan(rows) | ((rows != number) if other else (rows == number))
        return np.broadcast_to(may.any(1), self.none.shape)

    def _cond(self, eqn: Any, given: list[Value]) -> list[Value]:
        which, *rest = given
        cases = zip(*(self.run(branch, rest) for branch in eqn.params["branches"]), strict=True)
        return [Value(None, self._depends("select_n", [which, *results])) for results in cases]

    def _loop(self, eqn: Any, given: list[Value], inner: list[Any]) -> list[Value]:
        """What a loop carries is not known; what its body takes from outside is."""
        found = []
        for jaxpr in inner:
            invars, begin = _invars(jaxpr), 0
            if eqn.primitive.name == "while" and jaxpr is eqn.params["body_jaxpr"]:
                begin = eqn.params["cond_nconsts"]
            counts = [eqn.params.get(f"{x}nconsts", 0) for x in ("cond_", "body_")]
            number = eqn.params.get("num_consts", counts[bool(begin) or len(found) > 0])
            own = [self.unknown()] * len(invars)
            own[:number] = given[begin : begin + number]
            found += self.run(jaxpr, own[: len(invars)])
        return [self.unknown(*given, *found)] * len(eqn.outvars)

    def _noted(self, eqn: Any, given: list[Value]) -> Value:
        """The table of a read, which is noted where its index is beyond an end."""
        table, *places = given
        sizes, shape = eqn.params["slice_sizes"], eqn.invars[0].aval.shape
        beyond = self.none
        if eqn.primitive.name == "gather":
            dims = eqn.params["dimension_numbers"].start_index_map
            indices = places[0].entries
            split = [] if indices is None else [indices[..., i] for i in range(len(dims))]
        else:
            dims, split = range(len(shape)), [x.entries for x in places]
        if _is_stated(eqn):
            return table
        for dim, entries in zip(dims, split, strict=False):
            if entries is None:
                continue
            rows = np.broadcast_to(
                entries.reshape(len(entries), -1), (self.none.size, entries[0].size)
            )
            wrong = np.asarray((rows < 0) | (rows > shape[dim] - sizes[dim]))
            if wrong.any():
                arm, column = np.argwhere(wrong)[0]
                arms: Any = wrong.any(1)
                index = int(rows[arm, column]) + (sizes[dim] - 1)
                self.reads.append(Read(int(arm), index, shape[dim], arms))
                beyond = beyond | arms
        return table._replace(beyond=table.beyond | beyond)


def _jaxprs(value: Any) -> list[Any]:
    several = value if isinstance(value, list | tuple) else [value]
    return [x for x in several if isinstance(x, ClosedJaxpr | Jaxpr)]


def _invars(jaxpr: Any) -> Sequence[Any]:
    return (jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr).invars


def _computed(name: str, eqn: Any, entries: list[Any]) -> Any:
    """The result of an operation on known entries; None of one that is not here."""
    params, shape = eqn.params, eqn.outvars[0].aval.shape
    dtype = eqn.outvars[0].aval.dtype
    if name in BITS and dtype.kind != "b":
        return None
    if name in ARITHMETIC:
        return _in_range(ARITHMETIC[name](*entries), dtype)
    if name in COMPARISONS:
        known = ~np.any(np.isnan(np.broadcast_arrays(*entries)), axis=0)
        return np.where(known, COMPARISONS[name](*entries), UNKNOWN)
    if name == "div":
        ratio = entries[0] / entries[1]
        return np.trunc(ratio) if dtype.kind in "iu" else ratio
    if name == "not" and dtype.kind == "b":
        return 1.0 - entries[0]
    if name == "convert_element_type":
        return _converted(entries[0], params["new_dtype"])
    if name == "select_n":
        return _selected(*entries)
    return _moved(name, params, entries, shape)


def _in_range(entries, dtype):
    """The entries but for whole numbers that would wrap around or are not exact."""
    if dtype.kind not in "iu":
        return entries
    ends = np.iinfo(dtype)
    low, high = max(float(ends.min), -EXACT_BELOW), min(float(ends.max), EXACT_BELOW)
    return np.where((entries < low) | (entries > high), UNKNOWN, entries)


def _converted(entries, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.where(np.isnan(entries), UNKNOWN, entries != 0)
    return np.trunc(entries) if kind in "iu" else entries


def _selected(which, *cases):
    """Entries of the cases that are chosen; NaN where that is not known."""
    if which is None or all(case is None for case in cases):
        return None
    found: Any = UNKNOWN
    for number, case in enumerate(cases):
        found = np.where(which == number, UNKNOWN if case is None else case, found)
    return found


def _moved(name: str, params: Mapping[str, Any], entries: list[Any], shape: Any) -> Any:
    """Entries in another order or shape, or some of them."""
    if name == "iota":
        numbers = np.arange(float(shape[params["dimension"]]))
        to = [-1 if dim == params["dimension"] else 1 for dim in range(len(shape))]
        return np.broadcast_to(numbers.reshape(1, *to), (1, *shape))
    if not entries:
        return None
    table: Any = entries[0]
    if name in ("reshape", "squeeze"):
        return table.reshape(len(table), *shape)
    if name == "broadcast_in_dim":
        to = [1] * len(shape)
        for size, dim in zip(table.shape[1:], params["broadcast_dimensions"], strict=True):
            to[dim] = size
        return np.broadcast_to(table.reshape(len(table), *to), (len(table), *shape))
    if name == "concatenate":
        number = max(map(len, entries))
        parts = [np.broadcast_to(x, (number, *x.shape[1:])) for x in entries]
        return np.concatenate(parts, params["dimension"] + 1)
    if name == "dynamic_slice":
        return _sliced(table, entries[1:], params["slice_sizes"])
    if name == "gather" and table.ndim == 2 and params["slice_sizes"] == (1,) and not shape:
        return _sliced(table, [entries[1][..., 0]], (1,))[..., 0]
    return None


def _sliced(table, places, sizes):
    number = max(map(len, [table, *places]))
    table = np.broadcast_to(table, (number, *table.shape[1:]))
    places = [np.broadcast_to(x, (number,)) for x in places]
    if np.isnan(places).any():
        return None
    most = np.array(table.shape[1:]) - sizes
    starts = np.clip(np.stack(places, 1), 0, most).astype(int)
    return np.stack(
        [
            row[tuple(slice(a, a + n) for a, n in zip(start, sizes, strict=True))]
            for row, start in zip(table, starts, strict=True)
        ]
    )


def _is_stated(eqn: Any) -> bool:
    """Whether the source says what a read beyond the end gives."""
    mode, fill = str(eqn.params.get("mode")), eqn.params.get("fill_value")
    if mode.endswith("CLIP"):
        return True
    if mode.endswith("FILL_OR_DROP"):
        dtype = eqn.outvars[0].aval.dtype
        ends = () if dtype.kind not in "iu" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return not (fill is None or fill != fill or fill in ends)
    return _is_get_with_mode(eqn)


def _is_get_with_mode(eqn):
    """Whether an operation is `x.at[i].get(mode=...)`, which leaves no trace of its mode.

    Where there is no source to read, it is taken to be so.
    """
    frames = getattr(getattr(eqn.source_info, "traceback", None), "frames", ())
    got = False
    for frame in frames:  # the innermost first
        if frame.file_name.startswith(JAX):
            got = got or frame.function_name.endswith("get")
            continue
        if not got:
            return False
        numbers = range(max(1, frame.line_num - 1), frame.line_num + LINES)
        text = "".join(linecache.getline(frame.file_name, number) for number in numbers)
        return not text or "mode" in text
    return False
