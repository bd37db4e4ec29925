"""Processes forked from one in which JAX had started: its threads are missing, so it would hang.

This is imported with the package and not with JAX, so that every fork is noticed.
"""

import os
import sys
from pathlib import Path

THREADS = Path("/proc/self/task")  # of Linux: an entry for each thread of the process
HANGS: str = (
    "this process was forked from one in which JAX had started, whose threads do not exist here: "
    'JAX would wait for ever. Start processes with "spawn", as by '
    'multiprocessing.get_context("spawn")'
)

_forked = False  # whether that is this process


def check_not_forked() -> None:
    """Raise where JAX would wait for threads that a fork has not copied.

    Raises:
      RuntimeError: says how to start processes.
    """
    if _forked:
        raise RuntimeError(HANGS)


def _note_fork() -> None:
    global _forked
    _forked = _forked or _has_started()


def _has_started() -> bool:
    """Whether JAX has started its threads; without its lock, which a fork may leave locked."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(getattr(bridge, "_backends", True))


def _is_alone() -> bool:
    """Whether the process is known to have one thread, of Python or of anything else."""
    return THREADS.is_dir() and len(list(THREADS.iterdir())) == 1


# The package may be imported first by the child; then the missing threads tell that it is one.
_forked = _has_started() and _is_alone()
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_note_fork)
