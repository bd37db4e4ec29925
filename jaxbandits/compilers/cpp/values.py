"""What an equation's variable is in the generated program."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

# An index of an entry: whole numbers, and C++ expressions.
Index: TypeAlias = tuple[int | str, ...]

SUFFIX: dict[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "uint64": "u64",
    "uint32": "u32",
    "bool": "b64",
}


class Unsupported(NotImplementedError, ValueError):
    """An equation for which no C++ can be written."""

    def __init__(self, what: str) -> None:
        super().__init__(f"engine 'native' does not know {what}; engine 'xla' does")


class Kind(NamedTuple):
    """Shape and type; a key is its two words."""

    shape: tuple[int, ...]
    type: str  # the C++ type of an entry; with a "v" in front, of eight lanes

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


def kind_of(aval: Any) -> Kind:
    """The `Kind` of an abstract value of JAX."""
    if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
        if str(aval.dtype) != "key<fry>":
            raise Unsupported(f"keys of type {aval.dtype}")
        return Kind((*aval.shape, 2), "u32")
    name = np.dtype(aval.dtype).name
    if name not in SUFFIX:
        raise Unsupported(f"numbers of type {name}")
    return Kind(tuple(aval.shape), SUFFIX[name])


def words_of(aval: Any) -> tuple[int, ...]:
    """The axes that a key has here beyond its own: that of its two words."""
    return (2,) if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key) else ()


class Value(NamedTuple):
    """Entries that can be written as C++ expressions when they are needed."""

    kind: Kind
    varies: bool  # by lane; else one number is shared by all
    read: Callable[[Index], str]  # index -> expression; see `Index`
    cheap: bool = True  # whether reading an entry again costs next to nothing
    array: str | None = None  # the array that holds just this, row-major
    # Arrays that may change later, and whether entry i depends on their entry i alone.
    reads: dict[str, bool] = {}  # noqa: RUF012
    host: Any = None  # where it is also a value of the program around
    number: int | None = None  # where it is known now
    heavy: bool = False  # whether an entry takes so many operations that it is written in a loop
    owned: bool = False  # whether whoever alone reads the array may change it
    range: tuple[int, int] | None = (
        None  # least and largest of a whole number, where they are known
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one lane."""
        return self.kind.shape

    @property
    def type(self) -> str:
        """C++ type of an entry."""
        return ("v" if self.varies else "") + self.kind.type


def add(*terms: int | str) -> int | str:
    """The sum of index terms."""
    known = sum(x for x in terms if isinstance(x, int))
    rest = [str(x) for x in terms if not isinstance(x, int)]
    if not rest:
        return known
    return "(" + " + ".join([*rest, str(known)] if known else rest) + ")"


def times(term: int | str, factor: int) -> int | str:
    """An index term times a whole number."""
    if isinstance(term, int):
        return term * factor
    return term if factor == 1 else 0 if factor == 0 else f"({term} * {factor})"


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of row-major order."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def flat(index: Index, shape: Sequence[int]) -> int | str:
    """The position of an entry in row-major order; axes of length one do not count."""
    terms = zip(index, shape, strides(shape), strict=True)
    return add(0, *[times(i, step) for i, n, step in terms if n > 1])


def in_array(name: str, kind: Kind, varies: bool, reads: dict[str, bool] | None = None) -> Value:
    """The value an array holds."""

    def read(index):
        return f"{name}[{flat(index, kind.shape)}]"

    return Value(kind, varies, read, array=name, reads=reads or {})


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


def constant(number: Any, kind: Kind) -> Value:
    """A value known now, the same in all entries."""
    text = literal(number, kind.type)
    if kind.size != 1 or kind.type in ("f64", "f32"):
        return Value(kind, False, lambda index: text)
    number = int(number)
    return Value(kind, False, lambda index: text, number=number, range=(number, number))


def in_lanes(expression: str, value: Value, varies: bool) -> str:
    """An entry's expression for all lanes where `varies` asks for it."""
    return f"all_{value.kind.type}({expression})" if varies and not value.varies else expression
