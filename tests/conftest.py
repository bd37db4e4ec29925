"""How the tests are compiled, distributed over processes, and checked for array shapes."""

import atexit
import gc
import itertools
import os
import signal
import sys
import threading

import environment  # noqa: F401  before JAX, which reads it once
import imported_ahead  # noqa: F401  before all other packages
import jax
import pytest
from jaxtyping import install_import_hook

# This comes before any import of the package, so that every call of a kernel is checked.
install_import_hook("jaxbandits.kernels", "beartype.beartype")

# After JAX, so that it is called before what JAX does at the end: to free each compiled program
# would take seconds.
if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(os._exit, 0)

OPTIMISED = not jax.config.values["jax_disable_most_optimizations"]

# A process that a shell starts in the background ignores Ctrl-C, and so do its children. Tests
# that interrupt a command need the usual handler.
IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if IGNORED and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--part",
        default="1/1",
        help="i/n: run the i-th of n parts of the selected tests, which take about equally long",
    )


def pytest_configure(config):
    if config.getvalue("dist") != "no":  # other processes run the tests
        return
    from programs import compile_in_haste, keep_readings, share_contexts

    share_contexts()
    keep_readings()
    compile_in_haste(not OPTIMISED)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    from distribution import part

    number, parts = map(int, config.getoption("part").split("/"))
    chosen = set(part([item.nodeid for item in items], number, parts))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from distribution import ByCase

    return ByCase(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Compile programs of tests marked `optimised` as users' are: they play for long."""
    if OPTIMISED or not item.get_closest_marker("optimised"):
        return (yield)
    from programs import as_for_users

    with as_for_users():  # fixtures too
        return (yield)


ENDED, EVERY = itertools.count(1), 50  # to count the mappings takes 10 ms


@pytest.fixture(autouse=True)
def _no_open_figures():
    """Close what a test leaves to pyplot, which warns of twenty."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture(autouse=True, scope="module")
def _few_young_objects():
    """Let the collector of garbage count as old what earlier files have left.

    A call with functions of a user looks for generators among all young objects, and among old ones
    only after a collection (`system/randomness.py`). By the thresholds of `environment` alone
    millions would stay young, and to look at one million takes a fifth of a second.
    """
    gc.collect(1)


@pytest.fixture(autouse=True)
def _room_for_programs():
    """Forget compiled programs before the process has too many memory mappings and is killed.

    And what JAX keeps of functions of users, before it takes too much memory.
    """
    yield
    if next(ENDED) % EVERY == 0:
        from programs import forget_readings

        from jaxbandits.system import keeping

        keeping.make_room()
        forget_readings()


def pytest_sessionfinish():
    """Search the compiled programs for cycles once; pytest would do it five times at the end."""
    gc.collect()
    gc.freeze()
