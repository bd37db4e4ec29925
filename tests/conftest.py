"""How the tests are compiled, shared out among processes, and checked for shapes."""

import gc
import itertools
import signal
import threading
from pathlib import Path

import environment  # noqa: F401  before JAX, which reads it once
import jax
import pytest
from jaxtyping import install_import_hook

# Before anything imports the package, so that every kernel is checked whoever calls it.
install_import_hook("jaxbandits.kernels", "beartype.beartype")

WITH_CARE = not jax.config.values["jax_disable_most_optimizations"]

# A shell has what it starts in the background ignore Ctrl-C, and children of that too.
IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if IGNORED and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="i/n: every n-th of the selected tests, from i")


def pytest_configure(config):
    from programs import pin_lanes

    _compile(WITH_CARE)
    if not WITH_CARE:
        pin_lanes()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = items[part - 1 :: parts] or items
    left_out = set(items) - set(chosen)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = chosen


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from distribution import ByCase

    return ByCase(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tests marked `optimised` play for longer than they compile, or are about the last bits."""
    care = item.get_closest_marker("optimised") is not None
    if WITH_CARE or not care:
        return (yield)
    _compile(True)  # before any fixture
    try:
        return (yield)
    finally:
        _compile(WITH_CARE)


def _compile(care):
    """With all optimisations or in haste, by XLA and by the C++ compiler."""
    jax.config.update("jax_disable_most_optimizations", not care)
    from programs import USUAL_FLAGS

    from jaxbandits.compilers.cpp import compiling
    from jaxbandits.engine import host_loop

    host_loop._flags = USUAL_FLAGS if care else lambda *_: {}
    now, other = ("-O2", "-O0") if care else ("-O0", "-O2")
    compiling.FLAGS = compiling.FLAGS.replace(other, now)
    assert now in compiling.FLAGS


MOST_MAPS = 20_000  # of the 65,530 parts of memory that Linux lets a process have
ENDED, EVERY = itertools.count(1), 10  # tests, between two looks


@pytest.fixture(autouse=True)
def _room_for_programs():
    """Compiled programs take parts of memory, and a process that has too many is ended."""
    yield
    maps = Path("/proc/self/maps")
    looks = next(ENDED) % EVERY == 0 and maps.exists()
    if looks and maps.read_bytes().count(b"\n") > MOST_MAPS:
        from jaxbandits.engine import host_loop

        host_loop.program.cache_clear()
        jax.clear_caches()
        gc.collect()
