"""Where a user's function makes a generator of random numbers, or reads entropy of the system.

Nothing of either is left once the function has returned. So what makes them, in NumPy and in
Python, is replaced while such a function runs. What takes its place does it in the same way and
notes it; for other threads and other callers nothing changes.
"""

import contextlib
import dis
import functools
import os
import random
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

from .user_files import is_own_code

Function: TypeAlias = Callable[..., Any]
Note: TypeAlias = Callable[[str], None]  # is given one of the two below
Kind: TypeAlias = Callable[..., str]  # which of them a call is, by the user's frame and arguments

GENERATOR: str = "generator"
ENTROPY: str = "entropy"
PYTHON: str = str(Path(os.__file__).parent) + os.sep

_notes = threading.local()  # `to`: who is told in this thread
_one_at_a_time = threading.Lock()
_users = 0  # blocks of `noting` in all threads
_replaced: list[tuple[Any, str, Function, Function]] = []  # owner, name, before, in its place


@contextlib.contextmanager
def noting(note: Note) -> Generator[None]:
    """A block that tells `note` what functions of a user in it make, in this thread alone."""
    before = getattr(_notes, "to", None)
    _notes.to = note
    _enter()
    try:
        yield
    finally:
        _leave()
        _notes.to = before


def _enter():
    global _users
    with _one_at_a_time:
        _users += 1
        if _users > 1:
            return
        for owner, name, kind in _makers():
            function = getattr(owner, name)
            noted = _noted(function, kind)
            setattr(owner, name, noted)
            _replaced.append((owner, name, function, noted))


def _leave():
    global _users
    with _one_at_a_time:
        _users -= 1
        if _users > 0:
            return
        for owner, name, function, noted in _replaced:
            if getattr(owner, name) is noted:  # and nobody has replaced it meanwhile
                setattr(owner, name, function)
        _replaced.clear()


def _makers() -> Iterator[tuple[Any, str, Kind]]:
    """What is called whenever there is a new generator, or entropy is read: owner, name, kind."""
    bits = vars(np.random).get("bit_generator")
    # Each generator of NumPy has a lock, whose kind is one of the version. `RandomState(0)` too
    # reads entropy before it is seeded.
    kinds = {"Lock": _generator, "RLock": _generator, "randbits": _unless_seeded}
    for name, kind in kinds.items():
        if hasattr(bits, name):
            yield bits, name, kind
    yield random.Random, "seed", _by_seed
    for owner, name in ((os, "urandom"), (random, "_urandom")):  # which `secrets` and `uuid` call
        if hasattr(owner, name):
            yield owner, name, lambda frame, *args: ENTROPY


def _generator(frame, *args):
    return GENERATOR


def _by_seed(frame, generator, seed=None, *args, **options):
    return ENTROPY if seed is None else GENERATOR


def _unless_seeded(frame, *args):
    """Whether what a user's function calls, NumPy itself has no frames, is given no argument."""
    call, number = frame.f_code.co_code[frame.f_lasti :][:2]
    return ENTROPY if (dis.opname[call], number) == ("CALL", 0) else GENERATOR


def _noted(function: Function, kind: Kind) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        note = getattr(_notes, "to", None)
        if note is None:
            return function(*args, **options)
        frame, copied = _caller()
        if frame is not None:
            note(GENERATOR if copied else kind(frame, *args, **options))
        _notes.to = None  # what is called by this is a part of it
        try:
            return function(*args, **options)
        finally:
            _notes.to = note

    return call


def _caller() -> tuple[FrameType | None, bool]:
    """The frame of a user's function that asks for it, and whether it does so by copying.

    Between this and that are functions of Python and of NumPy's generators alone, none of which
    imports a module: libraries may make generators for themselves.
    """
    frame, copied = sys._getframe(2), False
    while frame is not None:
        file, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
        if file.startswith("<frozen importlib"):
            break
        of_python = file.startswith((PYTHON, "<frozen")) and "site-packages" not in file
        if not (of_python or str(module).startswith("numpy.random")):  # whose copies have a frame
            return (frame if is_own_code(frame.f_code, frame.f_globals) else None), copied
        copied = copied or module == "copy"
        frame = frame.f_back
    return None, copied
