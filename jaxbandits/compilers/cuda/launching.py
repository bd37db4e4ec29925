"""Programs of lanes as kernels: their text, and how XLA launches them."""

import re
from typing import NamedTuple

import jax
import numpy as np

from ..cpp.program import THREAD, Source, Target
from .nvrtc import architecture, to_ptx

# XLA's own call for a kernel in PTX.
LAUNCH: str = "__gpu$xla.gpu.ptx"
LANES_PER_BLOCK: int = 128
BLOCKS: int = 2  # that fit a multiprocessor at once, at least: a thread has 255 registers then
# Where large arrays are on the chip, there is room for one block of as many of these as fit; of
# fewer, the multiprocessor would mostly wait.
ON_CHIP: tuple[int, ...] = (128, 64)
# Loops of up to so many iterations are written out by the compiler, so that entries of small tables
# stay in registers; longer ones would only make the program long. In a long program few tables do
# so anyway: that of GLM-TSL compiles in half the time and spills less.
WRITTEN_OUT: int = 12
WRITTEN_OUT_IF_LONG: int = 4
# Iterations of the innermost loops that are written side by side, in programs of up to so many
# lines: a thread then waits for several entries of a large table at once. The first number that
# divides those of the loop, as what is left over comes one by one: 10 of 50 arms in place of 8 made
# rounds of LinGapE a tenth faster on an H100.
SIDE_BY_SIDE: tuple[int, ...] = (8, 10, 9, 7)
FEW_LINES: int = 2000
# Of memory on the chip that a block may have, by compute capability; others have less.
CHIP_BYTES: dict[str, int] = {
    "8.0": 163 << 10,
    "8.7": 163 << 10,
    "9.0": 227 << 10,
    "10.0": 227 << 10,
    "10.3": 227 << 10,
}
LEAST_CHIP_BYTES: int = 99 << 10


class Launch(NamedTuple):
    """How a kernel is launched."""

    threads: int = LANES_PER_BLOCK  # of a block, one for each of its lanes
    chip_bytes: int = 0  # of a block on the chip; with 0, the arrays meant for it are elsewhere


def launch_of(source: Source, capability: str) -> Launch:
    """The `Launch` on a GPU of this compute capability, such as "9.0"."""
    room = CHIP_BYTES.get(capability, LEAST_CHIP_BYTES)
    for lanes in ON_CHIP if source.on_chip else ():
        if lanes * source.on_chip <= room:
            return Launch(lanes, lanes * source.on_chip)
    return Launch()


def kernel_text(source: Source, launch: Launch) -> str:
    """The CUDA C++ of a kernel `run` whose arguments are those of the program, then its results.

    Args:
      source: the program of a lane.
      launch: see `launch_of`.
    """
    inputs = source.inputs + len(source.shared)
    outputs = source.outputs + (source.scratch > 0)
    names = [f"in_{k}" for k in range(inputs)], [f"out_{k}" for k in range(outputs)]
    parameters = ", ".join(f"void *{name}" for name in (*names[0], *names[1]))
    bounds = f"__launch_bounds__({launch.threads}, {1 if launch.chip_bytes else BLOCKS})"
    lines = [
        "#define LANES 1",
        *([f"#define CHIP_LANES {launch.threads}"] if launch.chip_bytes else []),
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
    lines = text.split("\n")
    few_lines, rolled = len(lines) <= FEW_LINES, []
    written_out = WRITTEN_OUT if few_lines else WRITTEN_OUT_IF_LONG
    for k, line in enumerate(lines):
        if line.startswith("for ("):
            counted = re.match(r"for \(i64 (\w+) = 0; \1 < (\d+);", line)
            if not counted or int(counted[2]) > written_out:
                innermost = counted and few_lines and _is_innermost(lines[k:])
                many = _side_by_side(int(counted[2])) if innermost else 1
                rolled.append(f"#pragma unroll {many}")
        rolled.append(line)
    return "\n".join(rolled)


def _side_by_side(iterations):
    return next((n for n in SIDE_BY_SIDE if iterations % n == 0), SIDE_BY_SIDE[0])


def _is_innermost(lines):
    """Whether the loop that begins with the first line has none inside."""
    depth = 0
    for line in lines:
        if depth and line.startswith("for ("):
            return False
        depth += line.count("{") - line.count("}")
        if depth <= 0:
            break
    return True


def _launch(source, results, arguments, replaced):
    lanes = arguments[0].shape[0]
    (device, *_) = jax.devices("gpu")
    capability = device.compute_capability
    launch = launch_of(source, capability)
    ptx = to_ptx(kernel_text(source, launch), architecture(capability))
    one, blocks = np.int32(1), np.int32(lanes // launch.threads)
    call = jax.ffi.ffi_call(LAUNCH, results, input_output_aliases=replaced)
    return call(
        *arguments,
        name="run",
        kernel_type="ptx",
        kernel_data=ptx,
        grid_x=blocks,
        grid_y=one,
        grid_z=one,
        block_x=np.int32(launch.threads),
        block_y=one,
        block_z=one,
        shared_mem_bytes=np.int32(launch.chip_bytes),
    )


# A block of lanes is what must be full; a thread has one.
GPU: Target = Target(THREAD, _launch, LANES_PER_BLOCK, alone=False)
