"""Work in several threads at once, whose results one thread takes."""

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

from .interrupts import LOOK_SECONDS, goes_on, raise_if_lost
from .jax_options import pinned

T = TypeVar("T")

END: Any = object()  # what a thread gives last
NAME = "jaxbandits"  # of each thread
PATIENCE_SECONDS = 0.2  # that each thread is waited for after an interrupt
MOST_RESULTS = 4  # that wait: they would pile up where the caller is slower


def merged(iterators: Iterable[Iterator[T]]) -> Generator[T]:
    """Yield what several iterators give, as it comes; a thread of its own advances each.

    When one raises, when the caller is interrupted, and when this iterator is closed, the others
    end after what they are at, and are waited for, for a moment alone after an interrupt. So no
    thread plays on behind the back of the caller, who should close the iterator
    (`contextlib.closing`). JAX's options are pinned in each
    thread, as JAX has them for each thread by itself.

    Raises:
      BaseException: the first error of an iterator.
    """
    results: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(MOST_RESULTS)
    stopped, threads, patience = threading.Event(), [], None

    def give(item: Any, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                results.put((item, error), timeout=LOOK_SECONDS)
                break

    def advance(iterator: Iterator[T]) -> None:
        try:
            with pinned():
                for item in iterator:
                    give(item)
                    if stopped.is_set():
                        return
        except BaseException as error:
            give(END, error)
        else:
            give(END)

    try:
        for iterator in iterators:  # each begins while the next one is made
            # One that an interrupt leaves behind keeps no process from ending, see `goes_on`.
            threads.append(
                threading.Thread(target=advance, name=NAME, args=(iterator,), daemon=True)
            )
            threads[-1].start()
        running = len(threads)
        while running:
            item, error = _next(results)
            if error is not None:
                raise error
            if item is END:
                running -= 1
            else:
                yield item
    except KeyboardInterrupt:
        patience = PATIENCE_SECONDS
        raise
    finally:
        stopped.set()
        for thread in threads:
            if thread.ident is not None:  # else a signal came before it was started
                thread.join(patience)
                if thread.is_alive():
                    goes_on(thread.join)


def _next(results: "queue.Queue[T]") -> T:
    """The next item; signals are looked for while it is waited for."""
    while True:
        raise_if_lost()
        with contextlib.suppress(queue.Empty):
            return results.get(timeout=LOOK_SECONDS)
