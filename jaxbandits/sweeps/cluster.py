"""Cells of a sweep on the workers of a running dask scheduler.

The work is cut into pieces, some replications of one group of cells each. Workers return the
runs of a piece and keep nothing, so one that is killed costs the pieces it was working on: the
scheduler gives them to another. What is returned is stored by the process that asked for it.
"""

import contextlib
import math
import socket
import time
import warnings
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..engine.results import Runs
from ..system.progress import Progress
from ..version import VERSION
from .cell_progress import Keep, Work, continued
from .groups import Group
from .spec import Sweep

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
# Numbers of the replications of a piece, by the number of the cell in its group.
Piece: TypeAlias = dict[int, list[int]]

LEAST, MOST = 256, 4_096  # replications of a piece: fewer leave lanes idle, more are much to lose
PER_LANE = 4  # or so many for each lane, where the caller says how many lanes
PER_THREAD = 4  # pieces for each thread of the workers, so that all end at about the same time
THREADS = 16  # to expect at least: a cluster may grow
CONNECT_SECONDS = 10.0


def run(
    cluster: Any, plan: Sweep, work: Work, keep: Keep, display: Progress, how: dict[str, Any]
) -> None:
    """Simulate the open cells of all groups until they are complete.

    Args:
      cluster: address of a scheduler, or a `distributed.Client`.
      plan: the `Sweep`.
      work: the groups, with the cells of each that are not complete.
      keep: what takes the runs that are returned.
      display: shows the progress.
      how: options of the `Simulation`.
    Raises:
      ValueError: no such scheduler, workers of another version, or work that ends its workers.
    """
    with _connected(cluster) as client:
        if not client.nthreads():
            text = "cluster: the scheduler has no worker yet; the sweep waits for one"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        _Pieces(client, plan, work, keep, how).run(display)


class _Pieces:
    """The pieces that were submitted, and how many of them each cell waits for."""

    def __init__(
        self, client: "Client", plan: Sweep, work: Work, keep: Keep, how: dict[str, Any]
    ) -> None:
        self._client, self._plan, self._work, self._keep, self._how = client, plan, work, keep, how
        self._size = _size(client, work, how.get("batch"))
        # Held by a task, and not scattered, because what a dead worker held is made again.
        self._groups = [client.submit(_unchanged, group, pure=False) for group, _ in work]
        self._submitted: dict[Future, tuple[int, tuple[int, ...]]] = {}
        self._awaited: dict[tuple[int, int], int] = {}

    def run(self, display: Progress) -> None:
        """Submit what is missing, and keep what is returned, until nothing is missing."""
        from distributed import as_completed

        total = self._plan.replications * sum(len(open_cells) for _, open_cells in self._work)
        display.show("the cluster", 0, total)
        futures = as_completed(loop=self._client.loop)
        try:
            # No list of them: a piece is forgotten, here and by its worker, once it is kept.
            for index, (_, open_cells) in enumerate(self._work):
                futures.update(self._submit(index, list(open_cells)))
            for future in futures:
                futures.update(self._take(future))
                del future
                done = sum(len(f) for _, open_cells in self._work for f in open_cells.values())
                display.show("the cluster", done, total)
        finally:
            self._client.cancel([*self._submitted, *self._groups])

    def _submit(self, index: int, numbers: Iterable[int]) -> "list[Future]":
        """Pieces for all that these cells of a group miss."""
        open_cells, submitted = self._work[index][1], []
        how = continued(open_cells, self._how)
        going = [n for n in numbers if open_cells[n].result is None]
        waiting = [(n, r) for n in going for r in open_cells[n].missing()]
        for first in range(0, len(waiting), self._size):
            piece: Piece = {}
            for number, replication in waiting[first : first + self._size]:
                piece.setdefault(number, []).append(replication)
            future = self._client.submit(
                run_piece, VERSION, self._plan, self._groups[index], piece, how, pure=False
            )
            self._submitted[future] = index, tuple(piece)
            for number in piece:
                self._awaited[index, number] = self._awaited.get((index, number), 0) + 1
            submitted.append(future)
        return submitted

    def _take(self, future: "Future") -> "list[Future]":
        """Keep the runs of a piece; the next pieces of cells whose rules want more."""
        index, numbers = self._submitted.pop(future)
        open_cells, ready = self._work[index][1], []
        for number, runs in _result(future).items():
            self._keep(open_cells[number], runs)
        for number in numbers:
            self._awaited[index, number] -= 1
            if not self._awaited[index, number]:
                ready.append(number)
        return self._submit(index, ready)


def _result(future: "Future") -> dict[int, Runs]:
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


def run_piece(
    version: str, plan: Sweep, group: Group, waiting: Piece, how: Mapping[str, Any]
) -> dict[int, Runs]:
    """`Runs` by cell of a group; what a worker does."""
    if version != VERSION:
        raise ValueError(f"cluster: a worker has jaxbandits {VERSION}, not {version}")
    simulation = group.simulation(plan, sum(map(len, waiting.values())), **how)
    return simulation.run(waiting, lambda done, total: None)


def _unchanged(x: T) -> T:
    return x


def _size(client: "Client", work: Work, batch: int | None) -> int:
    """Replications of a piece; more workers may still join."""
    threads = max(THREADS, sum(client.nthreads().values()))
    total = sum(len(f.missing()) for _, open_cells in work for f in open_cells.values())
    least = max(LEAST, PER_LANE * (batch or 0))
    return max(least, min(MOST, math.ceil(total / (PER_THREAD * threads))))


@contextlib.contextmanager
def _connected(cluster: Any) -> "Generator[Client]":
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
        _check_reachable(cluster)
        client = Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"cluster: no scheduler at {cluster!r} ({error})") from None
    with client:
        yield client


def _check_reachable(cluster: Any) -> None:
    """Raise unless something answers at an address: a client that finds nothing hangs on exit."""
    from distributed.comm import get_address_host_port, parse_address

    if not isinstance(cluster, str) or parse_address(cluster)[0] not in ("tcp", "tls"):
        return
    address, end = get_address_host_port(cluster), time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
