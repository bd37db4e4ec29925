"""Tables of integers, flags and constants whose entries are known when a program is written.

JAX describes fixed positions, such as those of a diagonal, by operations on tables of indices. They
are computed here, so that the C++ compiler need not read and remove the text of each entry.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import JaxprEqn

from ..jaxprs import Params, dtype_of, name_of, shape_of
from ..keys import is_key

MOST: int = 144  # entries of a table that is computed here, unless all are equal
Tables: TypeAlias = Sequence[np.ndarray]

# Operations entry by entry that NumPy computes as C++ does, to the last bit.
ENTRYWISE: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "convert_element_type": np.asarray,  # the result gets the type in any case
    "copy": np.asarray,
}
# The same for integers and flags alone: of NaN and of signed zeros compilers take others.
OF_INTEGERS: dict[str, Callable[..., np.ndarray]] = {
    "max": np.maximum,
    "min": np.minimum,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}
REDUCTIONS: dict[str, np.ufunc] = {
    "reduce_sum": np.add,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
    "reduce_and": np.bitwise_and,
    "reduce_or": np.bitwise_or,
}
WHOLE: set[str] = {*REDUCTIONS, "concatenate"}  # need all entries, although they are equal


def _broadcast(params, x):
    """A table repeated along new axes."""
    shape, axes = params["shape"], params["broadcast_dimensions"]
    own = [1] * len(shape)
    for axis, n in zip(axes, x.shape, strict=True):
        own[axis] = n
    return np.broadcast_to(x.reshape(own), shape)


def _slice(params, x):
    steps = params["strides"] or (1,) * x.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


# Operations that put the entries of one table elsewhere.
MOVED: dict[str, Callable[..., np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "transpose": lambda params, x: x.transpose(params["permutation"]),
    "rev": lambda params, x: np.flip(x, params["dimensions"]),
    "reshape": lambda params, x: x,  # the result gets the shape in any case
    "squeeze": lambda params, x: x,
}


def entries_of(x: Any) -> np.ndarray | None:
    """A value of the surrounding program as a table, if it is a constant of few integers or flags.

    Other constants remain arguments, so that programs with other numbers have the same text.
    """
    if isinstance(x, Tracer) or not isinstance(x, np.ndarray | np.generic | jax.Array):
        return None
    if is_key(x.dtype) or np.dtype(x.dtype).kind not in "biu" or x.size > MOST:
        return None
    return np.asarray(x)


def folded(eqn: JaxprEqn, tables: Tables) -> np.ndarray | None:
    """The result of an equation whose operands are known; None where it is not computed here."""
    name = name_of(eqn)
    if name is None or len(eqn.outvars) != 1 or is_key(dtype_of(eqn.outvars[0])):
        return None
    result = eqn.outvars[0]
    shape, dtype = shape_of(result), np.dtype(dtype_of(result))
    size = math.prod(shape)
    if name == "iota" and size <= MOST:
        axis = eqn.params["dimension"]
        return np.indices(shape, sparse=True)[axis].astype(dtype) + np.zeros(shape, dtype)
    if not tables or not size or not all(x.size for x in tables):
        return None
    if name in WHOLE and any(x.size > MOST for x in tables):
        return None
    function = _function(name, eqn.params, tables, dtype)
    if function is None:
        return None
    with np.errstate(all="ignore"):  # integers wrap
        if name not in WHOLE and all(map(_uniform, tables)):
            entries = [np.asarray(x.flat[0]) for x in tables]
            found = np.asarray(entries[0] if name in MOVED else function(*entries))
            return np.broadcast_to(found.astype(dtype), shape)
        if size > MOST:
            return None
        return np.asarray(function(*tables)).astype(dtype).reshape(shape)


def _function(name, params: Params, tables, dtype):
    """What computes an operation, None where NumPy may not agree with C++."""
    floats = [x.dtype.kind == "f" for x in tables]
    if name == "select_n":
        flags = tables[0].dtype.kind == "b" and len(tables) == 3
        return (lambda which, no, yes: np.where(which, yes, no)) if flags else None
    if name == "convert_element_type" and any(floats) and dtype.kind != "f":
        return None  # numbers beyond the range of integers differ
    if name in ENTRYWISE:
        return ENTRYWISE[name]
    if name in MOVED:
        return lambda x: MOVED[name](params, x)
    if name == "concatenate":
        return lambda *xs: np.concatenate(xs, params["dimension"])
    if any(floats):
        return None
    if name in REDUCTIONS:
        return lambda x: _reduced(REDUCTIONS[name], params, x, dtype)
    return OF_INTEGERS.get(name)


def _reduced(join, params, x, dtype):
    return join.reduce(x.astype(dtype), axis=tuple(params["axes"]))


def _uniform(x):
    """Whether all entries are the same bits, which the strides tell, or a look at few entries."""
    return not any(x.strides) or (x.size <= MOST and len({one.tobytes() for one in x.flat}) == 1)
