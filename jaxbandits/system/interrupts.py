"""Ctrl-C and SIGTERM: a command ends in order, and what is being stored is stored first."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM)
LOOK_SECONDS = 0.1  # between two looks for a signal while a thread is at work


class Interrupts:
    """The signals that a command has received.

    Attributes:
      first: number of the first one, 0 as long as there is none.
    """

    first: int = 0

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        """Handle a signal: SIGTERM ends a command as Ctrl-C does."""
        self.first = self.first or number
        raise KeyboardInterrupt

    @property
    def status(self) -> int:
        """The exit status that a shell expects."""
        return 128 + (self.first or signal.SIGINT)

    def leave(self) -> NoReturn:
        """End the process; at once after a signal, without waiting for what still compiles."""
        if self.first:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)
        sys.exit(self.status)


_blocks: list[Interrupts] = []  # of `interruptible`, the innermost last


@contextlib.contextmanager
def interruptible() -> Generator[Interrupts]:
    """A block in which both signals raise `KeyboardInterrupt`; gives the `Interrupts`."""
    interrupts = Interrupts()
    _blocks.append(interrupts)
    try:
        with _handlers(dict.fromkeys(ENDING, interrupts) if _may_handle() else {}):
            yield interrupts
    finally:
        _blocks.remove(interrupts)


def raise_if_lost() -> None:
    """Raise `KeyboardInterrupt` again where a signal of this block came to nothing.

    Python drops an exception that is raised in a callback, of which importing a package and
    compiling have many. What still plays after a signal calls this from time to time.
    """
    if _blocks and _blocks[-1].first and _may_handle():
        raise KeyboardInterrupt


def further_ones_ignored() -> None:
    """Ignore both signals from here on: the process ends in a moment."""
    if _may_handle():
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


class Held:
    """What a block of `held_back` has received, and what handles it."""

    def __init__(self) -> None:
        handlers = {number: signal.getsignal(number) for number in ENDING} if _may_handle() else {}
        self.handlers = {number: one for number, one in handlers.items() if callable(one)}
        self.received: list[signal.Signals] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Hold back a signal; handle a second one."""
        self.received.append(signal.Signals(number))
        if len(self.received) > 1:
            self.handle(frame)

    def handle(self, frame: FrameType | None = None) -> None:
        """Handle what was received, once."""
        if self.received:
            number = self.received[-1]
            self.received.clear()
            self.handlers[number](number, frame)


_held: list[Held] = []  # of `held_back` in the main thread, the innermost last


@contextlib.contextmanager
def held_back() -> Generator[None]:
    """Hold back a signal until the block ends; a second one is handled at once.

    In threads other than the main one it does nothing: Python handles no signals there.
    """
    held = Held()
    if not _may_handle():
        yield
        return
    _held.append(held)
    try:
        with _handlers(dict.fromkeys(held.handlers, held)):
            yield
    finally:
        _held.pop()
    held.handle()


def waited_for(function: Callable[[], T]) -> T:
    """What a function returns, which is called in a thread of its own.

    A signal ends the wait at once, also one that is held back; the thread goes on. Not for a
    function that depends on what belongs to a thread.
    """
    if not _may_handle():
        return function()
    pool = ThreadPoolExecutor(1)
    try:
        made = pool.submit(function)
    except RuntimeError:  # the process is about to end
        return function()
    pool.shutdown(wait=False)
    return result_of(made)


def result_of(made: Future[T]) -> T:
    """What a thread makes; a signal ends the wait at once, also one that is held back."""
    while True:
        with contextlib.suppress(TimeoutError):
            made.exception(LOOK_SECONDS)
        if made.done():
            return made.result()
        if _held:
            _held[-1].handle()
        raise_if_lost()


@contextlib.contextmanager
def _handlers(wanted: Mapping[signal.Signals, Callable[..., Any]]) -> Generator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # not one that was set from outside Python
                signal.signal(number, handler)


def _may_handle() -> bool:
    """Python lets only the main thread set the handler of a signal."""
    return threading.current_thread() is threading.main_thread()
