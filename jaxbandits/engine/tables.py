"""Records as tables: one for all integers and truth values, one for all floats, and so on.

A compiled program then writes two tables in place of some fifteen, and compiles sooner.
"""

import functools
import itertools
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..types import Pytree

T = TypeVar("T")

Tables: TypeAlias = Mapping[str, Any]  # name of a table -> its numbers
# What shares a table, by NumPy's kind of a dtype; any other dtype has a table of its own.
KINDS: dict[str, str] = {"b": "integers", "i": "integers", "u": "unsigned", "f": "floats"}


def _in_order(leaves):
    """The indices of the leaves of each table, those of a dtype together."""
    return _by_table(tuple(np.dtype(x.dtype) for x in leaves))


@functools.lru_cache(maxsize=512)
def _by_table(dtypes):
    found: dict[str, list[int]] = {}
    for index in sorted(range(len(dtypes)), key=lambda index: str(dtypes[index])):
        dtype = dtypes[index]
        found.setdefault(KINDS.get(dtype.kind, dtype.name), []).append(index)
    return found


def _table_dtype(leaves):
    return np.result_type(*(x.dtype for x in leaves))


def columns_of(records: Pytree) -> dict[str, Array]:
    """Records with the lane in the last axis of each leaf, as tables `[number, L]`."""
    leaves = jax.tree.leaves(records)

    def joined(indices):
        chosen = [leaves[i].reshape(-1, leaves[i].shape[-1]) for i in indices]
        # Joined before they are converted, which is one operation then for all truth values.
        parts = [jnp.concatenate(list(x)) for _, x in itertools.groupby(chosen, lambda x: x.dtype)]
        return jnp.concatenate([part.astype(_table_dtype(chosen)) for part in parts])

    return {name: joined(indices) for name, indices in _in_order(leaves).items()}


def empty_tables(record: Pytree, shape: tuple[int, ...], numpy: Any = np) -> dict[str, Any]:
    """Tables of zeros with these axes first, for records like this one or its shapes.

    Args:
      numpy: what makes them, such as `jax.numpy`.
    """
    leaves = jax.tree.leaves(record)

    def zeros(chosen):
        return numpy.zeros((*shape, sum(x.size for x in chosen)), _table_dtype(chosen))

    return {name: zeros([leaves[i] for i in x]) for name, x in _in_order(leaves).items()}


def records_of(tables: Tables, record: T) -> T:
    """Records with an axis `[R]` first, from tables `[R, number]`; `record` has their shapes."""
    leaves, structure = jax.tree.flatten(record)
    found: list[Any] = [None] * len(leaves)
    for name, indices in _in_order(leaves).items():
        ends = np.cumsum([leaves[i].size for i in indices])
        for i, part in zip(indices, np.split(tables[name], ends[:-1], axis=1), strict=True):
            like = leaves[i]
            found[i] = np.ascontiguousarray(part, like.dtype).reshape(len(part), *like.shape)
    return jax.tree.unflatten(structure, found)
