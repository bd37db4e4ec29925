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
from collections import Counter, deque
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Int

from ..engine.results import Runs
from ..messages import reason
from ..system.progress import Progress
from ..version import VERSION
from .cell_progress import Keep, Work, continued
from .groups import Group
from .spec import Sweep

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
# Numbers of the replications of a piece, by the number of the cell in its group.
Piece: TypeAlias = dict[int, Int[np.ndarray, " R"]]

LEAST = 256  # replications of a piece: fewer leave lanes idle
PER_LANE = 4  # or so many for each lane, where the caller says how many lanes
FIRST = 4_096  # at most, of the pieces of cells whose pieces have not been timed yet
PIECE_SECONDS = 20.0  # of a piece that was timed: a worker that is killed loses so much at most
PIECE_BYTES = 2**26  # of the results of a piece
PER_THREAD = 4  # pieces for each thread of the workers, so that all end at about the same time
IN_HAND = 2  # pieces that wait or run, for each thread
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
    """What is missing, the pieces that were submitted, and how many of them each cell waits for."""

    def __init__(
        self, client: "Client", plan: Sweep, work: Work, keep: Keep, how: dict[str, Any]
    ) -> None:
        self._client, self._plan, self._work, self._keep = client, plan, work, keep
        self._how = how | {"cores": how.get("cores") or 1}  # a worker gets a piece for each thread
        self._least = max(LEAST, PER_LANE * (how.get("batch") or 0))
        # Held by a task, and not scattered, because what a dead worker held is made again.
        self._groups = [client.submit(_unchanged, group, pure=False) for group, _ in work]
        self._submitted: dict[Future, tuple[int, tuple[int, ...]]] = {}
        self._awaited: Counter[tuple[int, int]] = Counter()
        # Of each group, the cells with what they miss, and what its latest piece cost.
        self._missing: list[deque[tuple[int, Int[np.ndarray, " R"]]]] = [deque() for _ in work]
        self._costs: dict[int, Cost] = {}

    def run(self, display: Progress) -> None:
        """Submit what is missing, and keep what is returned, until nothing is missing."""
        from distributed import as_completed

        total = self._plan.replications * sum(len(open_cells) for _, open_cells in self._work)
        display.show("the cluster", 0, total)
        futures = as_completed(loop=self._client.loop)
        try:
            # No list of them: a piece is forgotten, here and by its worker, once it is kept.
            for index, (_, open_cells) in enumerate(self._work):
                self._add(index, open_cells)
            futures.update(self._submit())
            for future in futures:
                futures.update(self._take(future))
                del future
                done = sum(len(f) for _, open_cells in self._work for f in open_cells.values())
                display.show("the cluster", done, total)
        finally:
            self._client.cancel([*self._submitted, *self._groups])

    def _add(self, index: int, numbers: Iterable[int]) -> None:
        """Note what these cells of a group miss."""
        for number in numbers:
            open_cell = self._work[index][1][number]
            if open_cell.result is None:
                self._missing[index].append((number, open_cell.missing()))

    def _submit(self) -> "list[Future]":
        """The next pieces, as many as keep the workers busy."""
        threads = max(THREADS, sum(self._client.nthreads().values()))
        submitted = []
        while len(self._submitted) < IN_HAND * threads and any(self._missing):
            index = next(i for i, missing in enumerate(self._missing) if missing)
            size, group = self._size(index, threads), self._groups[index]
            piece, how = self._cut(index, size), continued(self._work[index][1], self._how)
            future = self._client.submit(
                run_piece, VERSION, self._plan, group, piece, size, how, pure=False
            )
            self._submitted[future] = index, tuple(piece)
            self._awaited.update((index, number) for number in piece)
            submitted.append(future)
        return submitted

    def _size(self, index: int, threads: int) -> int:
        """Replications of the next piece of a group: a power of 2, so that few programs do."""
        left = sum(len(numbers) for missing in self._missing for _, numbers in missing)
        most, cost = math.ceil(left / (PER_THREAD * threads)), self._costs.get(index)
        if cost is None:
            most = min(most, FIRST)
        else:
            most = int(min(most, PIECE_SECONDS / cost.seconds, PIECE_BYTES / cost.bytes))
        return max(self._least, 1 << max(1, most).bit_length() - 1)

    def _cut(self, index: int, size: int) -> Piece:
        """The next replications of a group, `size` of them or what is left."""
        piece: Piece = {}
        missing = self._missing[index]
        while missing and size:
            number, replications = missing.popleft()
            piece[number], rest = replications[:size], replications[size:]
            size -= len(piece[number])
            if len(rest):
                missing.appendleft((number, rest))
        return piece

    def _take(self, future: "Future") -> "list[Future]":
        """Keep the runs of a piece; the next pieces, also of cells whose rules want more."""
        index, numbers = self._submitted.pop(future)
        found = _result(future)
        self._costs[index] = _cost(found.values())
        for number, runs in found.items():
            self._keep(self._work[index][1][number], runs)
        for number in numbers:
            self._awaited[index, number] -= 1
            if not self._awaited[index, number] and all(
                number != other for other, _ in self._missing[index]
            ):
                self._add(index, [number])
        return self._submit()


class Cost(NamedTuple):
    """What a replication costs."""

    seconds: float
    bytes: float  # of its results


def _cost(found: Iterable[Runs]) -> Cost:
    """The mean of the replications of a piece."""
    found = list(found)
    number = sum(map(len, found))
    seconds = sum(runs.meta["seconds"] for runs in found)
    tables = [table for runs in found for table in (runs.arm_pulls, runs.regret)]
    size = sum(table.nbytes for table in tables if table is not None)
    return Cost(max(seconds, 1e-6) / number, size / number + 100.0)  # 100 for all other results


def _result(future: "Future") -> dict[int, Runs]:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()
    except KilledWorker as error:
        died = f"cluster: a piece of work ended every worker that took it ({reason(error)})"
        raise ValueError(died) from None
    except FutureCancelledError as error:
        there = future.client is not None and future.client.status == "running"
        what = "the work was cancelled" if there else "the scheduler is gone"
        raise ValueError(f"cluster: {what} ({reason(error)}); what came back is stored") from None


def run_piece(
    version: str, plan: Sweep, group: Group, waiting: Piece, size: int, how: Mapping[str, Any]
) -> dict[int, Runs]:
    """`Runs` by cell of a group; what a worker does. The program is that of `size` replications."""
    if version != VERSION:
        raise ValueError(f"cluster: a worker has jaxbandits {VERSION}, not {version}")
    _check_code(group)
    simulation = group.simulation(plan, size, **how)
    return simulation.run(waiting, lambda done, total: None)


_checked: set[str] = set()  # cells, by identity: once played, functions may change what they read


def _check_code(group: Group) -> None:
    """Raise unless this worker has the user's code with which the cells are to be played."""
    new = [cell for cell in group.cells if cell.identity not in _checked]
    if other := sorted({table for cell in new for table in cell.other_code()}):
        raise ValueError(
            f"cluster: a worker has other code of yours behind {', '.join(other)} than the process "
            "that has begun the sweep; restart the workers"
        )
    _checked.update(cell.identity for cell in new)


def _unchanged(x: T) -> T:
    return x


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
        raise ValueError(f"cluster: no scheduler at {cluster!r} ({reason(error)})") from None
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
