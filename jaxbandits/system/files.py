"""Files that are there whole or not at all."""

import contextlib
import glob
import os
import re
import secrets
from collections.abc import Generator
from pathlib import Path

from . import locks
from .data_files import Unreadable, check_regular

LETTERS = 40  # of a file's name in that of the file that is to replace it
PARTIAL: re.Pattern[str] = re.compile(r"\..{1,40}-[0-9a-f]{8}\.partial", re.DOTALL)  # such a name


@contextlib.contextmanager
def replacing(path: Path | str, *, tidy: bool = True) -> Generator[Path]:
    """A new file beside `path` that takes its place, and is on disk, when the block ends.

    Where the block raises, `path` is as it was and the new file is removed. Errors of the system,
    such as a full disk, name `path`.

    Args:
      path: of a file that there need not be yet.
      tidy: whether to look for what killed processes have left beside it, see `remove_partial`;
        where many files lie in a folder, that is better done once for all of them.
    Raises:
      ValueError: something is there that is no file, such as `/dev/null`: it would be gone.
    """
    path = Path(path)
    try:
        _check_replaceable(path)
        if tidy:
            remove_partial(path.parent, path.name)
        with _new(path) as temporary:
            try:
                yield temporary
                _sync(temporary, os.O_RDWR)
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        with contextlib.suppress(OSError):  # not every system can
            _sync(path.parent, os.O_RDONLY)  # so that the new name survives a loss of power
    except OSError as error:
        if error.errno is not None and Path(str(error.filename or path)).parent == path.parent:
            error.filename = str(path)  # not the new file, which the user has not named
        raise


def _check_replaceable(path: Path) -> None:
    try:
        check_regular(path)
    except FileNotFoundError:
        return
    except Unreadable as error:
        raise ValueError(f"{path} cannot be written: {error}") from None


def check_writable(folder: Path | str) -> None:
    """Raise `OSError` unless files can be made in a folder."""
    with _new(Path(folder, "new")) as temporary:
        temporary.unlink()


def remove_partial(folder: Path | str, name: str = "") -> None:
    """Remove what processes that were killed had begun to write in a folder.

    What a process writes is locked until it has its place, so whatever is not locked was left
    behind. Where the platform or the file system has no locks, nothing is removed.

    Args:
      folder: a path.
      name: of the file that was to be replaced; "": of any in the folder.
    """
    begins = f"{glob.escape(name[:LETTERS])}" if name else "*"
    for path in Path(folder).glob(f".{begins}-*.partial"):
        if PARTIAL.fullmatch(path.name):
            with contextlib.suppress(OSError, ValueError), _left_behind(path):
                path.unlink()


@contextlib.contextmanager
def _left_behind(path: Path) -> Generator[None]:
    """The lock of a file; raises `OSError` where another process has it, or none can be had."""
    descriptor = locks.opened(path)
    try:
        locks.lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _new(path: Path) -> Generator[Path]:
    """An empty file under a new name, as readable as any that the user creates, and locked."""
    # Not `tempfile`, whose files are private: to make them readable, the umask would have to be
    # read, which is possible only by changing it, for all threads of the process.
    while True:
        temporary = path.parent / f".{path.name[:LETTERS]}-{secrets.token_hex(4)}.partial"
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            continue
        try:
            if _ours(descriptor, temporary):
                if not locks.AVAILABLE:  # on Windows an open file cannot be moved
                    os.close(descriptor)
                yield temporary
                return
        finally:
            if locks.AVAILABLE:
                os.close(descriptor)


def _ours(descriptor: int, path: Path) -> bool:
    """Whether a new file is ours; else another process has taken it for one that was left."""
    try:
        locks.lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # nobody can lock it
        return True
    return locks.is_at(descriptor, path)


def _sync(path, mode):
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
