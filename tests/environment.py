"""How the tests are compiled; imported before JAX, which reads these variables once."""

import gc
import os
from importlib.metadata import version

# Compiling takes nearly all of the time, and programs made with less care in a third of it. Who
# sets these variables has it otherwise; the slow tests of `.ci/run` do, as users' programs are.
HASTE = "--xla_cpu_parallel_codegen_split_count=1"
if tuple(map(int, version("jaxlib").split(".")[:3])) < (0, 11, 1):  # later ones have no choice
    HASTE += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", HASTE)
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Some tests share lanes out among devices; all others use the first of them.
DEVICES = "--xla_force_host_platform_device_count"
if DEVICES not in os.environ["XLA_FLAGS"]:
    os.environ["XLA_FLAGS"] += f" {DEVICES}=4"
# Several processes share the cores; threads of each that wait for small products would spin there.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tracing makes many objects that live long: looking through them for cycles is a tenth of the time.
gc.set_threshold(50_000, 20, 100)
# Where an operation was written is of no use in a program that no one debugs.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
