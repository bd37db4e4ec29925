"""Ctrl-C and SIGTERM: a command ends in order, and what is being stored is stored first."""

import contextlib
import os
import signal
import sys
import threading

ENDING = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The signals that a command has got.

    Attributes:
      first: number of the first one, 0 as long as there is none.
    """

    first = 0

    def __call__(self, number, frame):
        """Handle a signal: SIGTERM ends a command as Ctrl-C does."""
        self.first = self.first or number
        raise KeyboardInterrupt

    @property
    def status(self):
        """The exit status that a shell expects."""
        return 128 + (self.first or signal.SIGINT)

    def leave(self):
        """End the process now where a signal came, without waiting for what still compiles."""
        if self.first:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)
        sys.exit(self.status)


@contextlib.contextmanager
def interruptible():
    """A block in which both signals raise `KeyboardInterrupt`; gives the `Interrupts`."""
    interrupts = Interrupts()
    with _handlers(dict.fromkeys(ENDING, interrupts) if _may_handle() else {}):
        yield interrupts


def further_ones_ignored():
    """Ignore both signals from here on: the process ends in a moment."""
    if _may_handle():
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held_back():
    """Hold back a signal until the block ends; a second one comes through at once."""
    before = {number: signal.getsignal(number) for number in ENDING} if _may_handle() else {}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    came = []

    def hold(number, frame):
        came.append(number)
        if len(came) > 1:
            before[number](number, frame)

    with _handlers(dict.fromkeys(before, hold)):
        yield
    if len(came) == 1:
        before[came[0]](came[0], None)


@contextlib.contextmanager
def _handlers(wanted):
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # not one that another language has set
                signal.signal(number, handler)


def _may_handle():
    """Python lets only the main thread say what handles a signal."""
    return threading.current_thread() is threading.main_thread()
