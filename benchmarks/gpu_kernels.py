"""`python -m benchmarks.gpu_kernels`: the kernels of engine "cuda", compiled without a GPU.

For each task NVIDIA's run-time compiler makes PTX, and `ptxas` machine code for several GPUs: the
seconds both take, and the registers, the stack and the spills of a thread. Two wheels are enough:
`pip install --no-deps nvidia-cuda-nvrtc nvidia-cuda-nvcc`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jaxbandits.compilers.cuda import GPU, architecture, found_library, to_ptx
from jaxbandits.compilers.cuda.launching import Launch, kernel_text, launch_of
from jaxbandits.engine import device_loop

from .accelerator import NAMES, SHARED_DESIGNS, loop_of
from .contest import save
from .speed import RESULTS
from .tasks import task_of

CAPABILITIES = ("8.0", "9.0", "10.0")
USAGE = (
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers"
)


def ptxas():
    """The path of NVIDIA's assembler, of a wheel or of a toolkit; None if there is none."""
    for entry in sys.path:
        for path in Path(entry).glob("nvidia/*/bin/ptxas"):
            return str(path)
    return shutil.which("ptxas")


class Written(Exception):
    """Ends a compilation once the source is known."""


def source_of(task):
    """The program of a lane that a simulation of the task would launch."""

    def call(source, *others):
        raise Written(source)

    usual, device_loop.FUSED["cuda"] = device_loop.FUSED["cuda"], GPU._replace(call=call)
    try:
        loop_of(task, 256, "float64", "cuda")
    except Written as written:
        return written.args[0]
    finally:
        device_loop.FUSED["cuda"] = usual
    raise AssertionError("no kernel was written")


def measure(task):
    """The figures of a task: of the text, and for each GPU."""
    source = source_of(task)
    row = {
        "lines": kernel_text(source, Launch()).count("\n"),
        "scratch bytes a lane": source.scratch,
        "bytes a lane on the chip": source.on_chip,
    }
    for capability in CAPABILITIES:
        launch = launch_of(source, capability)
        text = kernel_text(source, launch)
        began = time.perf_counter()
        ptx = to_ptx(text, architecture(capability))
        compiled = time.perf_counter()
        usage = assembled(ptx, capability)
        figures = {
            "NVRTC seconds": compiled - began,
            "ptxas seconds": time.perf_counter() - compiled,
        }
        rounded = {name: round(value, 2) for name, value in figures.items()}
        rounded |= launch._asdict()
        row[capability] = {"PTX": re.search(r"\.version (\S+)", ptx).group(1), **rounded, **usage}
    return row


def assembled(ptx, capability):
    """Registers, stack and spills of a thread, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.ptx")
        path.write_text(ptx)
        target = "sm_" + capability.replace(".", "")
        command = [ptxas(), f"-arch={target}", "-v", str(path), "-o", str(path.with_suffix(".bin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ptxas: {done.stderr[:500]}")
    return {k: int(v) for k, v in re.search(USAGE, done.stderr, re.S).groupdict().items()}


def main():
    """Compile, print, write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_kernels", description=__doc__)
    known = [name for name in NAMES if name not in SHARED_DESIGNS]
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu-kernels.json")
    options = parser.parse_args()
    if found_library() is None or ptxas() is None:
        wheels = "nvidia-cuda-nvrtc nvidia-cuda-nvcc"
        raise SystemExit(f"NVRTC and ptxas are needed: pip install --no-deps {wheels}")
    results = {}
    for name in options.only:
        results[name] = measure(task_of(name))
        print(name, results[name], flush=True)
    save(options.out, results, "none: compiled for GPUs")


if __name__ == "__main__":
    main()
