"""`cuda`, the fused engine for GPUs of NVIDIA: one lane to a thread, many rounds to a launch.

XLA's program for a GPU computes a round in some twenty kernels, and every one of them reads and
writes the states of all lanes. Here the C++ program that `cpp` writes for a lane becomes one
kernel: each thread loads its lane, plays some hundred rounds, and stores it. NVIDIA's run-time
compiler (NVRTC, which comes with `jax[cuda13]`) turns the text into PTX, the assembly language of
these GPUs, and XLA launches that inside its program.

The text is that of `cpp.ONE_LANE`, which a CPU can run: it is how this package is tested without
a GPU. Products and sums are those of the text, one by one. XLA may add in another order, and on a
CPU it joins products with sums: a choice that depends on the last bit can differ.

Lanes that have a design in common, as those of RAGE, are left to XLA, which computes it once.
"""

from .launching import GPU, LANES_PER_BLOCK
from .nvrtc import NoCompiler, architecture, found_library, to_ptx

__all__ = [
    "GPU",
    "LANES_PER_BLOCK",
    "NoCompiler",
    "architecture",
    "found_library",
    "to_ptx",
]
