"""Cells of a sweep on the workers of a running dask scheduler.

The work is cut into pieces, some replications of one group of cells each. Workers return the
runs of a piece and keep nothing, so one that is killed costs the pieces it was at: the
scheduler gives them to another. What comes back is stored by the process that asked for it.
"""

import contextlib
import math
import socket
import time
import warnings

from ..version import VERSION

LEAST, MOST = 256, 4_096  # replications of a piece: fewer leave lanes idle, more are long to lose
FILLS = 4  # or so many for each lane, where the caller says how many lanes
SHARE = 4  # pieces for each thread of the workers, so that all end at about the same time
THREADS = 16  # to expect at least: a cluster may grow
CONNECT_SECONDS = 10.0


def play(cluster, plan, work, keep, display, how):
    """Play the cells of `work` until all are whole.

    Args:
      cluster: address of a scheduler, or a `distributed.Client`.
      plan: the `Sweep`.
      work: `(Group, open_cells by number of the cell)`.
      keep: a callable `(open_cell, runs)` for what comes back.
      display: a `Display`.
      how: options of the `Simulation`.
    Raises:
      ValueError: no such scheduler, workers of another version, or work that ends its workers.
    """
    with _connected(cluster) as client:
        if not client.nthreads():
            told = "cluster: the scheduler has no worker yet; the sweep waits for one"
            warnings.warn(told, RuntimeWarning, stacklevel=2)
        total = plan.replications * sum(len(open_cells) for _, open_cells in work)
        report = display.start("the cluster", total)
        _Field(client, plan, work, keep, how).reap(report, total)


class _Field:
    """The pieces that are out, and how many of them each cell waits for."""

    def __init__(self, client, plan, work, keep, how):
        self._client, self._plan, self._work, self._keep, self._how = client, plan, work, keep, how
        self._size = _size(client, work, how.get("batch"))
        # Held by a task, and not scattered, because what a dead worker held is made again.
        self._groups = [client.submit(_itself, group, pure=False) for group, _ in work]
        self._out, self._awaited = {}, {}

    def reap(self, report, total):
        """Send out what is missing, and keep what comes back, until nothing is missing."""
        from distributed import as_completed

        coming = as_completed(loop=self._client.loop)
        try:
            # No list of them: a piece is forgotten, here and by its worker, once it is kept.
            for place, (_, open_cells) in enumerate(self._work):
                coming.update(self._sow(place, list(open_cells)))
            for future in coming:
                coming.update(self._take(future))
                del future
                report(
                    sum(len(f) for _, open_cells in self._work for f in open_cells.values()), total
                )
        finally:
            self._client.cancel([*self._out, *self._groups])

    def _sow(self, place, numbers):
        """Pieces for all that these cells of a group miss."""
        open_cells, sown = self._work[place][1], []
        going = [n for n in numbers if open_cells[n].found is None]
        waiting = [(n, r) for n in going for r in open_cells[n].missing()]
        for first in range(0, len(waiting), self._size):
            piece = {}
            for number, replication in waiting[first : first + self._size]:
                piece.setdefault(number, []).append(replication)
            future = self._client.submit(
                play_piece, VERSION, self._plan, self._groups[place], piece, self._how, pure=False
            )
            self._out[future] = place, tuple(piece)
            for number in piece:
                self._awaited[place, number] = self._awaited.get((place, number), 0) + 1
            sown.append(future)
        return sown

    def _take(self, future):
        """Keep the runs of a piece; the next pieces of cells that go on after a look."""
        place, numbers = self._out.pop(future)
        open_cells, ready = self._work[place][1], []
        for number, runs in _result(future).items():
            self._keep(open_cells[number], runs)
        for number in numbers:
            self._awaited[place, number] -= 1
            if not self._awaited[place, number]:
                ready.append(number)
        return self._sow(place, ready)


def _result(future):
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()
    except KilledWorker as error:
        died = f"cluster: a piece of work ended every worker that took it ({error})"
        raise ValueError(died) from None
    except FutureCancelledError as error:
        there = future.client is not None and future.client.status == "running"
        what = "the work was cancelled" if there else "the scheduler is gone"
        raise ValueError(f"cluster: {what} ({error}); what came back is stored") from None


def play_piece(version, plan, group, waiting, how):
    """`Runs` by cell of a group; what a worker does."""
    if version != VERSION:
        raise ValueError(f"cluster: a worker has jaxbandits {VERSION}, not {version}")
    simulation = group.simulation(plan, sum(map(len, waiting.values())), **how)
    return simulation.run(waiting, lambda done, total: None)


def _itself(x):
    return x


def _size(client, work, batch):
    """Replications of a piece; workers may still be on their way."""
    threads = max(THREADS, sum(client.nthreads().values()))
    total = sum(len(f.missing()) for _, open_cells in work for f in open_cells.values())
    least = max(LEAST, FILLS * (batch or 0))
    return max(least, min(MOST, math.ceil(total / (SHARE * threads))))


@contextlib.contextmanager
def _connected(cluster):
    """A client of the scheduler; one that was given stays open."""
    try:
        from distributed import Client
    except ImportError:
        wanted = "cluster needs the package distributed: pip install 'jaxbandits[cluster]'"
        raise ValueError(wanted) from None
    if isinstance(cluster, Client):
        yield cluster
        return
    try:
        _knock(cluster)
        client = Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"cluster: no scheduler at {cluster!r} ({error})") from None
    with client:
        yield client


def _knock(cluster):
    """Raise unless something answers at an address: a client that finds nothing hangs on exit."""
    from distributed.comm import get_address_host_port, parse_address

    if not isinstance(cluster, str) or parse_address(cluster)[0] not in ("tcp", "tls"):
        return None
    where, end = get_address_host_port(cluster), time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            return socket.create_connection(where, timeout=CONNECT_SECONDS).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
