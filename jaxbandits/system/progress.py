"""How far a long task is, on standard error: bars on a terminal, lines elsewhere.

By `rich` where it is installed, else as one line of text.
"""

import contextlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

# A callable `(done, total)`; called with `done` None in the end.
Report: TypeAlias = Callable[[int | None, int], None]

LONG_SECONDS = 120.0  # that a task still takes, from which a line says so
KNOWN_SECONDS = 20.0  # of play before its speed is taken as known
AUTOMATIC_SECONDS = 1.0  # of a task before its progress is shown, where nobody has asked for it
LEAST_TITLE, BESIDE_TITLE = 12, 55  # columns of a terminal: for a title, and for all beside it


def on_screen() -> bool:
    """Whether bars can be shown: on a terminal, or in a notebook with widgets; in no pipe."""
    if "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None:
        from IPython import get_ipython  # a kernel has it

        if type(get_ipython()).__name__ == "ZMQInteractiveShell":
            return True
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """A context that shows how far a task is, and which of its items are finished.

    Args:
      shown: whether anything is shown; None: where there are bars, after `AUTOMATIC_SECONDS`.
      items: what the task consists of ("cells"), "" for a task without items.
      number: how many items there are.
      begun: says what is done of the items that are not finished, "" where nothing is; for the line
        that an interrupt leaves.

    Attributes:
      has_bars: whether there are bars: on a terminal, or in a notebook with widgets.
    """

    def __init__(
        self,
        shown: bool | None = True,
        *,
        items: str = "",
        number: int = 0,
        begun: Callable[[], str] = str,
    ) -> None:
        self._shown, self._number, self._finished, self._title = bool(shown), number, 0, ""
        self._what, self._begun = items, begun
        self._asked = shown is True
        self._latest: tuple[str, int, int | None] | None = None  # of `show`
        self._changing = threading.RLock()  # a timer shows it in its own thread
        self._timer: threading.Timer | None = None
        self._console: Console | None = None
        self._bars: Bars | None = None
        self._items: TaskID | None = None
        self._running: TaskID | None = None
        self.has_bars: bool = False
        if shown:
            self._begin()
        elif shown is None and on_screen():
            self._timer = threading.Timer(AUTOMATIC_SECONDS, self._begin_late)
            self._timer.daemon = True
            self._timer.start()

    def _begin(self) -> None:
        with contextlib.suppress(ImportError):
            self._open(self._what)
        self.has_bars = self._bars is not None

    def _begin_late(self) -> None:
        with self._changing:
            if self._timer is None:  # closed meanwhile
                return
            self._shown = True
            self._begin()
            if self._bars is not None and self._items is not None:
                self._bars.update(self._items, completed=self._finished)
            if self._latest is not None:
                self.show(*self._latest)

    def _open(self, items: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        notebook = self._console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
        if not (self._console.is_terminal or notebook):
            return
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        if items:
            self._items = self._bars.add_task(items, total=self._number)
        self._bars.start()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if self._asked and self._what and kind is not None and issubclass(kind, KeyboardInterrupt):
            finished = f"{self._finished} of {self._number} {self._what} are finished"
            self.line(", ".join(filter(None, [finished, self._begun()])))

    def close(self) -> None:
        """Remove the bars."""
        if self._timer is not None:
            self._timer.cancel()
        with self._changing:
            self._timer = None
            if self._bars is not None:
                self._bars.stop()
            elif self._is_plain and self._title:
                print(file=sys.stderr, flush=True)

    def show(self, title: str, done: int, total: int | None) -> None:
        """Show that `done` of `total` parts are done of the item that is running now."""
        with self._changing:
            self._latest = title, done, total
            if self._shown:
                self._show(title, done, total)

    def _show(self, title: str, done: int, total: int | None) -> None:
        changed, self._title = title != self._title, title
        if self._is_plain and total is not None:
            print(f"\r{title} {done}/{total}", end="", file=sys.stderr, flush=True)
        if self._bars is None or self._console is None:
            return
        room = max(LEAST_TITLE, self._console.width - BESIDE_TITLE)
        title = title if len(title) <= room else title[: room - 1] + "…"
        if self._running is None:
            self._running = self._bars.add_task(title, total=total)
        elif changed:
            self._bars.reset(self._running, description=title, total=total)
        self._bars.update(self._running, completed=done, total=total)

    def wait(self, text: str) -> None:
        """Show what the task waits for, until the next call of `show`."""
        with self._changing:
            if self.has_bars or not self._shown:
                self.show(text, 0, None)
            else:
                self.line(text)

    def finish(self, text: str) -> None:
        """Note in a line that an item is finished."""
        self._finished += 1
        if self._bars is not None and self._items is not None:
            self._bars.update(self._items, completed=self._finished)
        self.line(f"{self._finished}/{self._number} {text}")

    def line(self, text: str) -> None:
        """Show a line of text, which stays."""
        if self._console is not None:
            self._console.print(text, markup=False)
        elif self._is_plain:
            print(f"\r{text}", file=sys.stderr, flush=True)

    @property
    def _is_plain(self) -> bool:
        """Whether progress is shown without `rich`."""
        return self._shown and self._console is None


def in_words(seconds: float) -> str:
    """A time of some minutes or more.

    >>> in_words(430.0), in_words(7000.0), in_words(10_000.0)
    ('7 minutes', '117 minutes', '2.8 hours')
    """
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


class Bar:
    """One bar: a callable `(done, total)`; `done` None removes it.

    Where minutes are left a line says so, once, and that an interrupt loses nothing.

    Args:
      title: of the bar, what the task consists of.
      shown: as in `Progress`.
      task: the task, for that line.
    """

    def __init__(self, title: str, shown: bool | None = True, task: str = "") -> None:
        self._title, self._task, self._progress = title, task, Progress(shown)
        self._first: tuple[int, float] | None = None  # what was done at first, and when
        self._said = False

    def __call__(self, done: int | None, total: int) -> None:
        """Show how far the task is, or remove the bar."""
        if done is None:
            self._progress.close()
            return
        self._progress.show(self._title, done, total)
        left = self._seconds_left(done, total)
        if left is not None and left >= LONG_SECONDS and not self._said:
            self._said = True
            more = f"about {in_words(left)} more for {total:,} {self._title}"
            self._progress.line(f"{self._task}: {more}; Ctrl-C returns those that are done")

    def _seconds_left(self, done, total):
        """By the speed since the first call, which comes after some play; None at the beginning."""
        now = time.monotonic()
        if self._first is None:
            self._first = done, now
        before, began = self._first
        if done == before or now - began < KNOWN_SECONDS:
            return None
        return (total - done) * (now - began) / (done - before)

    def wait(self, text: str) -> None:
        """Show what the task waits for, until the next call."""
        self._progress.wait(text)
