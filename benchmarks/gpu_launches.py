"""`python -m benchmarks.gpu_launches`: what a GPU would launch in a round, found without a GPU.

XLA compiles the engine for an H200 that this machine does not have, and writes down the sequence of
kernels, copies and loops. For each task the table gives the launches of the innermost loop with its
condition: of "xla" a round of one arm, or a step of a phase's solver; of "cuda" many rounds or
phases. And how many things the host starts in a call: with loops in graphs it is one.

Two packages are enough beside JAX's own, of JAX's version: `pip install --no-deps
jax-cuda13-plugin jax-cuda13-pjrt`, and for "cuda" `nvidia-cuda-nvrtc`.
"""

import argparse
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

TASKS = ("lingape-soare", "lingape-sphere", "m-lingape-drug", "gse-16", "glm-tsl", "rage-soare")
LANES = 16_384
# NVIDIA's figures of an H200, as XLA writes them.
TARGET = """
gpu_device_info {
  name: "NVIDIA H200" core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800
  device_memory_size: 151397597184
  device_address_bits: 64 cuda_compute_capability { major: 9 }
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.10.0"
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 patch: 0 }
runtime_version { major: 13 minor: 0 patch: 0 } device_description_str: "NVIDIA H200"
"""
ENGINES = ("xla", "cuda")
GRAPH, CALL = "kCommandBuffer", "kCustomCall"  # XLA's names


class Step(NamedTuple):
    """A kernel, a copy, or a loop or graph with steps inside."""

    kind: str  # XLA's name, such as "kWhile"
    name: str
    inside: list  # pairs (part, step), where the part of a loop is "condition" or "body"


def steps_of(text):
    """The steps of XLA's text about a program, each with those inside."""
    top = Step("", "", [])
    stack, part = [(-1, top)], ""
    for line in text.splitlines():
        if found := re.match(r"\s*(condition|body):", line):
            part = found[1]
        elif found := re.match(r"( *)\d+: (k\w+)\s*\[[^\]]*\]\s*(\S*)", line):
            indent, step = len(found[1]), Step(found[2], found[3], [])
            while stack[-1][0] >= indent:
                stack.pop()
            stack[-1][1].inside.append((part, step))
            stack.append((indent, step))
    return [step for _, step in top.inside]


def walk(steps, depth=0):
    """All steps, those inside too, with the number of steps around each."""
    for step in steps:
        yield depth, step
        yield from walk((inner for _, inner in step.inside), depth + 1)


def is_copy(step):
    """Whether a step only moves or clears memory."""
    return step.kind in ("kCopy", "kMemset32BitValue", "kMemzero") or "Memcpy" in step.kind


def figures(steps, engine):
    """The row of an engine: of the loop that plays, and of a call."""
    loops = [(depth, x) for depth, x in walk(steps) if x.kind == "kWhile"]

    def flat(step):  # a graph is what is in it
        return [y for _, x in step.inside for y in flat(x)] if step.kind == GRAPH else [step]

    def inside(loop):
        return [x for _, step in loop.inside for x in flat(step)]

    if engine == "cuda":
        (loop,) = [x for _, x in loops if any(y.name == "run" or y.kind == CALL for y in inside(x))]
    else:
        _, loop = max(loops, key=lambda pair: (pair[0], len(inside(pair[1]))))
    found = inside(loop)
    copies = sum(map(is_copy, found))
    return {
        "kernels": len(found) - copies,
        "copies": copies,
        "loops": len(loops),
        "started by the host": len(steps),
    }


def installed():
    """Whether the packages are there that compile for a GPU."""
    names = "jax_plugins", "jax_plugins.xla_cuda13"  # the second is not found without the first
    return all(importlib.util.find_spec(name) for name in names)


def compile_for_gpu(task, engine, lanes, options):
    """Compile the engine's loop; XLA writes the rest, see `measure`."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies

    from jaxbandits.compilers.cuda import launching
    from jaxbandits.engine import choices, device_loop, host_loop, traits
    from jaxbandits.engine.partition import as_tree, split

    from .tasks import task_of

    task = task_of(task)
    devices = topologies.get_topology_desc(
        platform="cuda", target_config=TARGET, topology="1x1x1"
    ).devices
    place = jax.sharding.SingleDeviceSharding(devices[0])
    gpu = SimpleNamespace(compute_capability="9.0")
    launching.jax = SimpleNamespace(ffi=jax.ffi, devices=lambda *_: [gpu])
    structure, numbers = split((task.instance, as_tree(task.algorithm), task.horizon))
    shapes = traits.shapes_of(numbers)
    rounds = 0 if task.horizon is None else 128
    known = traits.sizes(structure, shapes, rounds)
    shape = choices.shape_of(
        known, replications=50 * lanes, batch=lanes, devices=None, engine=engine
    )._replace(gathers=True)
    lane, record, _ = traits.traced(structure, shapes, rounds)
    lane = jax.eval_shape(functools.partial(device_loop.held, shape), lane)
    inputs = traits.abstract_inputs(shapes, rounds)
    inputs = inputs._replace(queue=np.zeros(shape.queue, int))
    empty = functools.partial(device_loop.empty_batch, lane, record, shape, numpy=jnp)
    given = inputs, jax.eval_shape(empty)
    given = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=place), given
    )
    loop = functools.partial(device_loop.run_queue, structure, shape)
    flags = host_loop._flags("gpu", shape) | {"xla_gpu_autotune_level": "0"} | options
    jitted = jax.jit(loop, donate_argnums=1, keep_unused=True, compiler_options=flags)
    jitted.trace(*given).lower(lowering_platforms=("cuda",)).compile()


def measure(task, engine, lanes, one_graph=False):
    """The figures of a task, by a process of its own, since XLA reads its flags once."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1",
            "JAXBANDITS_CACHE": "off",
            "XLA_FLAGS": f"--xla_dump_to={folder} --xla_gpu_autotune_level=0",
        }
        command = [sys.executable, "-m", "benchmarks.gpu_launches", "--compile", task]
        command += ["--engines", engine, "--lanes", str(lanes)]
        command += ["--one-graph"] if one_graph else []
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{task}, {engine}: {done.stderr.strip().splitlines()[-1]}")
        texts = sorted(Path(folder).glob("*run_queue*thunk_sequence*.txt"))
        return figures(steps_of(texts[-1].read_text()), engine)


def main():
    """Measure, print, write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_launches", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--lanes", type=int, default=LANES)
    parser.add_argument("--one-graph", action="store_true", help="of --compile")
    parser.add_argument("--out", type=Path, help="where the figures go: benchmarks/results/...")
    parser.add_argument("--compile", metavar="TASK", help="only compile a task")
    options = parser.parse_args()
    if options.compile:
        from jaxbandits.engine.host_loop import ONE_GRAPH

        more = {"xla_gpu_enable_command_buffer": ONE_GRAPH} if options.one_graph else {}
        compile_for_gpu(options.compile, options.engines[0], options.lanes, more)
        return
    if not installed():
        raise SystemExit("needs jax-cuda13-plugin and jax-cuda13-pjrt, see the head of this file")
    from .accelerator import SHARED_DESIGNS
    from .contest import save
    from .speed import RESULTS

    results = {}
    for task in options.only:
        engines = [x for x in options.engines if x == "xla" or task not in SHARED_DESIGNS]
        rows = {x: measure(task, x, options.lanes) for x in engines}
        for engine in engines:
            whole = measure(task, engine, options.lanes, one_graph=True)
            rows[engine]["started with loops in graphs"] = whole["started by the host"]
        results[task] = rows
        print(task, json.dumps(rows), flush=True)
    out = options.out or RESULTS / "gpu-launches.json"
    save(out, results, f"none: compiled for an H200, {options.lanes} lanes")
    print(f"written: {out}")


if __name__ == "__main__":
    main()
