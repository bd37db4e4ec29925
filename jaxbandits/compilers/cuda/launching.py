"""Programs of lanes as kernels: their text, and how XLA launches them."""

import re

import jax
import numpy as np

from ..cpp.program import THREAD, Source, Target
from .nvrtc import architecture, to_ptx

# XLA's own call for a kernel in PTX.
LAUNCH: str = "__gpu$xla.gpu.ptx"
LANES_PER_BLOCK: int = 128
BLOCKS: int = 2  # that fit a multiprocessor at once, at least: a thread has 255 registers then
# Loops of up to so many iterations are written out by the compiler, so that entries of small tables
# stay in registers; longer ones would only make the program long.
WRITTEN_OUT: int = 12


def kernel_text(source: Source) -> str:
    """The CUDA C++ of a kernel `run` whose arguments are those of the program, then its results."""
    inputs = source.inputs + len(source.shared)
    outputs = source.outputs + (source.scratch > 0)
    names = [f"in_{k}" for k in range(inputs)], [f"out_{k}" for k in range(outputs)]
    parameters = ", ".join(f"void *{name}" for name in (*names[0], *names[1]))
    bounds = f"__launch_bounds__({LANES_PER_BLOCK}, {BLOCKS})"
    lines = [
        "#define LANES 1",
        _rolled(source.text),
        f'extern "C" __global__ void {bounds} run({parameters}) {{',
        f"void *in[] = {{{', '.join(names[0])}}};",
        f"void *out[] = {{{', '.join(names[1])}}};",
        "const i64 lanes = (i64)gridDim.x * blockDim.x;",
        "run_block(in, out, lanes, (i64)blockIdx.x * blockDim.x + threadIdx.x);",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _rolled(text):
    """The text in which loops of many iterations stay loops."""

    def one(found):
        few = found[3] is not None and int(found[3]) <= WRITTEN_OUT
        return found[0] if few else f"#pragma unroll 1\n{found[0]}"

    return re.sub(r"^for \((?:i64 (\w+) = 0; (\w+) < (\d+); .*\)|.*)", one, text, flags=re.M)


def _launch(source, results, arguments, replaced):
    lanes = arguments[0].shape[0]
    (device, *_) = jax.devices("gpu")
    ptx = to_ptx(kernel_text(source), architecture(device.compute_capability))
    one, blocks = np.int32(1), np.int32(lanes // LANES_PER_BLOCK)
    call = jax.ffi.ffi_call(LAUNCH, results, input_output_aliases=replaced)
    return call(
        *arguments,
        name="run",
        kernel_type="ptx",
        kernel_data=ptx,
        grid_x=blocks,
        grid_y=one,
        grid_z=one,
        block_x=np.int32(LANES_PER_BLOCK),
        block_y=one,
        block_z=one,
        shared_mem_bytes=np.int32(0),
    )


# A block of lanes is what must be full; a thread has one.
GPU: Target = Target(THREAD, _launch, LANES_PER_BLOCK, alone=False)
