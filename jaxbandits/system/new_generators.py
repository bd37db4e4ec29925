"""Where a user's function makes a generator of random numbers, or reads entropy or a clock.

Nothing of these is left once the function has returned. So what makes generators, in NumPy and in
Python, and what reads the system is replaced while such a function runs, under names of the user's
modules too (`from os import urandom`). What takes its place does it in the same way and notes it;
for other threads and other callers nothing changes. Clocks can be put back, to see whether what a
function does depends on them.
"""

import contextlib
import dis
import functools
import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from . import clocks
from .user_files import INSTALLED, is_foreign, is_own_code

Function: TypeAlias = Callable[..., Any]
Note: TypeAlias = Callable[[str], None]  # is given one of the four below
Kind: TypeAlias = Callable[..., str]  # which of them a call is, by the user's frame and arguments

GENERATOR: str = "generator"
ENTROPY: str = "entropy"
SEED: str = "seed"  # of a global generator
CLOCK: str = "clock"
PYTHON: str = str(Path(os.__file__).parent) + os.sep
# Of NumPy: `copy` and the like of its generators have a frame.
RANDOM: tuple[str, ...] = ("numpy.random",)
# A loop that waits for a moment known from outside would go on for as long as a clock is put back.
MOST_PUT_BACK = 1000
# Parts of the name of a file that is no user's: most modules are, and to resolve them takes long.
NOT_OF_USERS: tuple[str, ...] = (*(f"{os.sep}{folder}{os.sep}" for folder in INSTALLED), PYTHON)

_notes = threading.local()  # `to`: who is told in this thread; `back`: nanoseconds; `put_back`
_one_at_a_time = threading.Lock()
_users = 0  # blocks of `replaced` in all threads
_replaced: list[tuple[Any, str, Any, Any]] = []  # owner, name, before, in its place


@contextlib.contextmanager
def noting(note: Note) -> Generator[None]:
    """A block that tells `note` what functions of a user in it make, in this thread alone."""
    before = getattr(_notes, "to", None)
    _notes.to = note
    try:
        with replaced():
            yield
    finally:
        _notes.to = before


@contextlib.contextmanager
def replaced() -> Generator[None]:
    """A block in which those of `noting` cost nothing but their notes."""
    _enter()
    try:
        yield
    finally:
        _leave()


@contextlib.contextmanager
def clocks_put_back(nanoseconds: int) -> Generator[None]:
    """A block in whose `noting` functions of a user read clocks that are so much behind."""
    _notes.back, _notes.put_back = nanoseconds, 0
    try:
        yield
    finally:
        _notes.back = 0


def _enter():
    global _users
    with _one_at_a_time:
        _users += 1
        if _users > 1:
            return
        found = clocks.of_datetime(_back)  # in place of what has this id
        for owner, name, function, noted in itertools.chain(_all_noted(), _of_users(found)):
            found[id(function)] = noted
            setattr(owner, name, noted)
            _replaced.append((owner, name, function, noted))


def _leave():
    global _users
    with _one_at_a_time:
        _users -= 1
        if _users > 0:
            return
        for owner, name, function, noted in _replaced:
            if getattr(owner, name, None) is noted:  # and nobody has replaced it meanwhile
                setattr(owner, name, function)
        _replaced.clear()


def _all_noted() -> Iterator[tuple[Any, str, Function, Function]]:
    """What is replaced, as `_replaced` lists it."""
    for owner, name, kind in _makers():
        function = getattr(owner, name)
        yield owner, name, function, _noted(function, kind)
    for name, clock, behind in clocks.of_time(_back):
        yield time, name, clock, behind


def _of_users(found):
    """Sources of numbers under names of users' modules; `found` has all, by id of the function."""
    for name, module in list(sys.modules.items()):
        if type(module) is not ModuleType:  # but imported when an attribute of it is read
            continue
        file = str(getattr(module, "__file__", ""))
        if any(x in file for x in NOT_OF_USERS) or is_foreign(name):
            continue
        for variable, value in list(vars(module).items()):
            if (noted := found.get(id(value))) is not None:
                yield module, variable, value, noted


def _makers() -> Iterator[tuple[Any, str, Kind]]:
    """What is called whenever there is a new generator, or entropy is read: owner, name, kind."""
    bits = vars(np.random).get("bit_generator")
    # Each generator of NumPy has a lock, whose kind is one of the version. `RandomState(0)` too
    # reads entropy before it is seeded. A `SeedSequence` converts what it is made of.
    kinds = dict.fromkeys(("Lock", "RLock", "_coerce_to_uint32_array"), _generator)
    kinds["randbits"] = _unless_seeded
    for name, kind in kinds.items():
        if hasattr(bits, name):
            yield bits, name, kind
    yield random.Random, "seed", _by_seed
    yield random, "seed", _of_global  # bound to the generator, so not that of the class
    yield np.random, "seed", _of_global
    of_system = (os, "urandom"), (random, "_urandom"), (os, "getrandom")
    for owner, name in of_system:  # which `secrets` and `uuid` call
        if hasattr(owner, name):
            yield owner, name, lambda frame, *args: ENTROPY


def _generator(frame, *args):
    return GENERATOR


def _by_seed(frame, generator, seed=None, *args, **options):
    return ENTROPY if seed is None else GENERATOR


def _of_global(frame, seed=None, *args, **options):
    return ENTROPY if seed is None else SEED


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
        frame, made = _caller()
        if frame is not None:
            note(GENERATOR if made else kind(frame, *args, **options))
        _notes.to = None  # what is called by this is a part of it
        try:
            return function(*args, **options)
        finally:
            _notes.to = note

    return call


def _back(frame):
    """Nanoseconds by which a clock that is read in this frame is put back; it is noted."""
    note = getattr(_notes, "to", None)
    if note is None or not is_own_code(frame.f_code, frame.f_globals):  # but a log's, of Python
        return 0
    note(CLOCK)
    if not (back := getattr(_notes, "back", 0)):
        return 0
    _notes.put_back += 1
    return back if _notes.put_back <= MOST_PUT_BACK else 0


def _caller() -> tuple[FrameType | None, bool]:
    """The frame of a user's function that asks for it, and whether it makes a generator for it.

    Between this and that are functions of Python and of NumPy's generators alone, none of which
    imports a module, and those of scipy that are given a seed: libraries may make generators for
    themselves. Copies and what has such a seed are generators for certain.
    """
    frame, made, of_scipy = sys._getframe(2), False, False
    while frame is not None:
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
        if file.startswith("<frozen importlib"):
            break
        of_python = file.startswith((PYTHON, "<frozen")) and "site-packages" not in file
        of_scipy = module.startswith("scipy.") and (of_scipy or _is_given_seed(frame))
        if not (of_python or of_scipy or module.startswith(RANDOM)):
            return (frame if is_own_code(frame.f_code, frame.f_globals) else None), made
        made = made or of_scipy or module == "copy"
        frame = frame.f_back
    return None, made


def _is_given_seed(frame):
    """Whether this is the function of scipy that makes a generator of `random_state=0`."""
    of_seeds = frame.f_code.co_name == "check_random_state"
    return of_seeds and frame.f_locals.get("seed") is not None
