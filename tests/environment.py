"""Settings of the compilers for the tests.

This is imported before JAX, which reads these environment variables only once.
"""

import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path

# The tests spend nearly all of their time compiling; with few optimisations, compiling takes a
# third of the time. Variables that are already set are kept, so that all tests can be compiled as
# users' programs are. Passes are left out that make programs faster, not right.
LEFT_OUT = (
    "simplify-while-loops,while-loop-invariant-code-motion,while-loop-constant-sinking"
    ",tree_reduction_rewriter,reshape-mover,simplify-conditional,gemv-rewriter"
    ",while-loop-trip-count-annotator,cpu-parallel-task-assigner,transpose-folding"
    ",small-while-loop-hoisting"
)
# Option of XLA -> its value in haste, and the usual one.
HASTY = {
    "xla_cpu_parallel_codegen_split_count": (1, 32),
    "xla_disable_hlo_passes": (LEFT_OUT, ""),
}
if tuple(map(int, version("jaxlib").split(".")[:3])) < (0, 11, 1):  # later versions lack the option
    HASTY["xla_cpu_use_fusion_emitters"] = ("false", True)
# The compiler options with which a single program is compiled as usual in spite of the flags.
UNHURRIED = {name: usual for name, (_, usual) in HASTY.items()}
HASTE = " ".join(f"--{name}={hasty}" for name, (hasty, _) in HASTY.items())
os.environ.setdefault("XLA_FLAGS", HASTE)
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Some tests distribute lanes over devices; all others use the first device.
DEVICES = "--xla_force_host_platform_device_count"
if DEVICES not in os.environ["XLA_FLAGS"]:
    os.environ["XLA_FLAGS"] += f" {DEVICES}=4"
# Several processes share the cores: each uses one, unless a test asks for more. Threads that wait
# for small matrix products would spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAXBANDITS_CORES", "1")  # those that a test starts too
# Tracing makes many long-lived objects; searching them for cycles takes a tenth of the time.
gc.set_threshold(200_000, 50, 1_000)
# Each process, and each that a test starts, imports hundreds of modules. Without stored bytecode,
# as after `pip install --no-compile`, it would compile them all. Where Python is told to leave none
# beside the sources, it is stored in the folder of pytest.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    stored = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(stored))
    sys.pycache_prefix, sys.dont_write_bytecode = os.environ["PYTHONPYCACHEPREFIX"], False
# A program that is kept would not be compiled, and many tests are about compiling.
os.environ.setdefault("JAXBANDITS_CACHE", "off")
# Source locations of operations are only needed for debugging.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
