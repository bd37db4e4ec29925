"""Shape checks on the kernels, and a way to run a share of the tests."""

import gc
import itertools
import os
import signal
import threading
from pathlib import Path

# Compiling takes nearly all of the time, and programs made with less care in a third of it. Who
# sets these variables has it otherwise; the slow tests of `.ci/run` do, as users' programs are.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports the package, so that every kernel is checked whoever calls it.
install_import_hook("jaxbandits.kernels", "beartype.beartype")

# A shell has what it starts in the background ignore Ctrl-C, and children of that too.
IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if IGNORED and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="i/n: every n-th of the selected tests, from i")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = items[part - 1 :: parts] or items
    left_out = set(items) - set(chosen)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = chosen


@pytest.fixture(autouse=True)
def _compiled_with_care(request):
    """Tests marked `optimised` play for longer than they compile, or are about the last bits."""
    if request.node.get_closest_marker("optimised") is None:
        yield
        return
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


MOST_MAPS = 20_000  # of the 65,530 parts of memory that Linux lets a process have
ENDED, EVERY = itertools.count(1), 10  # tests, between two looks


@pytest.fixture(autouse=True)
def _room_for_programs():
    """Compiled programs take parts of memory, and a process that has too many is ended."""
    yield
    maps = Path("/proc/self/maps")
    looks = next(ENDED) % EVERY == 0 and maps.exists()
    if looks and maps.read_bytes().count(b"\n") > MOST_MAPS:
        from jaxbandits import lanes

        lanes.program.cache_clear()
        jax.clear_caches()
        gc.collect()
