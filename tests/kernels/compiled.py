"""Kernels as single programs, for the tests that look at small ones."""

import functools

import jax
import numpy as np


def compiled(function, *static):
    """The function from and to NumPy: one program for each shape, not one for each operation.

    Args:
      static: names of arguments that are no arrays.
    """
    program = jax.jit(function, static_argnames=static)

    @functools.wraps(function)
    def call(*args, **options):
        return jax.tree.map(np.asarray, program(*args, **options))

    return call
