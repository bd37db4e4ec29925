"""Functions of users as JAX traces them: read anew in each call, and known by their operations.

What a function reads besides its arguments (an attribute, a global number, another function, a
file) is read while JAX traces it, and is then part of its operations: a change of any of it shows
there, and nowhere else for certain. So a program of a function that is not this package's own is
known by the operations and the constants of a new trace, and a program is compiled from the very
trace by which it is known.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import threading
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from .. import retracing
from . import untraceable
from .callbacks import errors_named, in_words

T = TypeVar("T")

PLAIN: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes)
NUMBERS: tuple[type, ...] = (int, float, complex)  # JAX has some of its own, with a dtype
READINGS_KEPT: int = 500  # by JAX at most
# Calls of functions with their own derivative. The rules of it are new objects in each trace; a
# program that is not differentiated is made of the function alone.
DERIVED: frozenset[str] = frozenset({"custom_jvp_call", "custom_vjp_call"})

_numbers: Iterator[int] = itertools.count(1)


def _next_number():
    """The number of a new reading; at times JAX forgets what it has of earlier ones.

    It keeps traces of its own functions too for each of them, 0.3 to 0.6 MB of an algorithm. With
    them it forgets what else it has compiled, but for the programs of this package.
    """
    number = next(_numbers)
    if number % READINGS_KEPT == 0:
        jax.clear_caches()
    return number


class TraceCache:
    """Traces of functions that are not this package's own, during one call.

    Each call of `simulate` has one, each sweep and each live run: within it a function is read
    once, and another one reads it anew. It equals itself alone.
    """

    def __init__(self) -> None:
        self._number = 0  # until something is read
        self._made: dict[Hashable, Any] = {}
        self._one_at_a_time = threading.RLock()

    @contextlib.contextmanager
    def reading(self) -> Generator[None]:
        """The block in which functions of users are traced, all of them everywhere.

        JAX then takes nothing from traces of other calls: a helper under `jax.jit`, or the body of
        a loop, may read something else than before.

        Raises:
          ValueError: a function does what cannot be traced; names it, its line and the way out.
        """
        with self._one_at_a_time:
            self._number = self._number or _next_number()
        with untraceable.named(), retracing.reading(self._number):
            yield

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes by tracing, made once for a key."""
        with self._one_at_a_time:
            if key not in self._made:
                with self.reading():
                    self._made[key] = make()
            return self._made[key]

    def trace(self, name: Hashable, function: Callable[..., Any], *args: Any) -> "Trace":
        """The trace of a function of this name, made once for arguments of the same shapes."""
        return self.trace_of(name, function, *shapes_of(args))

    def trace_of(
        self, name: Hashable, function: Callable[..., Any], treedef: Any, avals: tuple[Any, ...]
    ) -> "Trace":
        """The trace for arguments of these shapes, as `shapes_of` returns them."""
        make = lambda: Trace(function, *arguments_of(treedef, avals))  # noqa: E731
        return self.remembered((name, treedef, avals), make)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process everything is read anew."""
        return TraceCache, ()

    def __repr__(self) -> str:
        return "TraceCache()"


def traces_of(structure: Any) -> TraceCache | None:
    """The `TraceCache` of a structure; None where all its functions are this package's own."""
    return getattr(structure, "traces", None)


def reading(structure: Any) -> contextlib.AbstractContextManager[Any]:
    """The block in which the functions of a structure are traced."""
    traces = traces_of(structure)
    return contextlib.nullcontext() if traces is None else traces.reading()


class IdentityKey:
    """An object that equals itself alone; it is kept, so that its id stays its own."""

    __slots__: tuple[str, ...] = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def shapes_of(args: Any) -> tuple[Any, tuple[Any, ...]]:
    """The pytree of some arguments, and the `(shape, dtype)` of each leaf; hashable."""
    leaves, treedef = jax.tree.flatten(args)
    return treedef, tuple(map(_aval_of, leaves))


def _aval_of(leaf):
    """Shape and type of an array; of a number of Python the type that it has in JAX."""
    try:
        return leaf.shape, leaf.dtype
    except AttributeError:
        return np.shape(leaf), jax.dtypes.result_type(leaf)


def arguments_of(treedef: Any, avals: tuple[Any, ...]) -> Any:
    """Abstract arguments of these shapes; none is weakly typed."""
    return jax.tree.unflatten(treedef, [jax.ShapeDtypeStruct(*aval) for aval in avals])


class Trace:
    """A function of arrays as the operations that JAX has traced; called, it does these.

    Traces are equal where their operations, constants and the pytrees of their results are, so
    they stand for their functions in keys of programs.

    Args:
      function: of pytrees of arrays, traced here.
      args: its arguments, arrays or their shapes.
    Attributes:
      shapes: of its results.
      jaxpr: its operations.
      digest: of all of it that is the same in every process.
    """

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        anew = lambda *args: function(*args)  # noqa: E731  JAX knows functions by their identity
        traced, self.shapes = jax.make_jaxpr(anew, return_shape=True)(*args)
        self.jaxpr: ClosedJaxpr = in_words(traced)
        writer = _Writer()
        self.digest: str = writer.closed(self.jaxpr)
        tree = jax.tree.structure(self.shapes)
        self._key = self.digest, tree, tuple(writer.objects)

    def __call__(self, *args: Any) -> Any:
        """The results for arguments of the same shapes."""
        results = jaxpr_as_fun(self.jaxpr)(*jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(self.shapes), results)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Trace) and other._key == self._key)

    def __hash__(self) -> int:
        return hash(self.digest)


def computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a user for known numbers, as it reads now; its trace knows its program."""
    traces = TraceCache()

    def compute(*args: Any) -> Any:
        with errors_named():
            return jax.block_until_ready(_compiled(traces.trace("", function, *args))(*args))

    return compute


@functools.lru_cache(maxsize=64)
def _compiled(trace):
    return jax.jit(trace)


class _Writer:
    """Writes a jaxpr as a text in which equal operations are equal, without addresses.

    Attributes:
      objects: what has no text, such as a function that a program calls while it runs; the text
        has their numbers.
    """

    def __init__(self) -> None:
        self.objects: dict[Hashable, int] = {}
        # By id, of objects that are kept with it, and by what was written of them.
        self._written: dict[tuple[int, Callable[[Any], str]], tuple[str, Any]] = {}

    def closed(self, closed: ClosedJaxpr) -> str:
        """The digest of a jaxpr with its constants."""
        return _digest(self._once(closed.jaxpr, self._jaxpr) + self._all(closed.consts))

    def _once(self, value: Any, write: Callable[[Any], str]) -> str:
        """The text of an object that may be met many times, or in itself."""
        key = id(value), write  # from jax 0.12 on a closed jaxpr is its own jaxpr
        if key not in self._written:
            self._written[key] = f"met {len(self._written)}", value
            self._written[key] = write(value), value
        return self._written[key][0]

    def _jaxpr(self, jaxpr: Jaxpr) -> str:
        numbers: dict[Any, int] = {}

        def atom(x: Any) -> str:
            kind = self._once(x.aval, str)
            if isinstance(x, Literal):
                return f"{self._text(x.val)}:{kind}"
            return f"{numbers.setdefault(x, len(numbers))}:{kind}"

        def atoms(variables: Any) -> str:
            return " ".join(map(atom, variables))

        lines = [atoms(jaxpr.constvars), atoms(jaxpr.invars)]
        for eqn in jaxpr.eqns:
            parts = self._operation(eqn), atoms(eqn.invars), atoms(eqn.outvars)
            lines.append("|".join(parts))
        return _digest("\n".join([*lines, atoms(jaxpr.outvars)]))

    def _operation(self, eqn: Any) -> str:
        """The primitive of an equation with its parameters, and what it was traced under."""
        params, name = eqn.params, eqn.primitive.name
        if name in DERIVED:
            params = {k: v for k, v in params.items() if isinstance(v, ClosedJaxpr | Jaxpr)}
        setting = self._once(getattr(eqn, "ctx", None), repr)
        primitive = self._object(IdentityKey(eqn.primitive))
        return f"{name} {primitive} {self._text(dict(params))} {setting}"

    def _text(self, value: Any) -> str:
        kind = type(value)
        if kind in PLAIN or (isinstance(value, NUMBERS) and _is_of_jax(value)):
            return f"{kind.__name__} {value!r}"
        if isinstance(value, ClosedJaxpr):
            return self._once(value, self.closed)
        if isinstance(value, Jaxpr):
            return self._once(value, self._jaxpr)
        if isinstance(value, np.ndarray | np.generic | jax.Array) or _is_table_of_jax(value):
            return self._once(value, self._array)
        if isinstance(value, tuple | list):
            return f"{self._object(kind)}({self._all(value)})"
        if isinstance(value, Mapping):
            return f"{self._object(kind)}({self._all(x for item in value.items() for x in item)})"
        if isinstance(value, set | frozenset):
            return f"{self._object(kind)}({sorted(map(self._text, value))})"
        return self._once(value, self._other)

    def _all(self, values: Any) -> str:
        return ", ".join(map(self._text, values))

    def _other(self, value: Any) -> str:
        """Of what runs in Python while the program runs its parts, else which object it is."""
        if isinstance(value, functools.partial):
            return f"partial({self._all([value.func, value.args, value.keywords])})"
        if isinstance(value, MethodType):
            return f"method({self._all([value.__func__, value.__self__])})"
        if isinstance(value, FunctionType):
            cells = [_contents(cell) for cell in value.__closure__ or ()]
            given = value.__defaults__, value.__kwdefaults__, cells
            scope = self._object(IdentityKey(value.__globals__))
            return f"function({self._object(value.__code__)}, {scope}, {self._all(given)})"
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_of_jax(value):
            fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
            return f"{self._object(type(value))}({self._all(fields)})"
        return self._object(value)

    def _array(self, value: Any) -> str:
        if isinstance(value, Tracer) or value.dtype == object:
            return self._object(IdentityKey(value))
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return f"key {value.dtype} {self._array(jax.random.key_data(value))}"
        data = digest_of(np.asarray(value))
        return f"array {value.dtype} {value.shape} {getattr(value, 'weak_type', False)} {data}"

    def _object(self, value: Any) -> str:
        """The number of an object, of JAX's own by their value, of any other that it is it."""
        known = isinstance(value, type | CodeType | IdentityKey) or _is_of_jax(value)
        try:
            key: Hashable = value if known and hash(value) is not None else IdentityKey(value)
        except TypeError:
            key = IdentityKey(value)
        return f"object {self.objects.setdefault(key, len(self.objects))}"


def _is_of_jax(value):
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def _is_table_of_jax(value):
    """Whether this is an array that JAX knows the type of; in 0.8 all constants are such ones."""
    return _is_of_jax(value) and hasattr(type(value), "__array__") and hasattr(value, "dtype")


def _contents(cell):
    """What a closure holds; the cell itself where nothing was assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def digest_of_operations(closed: ClosedJaxpr) -> str:
    """The digest of a jaxpr: of all of it that is the same in every process."""
    return _Writer().closed(closed)


def digest_of(table: np.ndarray) -> str:
    """The digest of the entries of an array, bit by bit."""
    return hashlib.sha256(np.ascontiguousarray(table).reshape(-1).view(np.uint8).data).hexdigest()


def _digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
