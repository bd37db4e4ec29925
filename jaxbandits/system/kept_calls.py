"""Functions of this package that are called on known numbers: compiled once, and kept on disk."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..compile_options import quick
from ..precision import is_traced
from ..retracing import shared
from . import keeping
from .traces import arguments_of, shapes_of

CONFIG: Any = jax.config  # JAX adds its options as attributes when it is imported


def kept(function: Callable, *, quickly: bool = False) -> Callable:
    """`jax.jit(function)`, whose programs a later process finds, as those of simulations.

    It is plain `jax.jit` where an argument is traced or an outer function is, whose options count;
    on devices other than a CPU, and where JAX is told to take another one than the first.

    Args:
      function: of pytrees of arrays, by position; its programs are found without tracing where it
        is a function of a module of this package, or `functools.partial` of one.
      quickly: compile with the options `compile_options.quick`, unless the user's configuration of
        JAX asks for still fewer optimisations. They may change the last bits of numbers.
    """

    @functools.wraps(function)
    def call(*args):
        if is_traced(args) or isinstance(jnp.zeros(()), Tracer):
            return _jitted(function)(*args)
        settings = tuple(getattr(CONFIG, name) for name in SETTINGS)
        fewest = CONFIG.values.get("jax_disable_most_optimizations", False)
        if jax.default_backend() != "cpu" or CONFIG.jax_default_device is not None:
            return _jitted(function)(*args)
        program = _program(function, quickly and not fewest, *shapes_of(args), settings, fewest)
        return program(*jax.tree.map(_on_host, args))

    return call


# Options of JAX that a caller may change from call to call, and that change programs.
SETTINGS: tuple[str, ...] = ("jax_enable_x64", "jax_default_matmul_precision")


@functools.cache
def _jitted(function):
    return jax.jit(function)


@keeping.remembered
def _program(function, quickly, treedef, avals, *_):
    """The program for arguments of these shapes, under the settings of the call."""
    options, arguments = (quick() if quickly else {}), arguments_of(treedef, avals)

    def lower():
        jitted = jax.jit(function, compiler_options=options, keep_unused=True)
        with shared():
            return jitted.lower(*arguments)

    name = keeping.name_of("call", function, options, treedef, avals)
    return keeping.program(name, lower, arguments, options)


def _on_host(leaf):
    """An array where the host has it: a program runs on one device, JAX's may be on several."""
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(leaf) if isinstance(leaf, jax.Array) and not is_key else leaf
