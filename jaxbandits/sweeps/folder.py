"""The folder of a sweep: one sweep writes there at a time, and results are replaced on demand."""

import contextlib
import functools
import hashlib
import json
import os
import socket
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..engine.multihost import team_of
from ..system import locks
from ..system.data_files import Unreadable, parsed
from ..system.files import remove_partial
from .cells import Cell
from .dataset import read_ours
from .description import attributes, facts_of, in_words, lost
from .spec import Sweep
from .store import CELLS

LOCK = ".sweep.lock"
RESULTS, CLAIMS = "results.nc", "claims.json"
# A shard that begins or ends has the lock alone for a moment, which is no reason to refuse another.
SHARING_SECONDS, RETRY_SECONDS = 1.0, 0.02
LONGEST_HOST = 253  # letters that the name of a machine can have
BESIDE = ("figure.png", "figure.svg", "figure.pdf", "table.csv")  # what is written with results


class Folder(NamedTuple):
    """A folder that is locked.

    Attributes:
      path: where it is.
      earlier: replications of the results that it holds of the same sweep, 0 where none.
      replaced: whether it holds results of another sweep, which are to be replaced.
    """

    path: Path
    earlier: int = 0
    replaced: bool = False


@contextlib.contextmanager
def for_results(
    out: Path | str,
    plan: Sweep,
    cells: Sequence[Cell | None],
    *,
    force: bool = False,
    experiment: str = "",
    shard: tuple[int, int] = (1, 1),
    devices: Any = None,
) -> Generator[Folder]:
    """The `Folder` at `out`, made and locked, whose results those of a `Sweep` may replace.

    Args:
      out: a path.
      plan, cells: the `Sweep` and what `check` made of it.
      force: whether the results of another sweep are replaced. A `results.nc` that was not written
        by a sweep is never replaced.
      experiment: title of the experiment that the sweep belongs to.
      shard, devices: as in `run`; of several processes that share the work the first one locks.
    Raises:
      ValueError: another sweep is running there, or has left results there; says what differs.
    """
    out = Path(out)
    lock = functools.partial(locked, out, cells, shared=shard[1] > 1)
    with team_of(devices).leading(lock):
        yield _folder(out, plan, cells, force, experiment)


def _folder(
    out: Path, plan: Sweep, cells: Sequence[Cell | None], force: bool, experiment: str
) -> Folder:
    file = out / RESULTS
    others = [name for name in (*BESIDE, CLAIMS) if (out / name).exists()]
    with contextlib.ExitStack() as files:
        try:
            dataset = files.enter_context(read_ours(file))
        except ValueError as error:  # without it the others would be refused in the next run
            raise ValueError(f"{error}{_together(others)}") from None
        if dataset is None:
            if others and not force:
                raise ValueError(
                    f"{out / others[0]}: no sweep has left results beside it, so it is not "
                    f"overwritten; --force does, or move it away{_together(others[1:])}"
                )
            return Folder(out, replaced=bool(others))
        new = attributes(plan) | facts_of(cells) | {"experiment": experiment}
        differences = lost(dataset, plan, new)
        if not differences:
            return Folder(out, int(dataset.attrs["replications"]))
    if not force:
        raise ValueError(
            f"{file}: it holds another sweep ({in_words(differences)}) and is not overwritten; "
            "--force does (cells that are stored stay), or name another folder"
        )
    return Folder(out, replaced=True)


def _together(others: Sequence[str]) -> str:
    """The other files that have to be moved away."""
    return f", and {', '.join(others)} with it" if others else ""


def discard_claims(folder: Folder) -> None:
    """Remove the claims of an experiment whose results a plain sweep has replaced."""
    if folder.replaced:
        (folder.path / CLAIMS).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(
    folder: Path | str, cells: Sequence[Cell | None], *, shared: bool = False
) -> Generator[None]:
    """Keep other sweeps out of a folder; shards of one sweep may share it.

    A folder that cannot be written to is not locked: what is stored there can be read. Where the
    platform has no file locks, nothing keeps two sweeps apart.

    Raises:
      ValueError: another process has it, or it is no folder.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"out: {folder}: {error.strerror}") from None
    descriptor = _descriptor(folder, cells, shared) if locks.AVAILABLE else None
    try:
        if descriptor is not None:
            for place in (folder, Path(folder, CELLS)):
                remove_partial(place)
        yield
    finally:
        if descriptor is not None:
            _release(folder, descriptor)


def _descriptor(folder: Path | str, cells: Sequence[Cell | None], shared: bool) -> int | None:
    """The open and locked file, None where it cannot be made."""
    path, names = Path(folder) / LOCK, sorted({cell.identity for cell in cells if cell is not None})
    mine = hashlib.sha256("\n".join(names).encode()).hexdigest()
    deadline = time.monotonic() + (SHARING_SECONDS if shared else 0.0)
    while True:
        try:
            descriptor = locks.opened(path)
        except OSError:
            return None
        except Unreadable as error:
            raise ValueError(f"out: {path} cannot be the lock of the folder: {error}") from None
        try:
            ours = _lock(descriptor, mine, shared)
            if not ours and time.monotonic() >= deadline:
                raise ValueError(
                    f"out: {folder} is in use by another sweep ({_holder(descriptor)})"
                )
            # The process that had the lock before may have removed the file meanwhile.
            if ours and locks.is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not ours:
            time.sleep(RETRY_SECONDS)


def _lock(descriptor: int, mine: str, shared: bool) -> bool:
    """Whether the lock is ours; the first of several that share it writes down whose it is."""
    try:
        alone = _took(descriptor)
        if alone:
            holder = {"process": os.getpid(), "host": socket.gethostname(), "sweep": mine}
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        if not shared:
            return alone
        # Another sweep may have had the file between the two locks.
        return _took(descriptor, shared=True) and _read(descriptor).get("sweep") == mine
    except OSError:  # a file system without locks
        return True


def _took(descriptor: int, *, shared: bool = False) -> bool:
    try:
        locks.lock(descriptor, shared=shared)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> dict[str, Any]:
    """What the holder of the lock has written down."""
    try:
        found = parsed(os.pread(descriptor, 4096, 0))
    except Unreadable:
        return {}
    return found if isinstance(found, dict) else {}


def _holder(descriptor: int) -> str:
    match _read(descriptor):
        case {"process": int(process), "host": str(host)} if host.isprintable():
            return f"process {process} on {host[:LONGEST_HOST]}"
    return "process ? on ?"


def _release(folder: Path | str, descriptor: int) -> None:
    """Remove the file unless another shard still holds it."""
    with contextlib.suppress(OSError):
        if _took(descriptor):
            (Path(folder) / LOCK).unlink()
    os.close(descriptor)
