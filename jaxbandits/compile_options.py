"""Options of XLA for programs that take longer to compile than to run."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer


def quick() -> dict[str, Any]:
    """Options with which XLA compiles for a CPU in half of the time.

    Programs of small loops and small tables run as fast. The newer emitters of fused loops, which
    later versions of XLA no longer let one turn off, take most of the difference.
    """
    emitters = {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11, 1) else {}
    return emitters | {
        "xla_backend_optimization_level": 1,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_parallel_codegen_split_count": 1,
    }


def called_quickly(function: Callable) -> Callable:
    """`jax.jit(function)` of arrays that are not traced, compiled with the options `quick`.

    On a CPU; not while an outer function is traced, whose options count, and not where the user's
    configuration of JAX asks for still fewer optimisations.
    """

    @functools.wraps(function)
    def call(*args):
        plain = jax.default_backend() != "cpu" or isinstance(jnp.zeros(()), Tracer)
        fewest = jax.config.values.get("jax_disable_most_optimizations", False)
        return _jitted(function, plain or fewest)(*args)

    return call


@functools.cache
def _jitted(function, plain):
    return jax.jit(function, compiler_options=None if plain else quick())
