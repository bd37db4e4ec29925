"""Which earlier traces JAX may use for a function that is traced again.

`state` numbers what was replaced in this package: what was traced with other parts is not used.
"""

import contextlib
from typing import Any

import jax

from .replaced import state as state

# JAX looks up traces of inner functions (under `jit`, in loops and branches) by this too.
_reading: Any = jax.make_user_context(None)


def reading(number: int) -> contextlib.AbstractContextManager[Any]:
    """A block in which JAX uses those of blocks of this number alone."""
    return _reading(number)


def shared() -> contextlib.AbstractContextManager[Any]:
    """A block that traces functions of this package alone, where any may be used.

    Of those that were traced while parts of the package were replaced, those with the same parts.
    """
    return _reading(-state() or None)
