"""Types that several folders share."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

# An array of JAX, traced or not, or one of NumPy. With a shape: `Float[Table, "K d"]`.
Table: TypeAlias = jax.Array | np.ndarray
# Features as the functions under `jaxbandits.parameters.constructor` get them, which converts them.
Arms: TypeAlias = Float[jax.Array, "K d"]
Targets: TypeAlias = Float[jax.Array, "M d"]
# One number, traced or not.
Scalar: TypeAlias = jax.Array | np.ndarray | np.number | float | int
# One whole number, such as a number of draws, traced or not.
Whole: TypeAlias = jax.Array | np.ndarray | np.integer | int
# What a user may give where a table is expected; nested lists are allowed.
Rows: TypeAlias = jax.Array | np.ndarray | Sequence[Any]
# The key of a replication or a round.
Key: TypeAlias = jax.Array
# Any nested structure of tuples, dicts and arrays, over which `jax.tree.map` works.
Pytree: TypeAlias = Any
# The types of what is traced among options; anything else is static.
NUMBERS: tuple[type, ...] = (float, np.ndarray, np.generic, jax.Array)
