"""Values of the generated program, which stand for the variables of a jaxpr."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jax.extend.core import JaxprEqn

from ..keys import is_key, is_threefry
from ..origins import origin_of

# The index of an entry, for each axis an integer or a C++ expression.
Index: TypeAlias = tuple[int | str, ...]

# C++ types by dtype; a flag is a mask of 64 bits.
SUFFIX: dict[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "uint64": "u64",
    "uint32": "u32",
    "bool": "b64",
}

DTYPES: dict[str, str] = {suffix: name for name, suffix in SUFFIX.items()}


class Unsupported(NotImplementedError, ValueError):
    """An equation for which no C++ can be written.

    Attributes:
      reason: in a few words, to follow the name of an engine: "lacks jnp.linalg.solve (lu), ...".
    """

    def __init__(self, what: str) -> None:
        self.reason: str = f"lacks {what}"
        self._what, self._located = what, False
        super().__init__(self._text(""))

    def _text(self, where: str) -> str:
        return f"engines 'native' and 'cuda' do not know {self._what}{where}; engine 'xla' does"

    def met_in(self, eqn: JaxprEqn) -> None:
        """Note where an equation was written in which it was met; the innermost is met first."""
        origin = "" if self._located else origin_of(eqn)
        if not origin:
            return
        self._located = True
        function, _, place = origin.rpartition(", ")
        operation = OPERATION.match(self._what)
        what = f"{self._what} ({function})" if function else self._what
        if function and operation:
            what = f"{function} ({operation[1]})"
        self.reason = f"lacks {what}, {place}"
        self.args = (self._text(f" ({origin})"),)


# How an operation is named in a sentence, and the name of its primitive.
OPERATION: re.Pattern[str] = re.compile(r"^the operation '(\w+)'")


class SharedByLanes(Unsupported):
    """A program whose lanes would each compute what they have in common."""

    def __init__(self) -> None:
        super().__init__("designs that lanes share")
        self.reason = "would compute designs that lanes share for each of them"
        self.args = (f"engine 'cuda' {self.reason}; engine 'xla' computes them once",)


class ArraySpec(NamedTuple):
    """Shape and C++ type of an array of one lane; a key is an axis of two words."""

    shape: tuple[int, ...]
    type: str  # of an entry; with "v" in front it is the type of a vector of lanes

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)


def spec_of(aval: Any) -> ArraySpec:
    """The `ArraySpec` of an abstract value of JAX."""
    if is_key(aval.dtype):
        if not is_threefry(aval.dtype):
            raise Unsupported(f"keys of type {aval.dtype}")
        return ArraySpec((*aval.shape, 2), "u32")
    name = np.dtype(aval.dtype).name
    if name not in SUFFIX:
        raise Unsupported(f"numbers of type {name}")
    return ArraySpec(tuple(aval.shape), SUFFIX[name])


def words_of(aval: Any) -> tuple[int, ...]:
    """The shape that a value has here after its shape in JAX: that of the two words of keys."""
    return (2,) if is_key(aval.dtype) else ()


class Value(NamedTuple):
    """A scalar or a table whose entries are written as C++ expressions where they are needed."""

    spec: ArraySpec
    varies: bool  # whether it differs by lane; otherwise all lanes share it
    read: Callable[[Index], str]  # the expression of an entry
    cheap: bool = True  # whether an entry costs almost nothing, however often it is read
    array: str | None = None  # name of the C++ array that holds exactly these entries, row-major
    # Arrays that may change later and on which entries depend, and whether entry i depends on their
    # entry i alone.
    reads: dict[str, bool] = {}  # noqa: RUF012
    outer: Any = None  # the same value in the surrounding JAX program, if it is computed there
    known: np.ndarray | None = None  # the entries, if they are known when the program is written
    heavy: bool = False  # whether an entry takes so many operations that code must not repeat it
    owned: bool = False  # whether a value's only reader may change the array in place
    range: tuple[int, int] | None = None  # smallest and largest possible integer, if known

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in one lane."""
        return self.spec.shape

    @property
    def number(self) -> int | None:
        """The integer or flag that all entries are, if it is known."""
        known = self.known
        if known is None or known.dtype.kind == "f" or known.size == 0:
            return None
        first = known.flat[0]
        return int(first) if not any(known.strides) or (known == first).all() else None

    @property
    def type(self) -> str:
        """The C++ type of an entry: a vector where the value differs by lane."""
        return ("v" if self.varies else "") + self.spec.type


def known_entry(known: np.ndarray | None, index: Index) -> Any:
    """An entry of a known table; None unless both table and index are known."""
    numbers = tuple(i for i in index if isinstance(i, int))
    return None if known is None or len(numbers) < len(index) else known[numbers]


def add(*terms: int | str) -> int | str:
    """The sum of index terms."""
    known = sum(x for x in terms if isinstance(x, int))
    rest = [str(x) for x in terms if not isinstance(x, int)]
    if not rest:
        return known
    return "(" + " + ".join([*rest, str(known)] if known else rest) + ")"


def times(term: int | str, factor: int) -> int | str:
    """An index term times an integer."""
    if isinstance(term, int):
        return term * factor
    return term if factor == 1 else 0 if factor == 0 else f"({term} * {factor})"


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of row-major order."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def flat(index: Index, shape: Sequence[int]) -> int | str:
    """The position of an entry in row-major order; axes of length one are left out."""
    terms = zip(index, shape, strides(shape), strict=True)
    return add(0, *[times(i, step) for i, n, step in terms if n > 1])


def in_array(
    name: str, spec: ArraySpec, varies: bool, reads: dict[str, bool] | None = None
) -> Value:
    """The value that a C++ array holds."""

    def read(index):
        return f"{name}[{flat(index, spec.shape)}]"

    return Value(spec, varies, read, array=name, reads=reads or {})


def literal(number: Any, type: str) -> str:
    """A C++ constant."""
    if type == "b64":
        return "((b64)-1)" if number else "((b64)0)"
    if type in ("f64", "f32"):
        number = float(number)
        if number != number:
            return f"(({type})NAN)"
        if number in (math.inf, -math.inf):
            return f"(({type}){'-' if number < 0 else ''}INFINITY)"
        return f"(({type}){number.hex()})"
    number = int(number)
    if number == -(2**63):
        return "INT64_MIN"
    return f"(({type}){number}{'ull' if number >= 2**63 else 'll'})"


def constant(number: Any, spec: ArraySpec) -> Value:
    """A value whose entries are all one number that is known at compile time."""
    text = literal(number, spec.type)
    known = np.broadcast_to(np.asarray(number, DTYPES[spec.type]), spec.shape)
    bounds = None if spec.type in ("f64", "f32", "b64") else (int(number), int(number))
    return Value(spec, False, lambda index: text, known=known, range=bounds)


def in_lanes(expression: str, value: Value, varies: bool) -> str:
    """The expression of an entry of `value`, as a vector if `varies` asks for one."""
    return f"all_{value.spec.type}({expression})" if varies and not value.varies else expression
