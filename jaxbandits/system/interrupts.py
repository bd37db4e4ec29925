"""Ctrl-C and SIGTERM: a command ends in order, and what is being stored is stored first."""

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM)
AGAIN: "signal.Signals | None" = getattr(signal, "SIGALRM", None)  # Windows has none
LOOK_SECONDS = 0.1  # between two looks for a signal while a thread is at work
AGAIN_SECONDS = 0.05  # until a signal is handled again that could not be handled, or was lost
IMPORTING = "<frozen importlib._bootstrap>"  # the file of each frame that imports a module
ENGINE = "jaxbandits.engine.api", "Simulation"  # what is there before anything is played
GOES_ON = "the same command goes on where this one stopped"
TRACES = (
    "interrupted while JAX traces a program, which must not be interrupted: this ends once that is "
    "over; Ctrl-C again ends it at once"
)
COMPILES = (
    "interrupted while XLA compiles, which nothing interrupts: a thread goes on with it until that "
    "is over or the process ends"
)
# On a terminal: the line begins anew, and the cursor that a bar has hidden is there again.
CLEARED = "\r\x1b[K\x1b[?25h"


class Interrupts:
    """The signals that a command has received.

    The first one raises `KeyboardInterrupt`, and the command ends in order; a second one ends it
    at once. While modules are imported that exception would end the process in their C++ code: so
    the first one ends a command at once that has nothing to store, and else waits. One that comes
    once the command has done its work has nothing left to interrupt: the process ends at once, as
    it would have ended.

    Args:
      starting: whether there is no command yet that could end in order.

    Attributes:
      first: number of the first one, 0 as long as there is none.
      over: whether the command has done its work.
    """

    first: int = 0
    over: bool = False

    def __init__(self, *, starting: bool = False) -> None:
        self._starting = starting

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: SIGTERM ends a command as Ctrl-C does."""
        if self.over:
            _flush()
            os._exit(0)
        again = number == AGAIN
        second, self.first = bool(self.first) and not again, self.first or number
        importing = _imports(frame)
        if second or self._starting or (importing and not _has_begun()):
            self.leave_at_once()
        if importing or (again and _held):
            _handle_again()
        else:
            raise KeyboardInterrupt

    @property
    def status(self) -> int:
        """The exit status that a shell expects."""
        return 128 + (self.first or signal.SIGINT)

    @property
    def text(self) -> str:
        """What the user is told."""
        how = "terminated" if self.first == signal.SIGTERM else "interrupted"
        return f"{how}; {GOES_ON}"

    def leave(self) -> NoReturn:
        """End the process; at once after a signal, without waiting for what still compiles."""
        if self.first:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)
        sys.exit(self.status)

    def leave_at_once(self) -> NoReturn:
        """End the process with a line, whatever it is at."""
        with contextlib.suppress(OSError):
            start = CLEARED if os.isatty(2) else ""
            os.write(2, f"{start}{self.text}\n".encode())  # a buffer may be in use at the moment
        os._exit(self.status)


_blocks: list[Interrupts] = []  # of `interruptible`, the innermost last
_whole: list[Interrupts] = []  # of a process that is a command


def from_the_start() -> None:
    """Handle both signals from here on; for a process that is a command, before heavy imports.

    Python takes its handlers away while it ends, after all that is registered with `atexit`; a
    signal would then end the process by itself, without a line and with another exit status.
    """
    starting = Interrupts(starting=True)
    _whole.append(starting)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, starting)
    atexit.register(further_ones_ignored)  # the first one is called last


def work_is_done() -> None:
    """Note that the command of this block has done its work, see `Interrupts`."""
    for one in (*_whole, *_blocks[-1:]):
        one.over = True


@contextlib.contextmanager
def interruptible() -> Generator[Interrupts]:
    """A block in which both signals raise `KeyboardInterrupt`; gives the `Interrupts`.

    Python drops an exception that is raised in a callback, as of its collector of garbage. It is
    raised again a moment later; see `raise_if_lost` too.
    """
    interrupts = Interrupts()
    numbers = [*ENDING, *filter(None, [AGAIN])] if _may_handle() else []
    before = sys.unraisablehook

    def dropped(what: Any, /) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            _handle_again()
        else:
            before(what)

    _blocks.append(interrupts)
    try:
        with _handlers(dict.fromkeys(numbers, interrupts)):
            sys.unraisablehook = dropped
            try:
                yield interrupts
            finally:  # before the signal kills again
                _handle_again(0.0)
    finally:
        sys.unraisablehook = before
        _blocks.remove(interrupts)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False


def _has_begun() -> bool:
    """Whether this process may have played something that is to be stored."""
    name, attribute = ENGINE
    return hasattr(sys.modules.get(name), attribute)


def _handle_again(seconds: float = AGAIN_SECONDS) -> None:
    """Have a signal of this block handled again after a moment; never for 0 seconds."""
    if AGAIN is not None and _may_handle():
        signal.setitimer(signal.ITIMER_REAL, seconds)


def raise_what_jax_drops() -> None:
    """Have Ctrl-C raised again that came in a callback of JAX, in any process from here on.

    JAX registers one with the collector of garbage, which runs often while JAX traces, and what is
    raised there Python drops: one press in four came to nothing in scripts that compute a bound.
    """
    before = sys.unraisablehook

    def dropped(what: Any, /) -> None:
        by_jax = str(getattr(what.object, "__module__", "")).startswith("jax.")
        if by_jax and issubclass(what.exc_type, KeyboardInterrupt):
            again = threading.Timer(AGAIN_SECONDS, _press)
            again.daemon = True
            again.start()
        else:
            before(what)

    sys.unraisablehook = dropped


def _press():
    """Press Ctrl-C for the main thread."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):  # which ends its sleep, too
        signal.pthread_kill(main, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()


def raise_if_lost() -> None:
    """Raise `KeyboardInterrupt` again where a signal of this block came to nothing.

    What still plays after a signal calls this from time to time.
    """
    if _blocks and _blocks[-1].first and _may_handle():
        raise KeyboardInterrupt


def further_ones_ignored() -> None:
    """Ignore both signals from here on: the process ends in a moment."""
    if _may_handle():
        for number in (*ENDING, *filter(None, [AGAIN])):
            signal.signal(number, signal.SIG_IGN)


_goes_on: list[Callable[[], Any]] = []  # what waits for computations that nobody waits for


def goes_on(wait: Callable[[], Any]) -> None:
    """Note that XLA still computes in its threads what an interrupted call has begun.

    Args:
      wait: returns once that is over.
    """
    _goes_on.append(wait)


def end_in_order() -> None:
    """End what XLA still computes before JAX is taken down, which ends the process by a fault.

    For `atexit`. A script that Ctrl-C has ended is ended here as Python would end it in a moment;
    else what goes on is waited for, and Ctrl-C ends that wait and the process.
    """
    try:
        if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
            _end_interrupted()
        for wait in _goes_on:
            with contextlib.suppress(Exception):
                wait()
        for thread in list(_threads):
            thread.join()
    except KeyboardInterrupt:
        _end_interrupted()


def _end_interrupted():
    """End the process at once as an interrupted one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _flush()
    os.kill(os.getpid(), signal.SIGINT)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


class Held:
    """What a block of `held_back` has received, and what handles it."""

    def __init__(self, saying: str) -> None:
        self._saying = saying
        handlers = {number: signal.getsignal(number) for number in ENDING} if _may_handle() else {}
        self.handlers = {number: one for number, one in handlers.items() if callable(one)}
        self.received: list[signal.Signals] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Hold back a signal; handle a second one."""
        self.received.append(signal.Signals(number))
        if len(self.received) > 1:
            handler = self.handlers[self.received[-1]]
            if isinstance(handler, Interrupts):
                handler.first = handler.first or self.received[0]
            self.handle(frame)
        elif self._saying and not _awaiting:
            _say(self._saying)

    def handle(self, frame: FrameType | None = None) -> None:
        """Handle what was received, once."""
        if self.received:
            number = self.received[-1]
            self.received.clear()
            self.handlers[number](number, frame)


_held: list[Held] = []  # of `held_back` in the main thread, the innermost last
_awaiting: list[object] = []  # what the main thread waits for in `result_of`


def _say(text: str) -> None:
    """Print a line; the buffer of the stream may be in use at the moment."""
    with contextlib.suppress(RuntimeError, OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def held_back(saying: str = "") -> Generator[None]:
    """Hold back a signal until the block ends; a second one is handled at once.

    Args:
      saying: a line that the first signal prints, for a block that takes long.

    In threads other than the main one it does nothing: Python handles no signals there.
    """
    held = Held(saying)
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


def handle_held() -> None:
    """Handle a signal that is held back, between two parts that nothing interrupts."""
    if _held:
        _held[-1].handle()


def waited_for(function: Callable[[], T]) -> T:
    """What a function returns, which is called in a thread of its own.

    A signal ends the wait at once, also one that is held back; the thread goes on. Not for a
    function that depends on what belongs to a thread.
    """
    if not _may_handle():
        return function()
    handle_held()  # else what it would wait for is begun first
    try:
        made = begun(function)
    except RuntimeError:  # the process is about to end
        return function()
    return result_of(made)


_threads: set[threading.Thread] = set()  # of `begun`, at work


def begun(function: Callable[[], T]) -> "Future[T]":
    """What a function will return, which is called in a thread of its own from now on.

    The thread keeps no process from ending that Ctrl-C ends, see `end_in_order`.
    """
    from concurrent.futures import Future

    made: Future[T] = Future()
    threading.Thread(target=_settle, args=(made, function), daemon=True).start()
    return made


def _settle(made, function):
    _threads.add(threading.current_thread())
    try:
        made.set_result(function())
    except BaseException as error:
        made.set_exception(error)
    finally:
        _threads.discard(threading.current_thread())


def result_of(made: "Future[T]") -> T:
    """What a thread compiles; a signal ends the wait at once, also one that is held back.

    Nothing ends the thread. So a line says that it goes on, unless the process is a command, which
    ends.
    """
    _awaiting.append(made)
    try:
        return _awaited(made)
    except KeyboardInterrupt:
        if not (made.done() or _blocks):
            _say(COMPILES)
        raise
    finally:
        _awaiting.remove(made)


def _awaited(made: "Future[T]") -> T:
    while True:
        with contextlib.suppress(TimeoutError):
            made.exception(LOOK_SECONDS)
        if made.done():
            return made.result()
        handle_held()
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
