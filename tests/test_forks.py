"""After a fork JAX would wait for ever: the child says so, unless it never uses the package."""

import os
import subprocess
import sys

import pytest
from run_settings import child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this platform")

# `told` runs a function in a process and returns what came back, or the line of its error.
START = """
import concurrent.futures, multiprocessing, os, sys, warnings
warnings.simplefilter("ignore", RuntimeWarning)  # of JAX, before each fork

def told(executor, function, *arguments):
    with executor:
        try:
            return executor.submit(function, *arguments).result(60)
        except RuntimeError as error:
            return str(error)

def pool(method):
    context = multiprocessing.get_context(method)
    return concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
"""
BUILT = (
    START
    + """
import jaxbandits as jb
import numpy as np
from jaxbandits.system.forks import HANGS

INSTANCE = jb.instances.soare(2, angle=0.5)
RUNS = jb.simulate(INSTANCE, jb.uniform, horizon=3, replications=2, engine="xla")
LIVE = jb.Live(jb.lin_ts, np.eye(2))
KEY = np.zeros(2, np.uint32)
ENTRIES = {
    "instance": lambda: jb.instances.soare(2),
    "random instance": lambda: jb.instances.sphere(KEY, 4, 2),
    "simulate": lambda: jb.simulate(INSTANCE, jb.uniform, horizon=3, replications=2),
    "compare": lambda: jb.compare({"u": jb.uniform}, INSTANCE, horizon=3, replications=2),
    "sweep": lambda: jb.sweep({"i": INSTANCE}, {"u": jb.uniform}, horizon=3, replications=2),
    "live": lambda: jb.Live(jb.lin_ts, np.eye(2)),
    "tell": lambda: LIVE.tell(0.0),
    "design": lambda: jb.design.d_optimal(np.eye(2)),
    "rounding": lambda: jb.rounding.efficient([0.5, 0.5], 3),
    "fit": lambda: jb.fit_glm(np.eye(2), [2, 2], [1, 1]),
    "theory": lambda: jb.theory.characteristic_time(INSTANCE),
    "algorithm": lambda: jb.lin_ts(np.eye(2)),
}
# What needs no JAX goes on.
OTHERS = {
    "own": lambda: 1 + 1,
    "results": lambda: RUNS.summary()["replications"],
    "file": lambda: (RUNS.save(sys.argv[1]), jb.load(sys.argv[1]).pulls.tolist())[1],
    "asked": lambda: LIVE.ask(),
}
def entry(name):
    return {**ENTRIES, **OTHERS}[name]()
"""
)


def test_each_entry_says_that_a_forked_process_would_hang(tmp_path):
    code = (
        BUILT
        + f"sys.argv[1:] = [{str(tmp_path / 'runs.npz')!r}]"
        + """
executor = pool("fork")
with executor:
    for name in ENTRIES:
        try:
            print(name, executor.submit(entry, name).result(60))
        except RuntimeError as error:
            assert str(error) == HANGS, (name, error)
    for name in OTHERS:
        print(name, executor.submit(entry, name).result(60))
"""
    )
    *others, asked = child(code).splitlines()
    assert others == ["own 2", "results 2", "file [3, 3]"]
    assert asked.startswith("asked ")


def test_a_process_that_imports_the_package_after_the_fork_says_so_too():
    code = (
        START
        + """
import jax
jax.devices()

def imports():
    import jaxbandits as jb
    return jb.instances.soare(2)

print(told(pool("fork"), imports))
"""
    )
    assert '"spawn"' in child(code)


def test_a_fork_before_jax_has_started_may_use_the_package():
    code = (
        START
        + """
import jax
import jaxbandits as jb

def means():
    return jb.instances.soare(2).means.tolist()

print(told(pool("fork"), means))
"""
    )
    assert child(code).startswith("[1.0, ")


@pytest.mark.slow
def test_spawned_processes_and_those_of_joblib_use_the_package(tmp_path):
    pytest.importorskip("joblib")
    program = tmp_path / "program.py"
    program.write_text(
        START
        + """
import joblib
import jaxbandits as jb

def means(_=None):
    return jb.instances.soare(2).means.tolist()

if __name__ == "__main__":
    wanted = means()
    assert told(pool("spawn"), means) == wanted
    assert told(pool("forkserver"), means) == wanted
    for backend in ("loky", "threading"):
        work = (joblib.delayed(means)(number) for number in range(2))
        assert joblib.Parallel(2, backend=backend)(work) == [wanted] * 2
    try:
        joblib.Parallel(2, backend="multiprocessing")([joblib.delayed(means)(0)])
    except RuntimeError as error:
        print(error)
"""
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert '"spawn"' in done.stdout
