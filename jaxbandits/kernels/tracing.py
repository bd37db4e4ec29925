"""Kernels that are traced once for a process, however many programs call them."""

import functools
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import numpy as np

from ..retracing import shared
from .primitives import is_traced

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE: str = __name__.partition(".")[0]
REMEMBERED: int = 1024  # kernels with constants; those not used for longest are forgotten
LARGE: int = 2**16  # bytes of a NumPy table beyond which it is not compared with earlier ones
CONSTANTS: tuple[type, ...] = (bool, int, float, complex, str, np.generic, np.dtype, type)


class _Constant(NamedTuple):
    """An argument that is known while tracing, and decides over what is traced."""

    kind: type  # 1, 1.0 and True are equal, but lead to other operations
    text: str  # so are 0.0 and -0.0
    value: Hashable


class _Table(NamedTuple):
    """The same of a NumPy array."""

    shape: tuple[int, ...]
    dtype: np.dtype
    data: bytes


class _Incomparable(Exception):
    """An argument for which nobody can say whether an earlier one was the same."""


def traced_once(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a kernel: calls with arguments of the same shapes and types share one trace.

    To trace a kernel takes twenty times as long as to copy the operations that were found, and a
    program calls most kernels in several places. For the caller nothing changes: the operations
    are written into its own trace as before. The kernel may depend on its arguments alone, and its
    results must be arrays. Numbers, texts, NumPy arrays and functions without a closure are
    constants of its trace, as in a plain call. The kernel is called as it is where no argument is
    traced, or where one of them is a closure.
    """

    @functools.wraps(function)
    def call(*args, **keywords):
        leaves, tree = jax.tree.flatten((args, keywords))
        if not is_traced(leaves):
            return function(*args, **keywords)
        try:
            known = tuple(None if isinstance(x, jax.Array) else _known(x) for x in leaves)
        except _Incomparable:
            return function(*args, **keywords)
        arrays = [x for x, constant in zip(leaves, known, strict=True) if constant is None]
        with nullcontext() if any(map(_may_change, known)) else shared():
            return _inlined(function, tree, known)(*arrays)

    return call


@contextmanager
def at_once() -> Generator[None]:
    """A block that computes known numbers at once, also while an outer function is traced."""
    with jax.ensure_compile_time_eval(), shared():
        yield


def _known(leaf: Any) -> Hashable:
    """A constant as part of a key."""
    if isinstance(leaf, CONSTANTS):
        return _Constant(type(leaf), repr(leaf), leaf)
    if isinstance(leaf, FunctionType) and leaf.__closure__ is None:
        return _Constant(FunctionType, "", leaf)
    if isinstance(leaf, np.ndarray) and not leaf.dtype.hasobject and leaf.nbytes <= LARGE:
        return _Table(leaf.shape, leaf.dtype, leaf.tobytes())
    raise _Incomparable


def _may_change(known: Hashable) -> bool:
    """Whether a constant is a function or class that is not of this package."""
    if not isinstance(known, _Constant) or not isinstance(known.value, FunctionType | type):
        return False
    module = known.value.__module__ or ""
    return module.partition(".")[0] not in (PACKAGE, "jax", "numpy", "builtins")


def _value(known: Any) -> Any:
    """The constant again."""
    if isinstance(known, _Table):
        return np.ndarray(known.shape, known.dtype, known.data)
    return known.value


@functools.lru_cache(maxsize=REMEMBERED)
def _inlined(function, tree, known):
    """A function of the arrays alone, whose traces JAX remembers by their shapes and types."""

    def whole(*arrays):
        rest = iter(arrays)
        leaves = [next(rest) if constant is None else _value(constant) for constant in known]
        args, keywords = jax.tree.unflatten(tree, leaves)
        return function(*args, **keywords)

    return jax.jit(whole, inline=True)
