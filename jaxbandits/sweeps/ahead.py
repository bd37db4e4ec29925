"""Programs of the next groups, compiled while the present one is simulated."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar

from ..system.interrupts import begun, result_of

T = TypeVar("T")

PATIENCE_SECONDS = 0.3  # before a wait is told of: programs that are kept are there at once
MOST = 3  # at once: more would wait for one another, as half of the work is in Python


class Ahead(Generic[T]):
    """Makes what a list of functions makes, in their order, a few ahead of the one that is taken.

    Compiling keeps one core busy, and lets other threads go on: eight programs of GSE took 25
    seconds instead of 44 on two cores. What is made waits in memory until it is taken, so no more
    are begun than there are threads. Without threads each is made when it is taken.
    """

    def __init__(self, makers: Iterable[Callable[[], T]], threads: int) -> None:
        self._makers, self._threads = list(makers), threads
        self._begun: dict[int, Future[T]] = {}

    def __enter__(self) -> "Ahead[T]":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A compilation cannot be stopped, so an interrupt does not wait for it.
        for made in self._begun.values() if kind is None else ():
            made.exception()

    def take(self, number: int, waiting: Callable[[], None] = lambda: None) -> T:
        """What the function of this number made; each is taken once, in order.

        Args:
          number: which.
          waiting: called once it is clear that the caller has to wait.
        """
        if not self._threads:
            waiting()
            return self._makers[number]()
        last = min(number + self._threads, len(self._makers))
        for i in range(number, last):
            if i not in self._begun:
                self._begun[i] = begun(self._makers[i])
        made = self._begun.pop(number)
        try:
            return made.result(PATIENCE_SECONDS)
        except TimeoutError:
            if made.done():  # its own error
                raise
        waiting()
        return result_of(made)
