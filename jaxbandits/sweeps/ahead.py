"""Programs of the groups to come, compiled while the present one is played."""

import os
from concurrent.futures import ThreadPoolExecutor

MOST = 3  # at once: more would wait for one another, as half of the work is in Python


class Ahead:
    """Makes what a list of functions makes, in their order, a few ahead of whoever takes it.

    Compiling keeps one core busy, and lets other threads go on: eight programs of GSE took 25
    seconds instead of 44 on two cores. What is made waits in memory until it is taken, so no more
    are begun than there are threads. Without threads each is made when it is taken.
    """

    def __init__(self, makers, threads=None):
        self._makers = list(makers)
        self._threads = min(MOST, os.cpu_count() or 1) if threads is None else threads
        self._pool = ThreadPoolExecutor(max(1, self._threads))
        self._begun = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # What compiles cannot be stopped: who interrupts does not wait for it.
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def take(self, number):
        """What the function of this number made; each is taken once, in order."""
        if not self._threads:
            return self._makers[number]()
        last = min(number + self._threads, len(self._makers))
        for i in range(number, last):
            if i not in self._begun:
                self._begun[i] = self._pool.submit(self._makers[i])
        return self._begun.pop(number).result()
