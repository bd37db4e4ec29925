"""Kernels compiled as single programs, for tests on small inputs."""

import functools

import jax
import numpy as np


def compiled(function, *static):
    """The function on NumPy arrays, compiled as one program per shape.

    Args:
      static: names of the arguments that are not arrays.
    """
    program = jax.jit(function, static_argnames=static)

    @functools.wraps(function)
    def call(*args, **options):
        return jax.tree.map(np.asarray, program(*args, **options))

    return call
