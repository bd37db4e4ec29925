"""Float64 where it counts, without touching the caller's JAX configuration.

Stopping times reach 1e7 and gaps 1e-4, so simulations and public kernels compute in float64.
`import jaxbandits` sets no flag: instances and public kernels enter `jax.enable_x64` for the
length of the call and return NumPy arrays, because a float64 JAX array silently falls to float32
as soon as it is used outside that context.

A call inside a caller's `jit`, `vmap`, `grad` or `scan` cannot do that: a program whose parts
differ in the width of numbers does not compile. There a public kernel computes in the precision of
the arrays that it gets.

The default follows from `python -m benchmarks.numerics`, which compares least squares kept by
rank-one updates with a solve in 50 digits, on Soare's arms in 5 dimensions. After 10^7 draws in
float64, variances are right to 2e-10 and squared distances of arms to 2e-7 with a ridge of 1 (to
1e-6 and 3e-3 with a ridge of 1e-4, whose inverse begins at 10^4): nothing is refactorised. In
float32 variances are off by a fifth and more after 10^7 draws, and distances of near arms are lost
after 10^4 in arm space (`kernels.estimate.least_squares`): LinGapE on Soare's arms at an angle of
0.05, 74,000 pulls in float64, has not stopped after 2 10^6. A program in float32 should stay in
feature space and recompute the inverse from the counts every 1,000 draws: variances are then right
to 4e-5, means to 3e-4 standard deviations after 10^6 draws.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import DTypeLike

from .messages import reason
from .real_numbers import fault
from .retracing import shared
from .signatures import name_of
from .system.jax_options import pinned
from .types import Rows, Scalar, Table

NARROWEST: DTypeLike = jnp.float32  # half precision is computed, and returned, in this
CONFIG: Any = jax.config  # JAX adds its options as attributes when it is imported
THREEFRY: str = "threefry2x32"  # JAX's default generator of random numbers
P = ParamSpec("P")
R = TypeVar("R")


def _widen(leaf):
    """Floats of less than 64 bits become float64; everything else passes."""
    return _as_float(leaf, jnp.float64)


def _as_float(leaf, dtype):
    """Floats of another precision become `dtype`; everything else passes."""
    is_array = isinstance(leaf, jax.Array | np.ndarray | np.generic)
    if is_array and jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype != dtype:
        return leaf.astype(dtype)
    return leaf


def _concrete(leaf):
    if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer):
        leaf = jax.block_until_ready(leaf)  # a signal ends this wait, and not that of NumPy
        return leaf if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else np.asarray(leaf)
    return leaf


def _typed(generator, leaf):
    """A raw key of the caller's generator as one that says what it is of; else the leaf."""
    words = isinstance(leaf, jax.Array) and leaf.dtype == jnp.uint32 and leaf.ndim == 1
    return jax.random.wrap_key_data(leaf, impl=generator) if words else leaf


def double(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate `function` to compute in float64 and return NumPy arrays.

    Called inside a caller's trace it returns tracers, in float64 too, or in JAX's default
    precision where float64 is disabled in that trace.
    """

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        traced = is_traced(args, kwargs)
        narrow = traced and default_float() != jnp.float64
        generator = CONFIG.jax_default_prng_impl
        with pinned(width=not traced):
            if generator != THREEFRY:
                typed = functools.partial(_typed, generator)
                args, kwargs = jax.tree.map(typed, (args, kwargs))
            if narrow:
                return function(*args, **kwargs)
            args, kwargs = jax.tree.map(_widen, (args, kwargs))
            return jax.tree.map(_concrete, function(*args, **kwargs))

    return wrapped


def floats(x: Rows | Scalar) -> Table:
    """An array in JAX's default precision: of NumPy, for which nothing is compiled, or traced."""
    if is_traced(x):
        return jnp.asarray(x, float)
    return np.asarray(x, default_float())


def numpy_for(*values: Any) -> ModuleType:
    """NumPy, for which nothing is compiled, or that of JAX where one of the values is traced.

    Both round sums, products and quotients of two numbers and square roots alike, to the last bit.
    They do not where a table is divided by a smaller one (XLA multiplies by reciprocals), in sums
    along an axis, products of tables and other functions: those are left to JAX.
    """
    return jnp if is_traced(*values) else np


def default_float() -> np.dtype[Any]:
    """JAX's type of a float of Python now; `jnp.result_type(float)` takes ten times as long."""
    return jax.dtypes.canonicalize_dtype(float)


def owned(x: Rows | Scalar, dtype: DTypeLike | None = None) -> Table:
    """`floats`, read-only and its own: what the caller does to an array later changes nothing."""
    if isinstance(x, jax.Array):  # which nobody can change
        return floats(x)
    table = np.array(x, default_float() if dtype is None else dtype)
    table.flags.writeable = False
    return table


def is_traced(*values: Any) -> bool:
    """Whether an array anywhere in these is traced."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def kernel(*tables: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a public kernel: float64 and NumPy, or the caller's precision where traced.

    Where no argument is traced the kernel computes in float64 at once, whatever JAX's default
    is and also while an outer function is traced, and returns NumPy arrays. Where one is traced, it
    joins that trace, in the widest precision of the traced arrays among its arguments (JAX's
    default where these are whole numbers or none). Its other arguments get that precision too.

    Args:
      *tables: names of the arguments that are arrays of real numbers. The function gets them as
        arrays of that precision; its other arguments arrive as they are, apart from floats of
        another precision.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        names = tuple(parameters)
        wanted = {name for name in tables if parameters[name].default is inspect.Parameter.empty}

        def call(args, kwargs, dtype):
            def prepared(name, value):
                if value is None and name in wanted:
                    raise ValueError(f"{name} must be a table of numbers, got None")
                value = as_table(name, value, dtype) if name in tables else value
                return jax.tree.map(lambda leaf: _as_float(leaf, dtype), value)

            args = [prepared(name, value) for name, value in zip(names, args, strict=False)]
            kwargs = {name: prepared(name, value) for name, value in kwargs.items()}
            return function(*args, **kwargs)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            if len(args) > len(names):
                return function(*args, **kwargs)  # Python's own error
            if is_traced(args, kwargs):
                with pinned(width=False):
                    return call(args, kwargs, _dtype_of(args, kwargs))
            with pinned(), _outside_of_traces(), shared():
                return jax.tree.map(_concrete, call(args, kwargs, np.dtype(np.float64)))

        return wrapped

    return decorate


def _outside_of_traces():
    """A context that computes known numbers at once, also while an outer function is traced."""
    under_trace = isinstance(jnp.zeros(()), Tracer)
    return jax.ensure_compile_time_eval() if under_trace else contextlib.nullcontext()


def on_host(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that computes with NumPy: a traced argument is refused by name."""
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if is_traced(value):
                raise TypeError(
                    f"{name} must be known numbers, got a traced array: {name_of(function)} is "
                    "computed on the host, outside of jit, vmap and grad"
                )
        with pinned(width=False):
            return function(*args, **kwargs)

    return wrapped


def _dtype_of(*values):
    """The widest precision of the traced arrays among these, numbers aside; or JAX's default."""
    default = default_float()
    found = [
        leaf.dtype
        for leaf in jax.tree.leaves(values)
        if isinstance(leaf, Tracer) and leaf.ndim and jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    return jnp.result_type(*found, NARROWEST) if found else default


def as_table(name: str, value: Any, dtype: DTypeLike) -> Table | None:
    """An array of this precision; NumPy where the numbers are known.

    Raises:
      ValueError: names the argument where it holds anything but real numbers.
    """
    if value is None:
        return None
    check_real(name, value)
    if is_traced(value):
        return jnp.asarray(value, dtype)
    if isinstance(value, jax.Array):
        return value.astype(dtype, copy=False)
    return np.asarray(value, dtype)


def check_real(name: str, value: Any) -> None:
    """Raise unless these are real numbers, all of them there and in the shape of a table."""
    if type(value) is float:
        return
    wrong = fault(value)
    if wrong is not None:
        raise ValueError(f"{name} {wrong}")
    if getattr(getattr(value, "dtype", None), "kind", "O") != "O" or is_traced(value):
        return
    try:
        np.asarray(value, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a table of numbers: {reason(error)}") from None
