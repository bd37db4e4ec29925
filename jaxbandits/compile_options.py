"""Options of XLA for programs that take longer to compile than to run."""

from typing import Any

import jax


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
