"""The folder of a sweep: one sweep writes there at a time, and no results are lost in silence."""

import contextlib
import functools
import hashlib
import json
import os
import socket
from pathlib import Path
from typing import NamedTuple

from ..engine.multihost import team_of
from .dataset import read_ours
from .description import attributes, digests_of, in_words, lost

try:
    import fcntl
except ImportError:  # Windows, where nothing keeps two sweeps apart
    fcntl = None

LOCK = ".sweep.lock"
RESULTS, FIGURE, CLAIMS = "results.nc", "figure.png", "claims.json"


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
def for_results(out, plan, cells, *, force=False, experiment="", shard=(1, 1), devices=None):
    """The `Folder` at `out`, made and locked, whose results those of a `Sweep` may replace.

    Args:
      out: a path.
      plan, cells: the `Sweep` and what `check` made of it.
      force: whether the results of another sweep are replaced; a `results.nc` that no sweep has
        written is not even then.
      experiment: title of the experiment that the sweep belongs to.
      shard, devices: as in `run`; of several processes that share the work the first one locks.
    Raises:
      ValueError: another sweep is at work there, or has left results there; says what differs.
    """
    out = Path(out)
    lock = functools.partial(locked, out, cells, shared=shard[1] > 1)
    with team_of(devices).leading(lock):
        yield _folder(out, plan, cells, force, experiment)


def _folder(out, plan, cells, force, experiment):
    file = out / RESULTS
    with read_ours(file) as dataset:
        if dataset is None:
            others = [name for name in (FIGURE, CLAIMS) if (out / name).exists()]
            if others and not force:
                raise ValueError(
                    f"{out / others[0]}: no sweep has left results beside it, so it is not "
                    "overwritten; --force does"
                )
            return Folder(out, replaced=bool(others))
        new = attributes(plan) | {"data": digests_of(cells), "experiment": experiment}
        differences = lost(dataset, plan, new)
        if not differences:
            return Folder(out, int(dataset.attrs["replications"]))
    if not force:
        raise ValueError(
            f"{file}: it holds another sweep ({in_words(differences)}) and is not overwritten; "
            "--force does, or name another folder"
        )
    return Folder(out, replaced=True)


def discard_claims(folder):
    """Remove claims about results that were replaced by those of no experiment."""
    if folder.replaced:
        (folder.path / CLAIMS).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder, cells, *, shared=False):
    """Keep other sweeps out of a folder; shards of one sweep may share it.

    A folder that cannot be written to is not locked: what is stored there can be read.

    Raises:
      ValueError: another process has it, or it is no folder.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"out: {folder}: {error.strerror}") from None
    descriptor = _descriptor(folder, cells, shared) if fcntl is not None else None
    try:
        yield
    finally:
        if descriptor is not None:
            _release(folder, descriptor)


def _descriptor(folder, cells, shared):
    path, names = Path(folder) / LOCK, sorted({cell.identity for cell in cells if cell is not None})
    mine = hashlib.sha256("\n".join(names).encode()).hexdigest()
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return None
        try:
            if not _lock(descriptor, mine, shared):
                raise ValueError(
                    f"out: {folder} is in use by another sweep ({_holder(descriptor)})"
                )
            with contextlib.suppress(FileNotFoundError):
                # Who had the lock before may have removed the file meanwhile.
                if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor, mine, shared):
    """Whether the lock is ours; the first of several that share it writes down whose it is."""
    try:
        if _took(descriptor, fcntl.LOCK_EX):
            holder = {"process": os.getpid(), "host": socket.gethostname(), "sweep": mine}
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(holder).encode(), 0)
            return not shared or _took(descriptor, fcntl.LOCK_SH)
        if not shared:
            return False
        return _took(descriptor, fcntl.LOCK_SH) and _read(descriptor).get("sweep") == mine
    except OSError:  # a file system without locks
        return True


def _took(descriptor, kind):
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor):
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _holder(descriptor):
    known = _read(descriptor)
    return f"process {known.get('process', '?')} on {known.get('host', '?')}"


def _release(folder, descriptor):
    """Remove the file unless another shard still holds it."""
    with contextlib.suppress(OSError):
        if _took(descriptor, fcntl.LOCK_EX):
            (Path(folder) / LOCK).unlink()
    os.close(descriptor)
