"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path | str) -> Generator[Path]:
    """A new file beside `path` that takes its place, and is on disk, when the block ends.

    Where the block raises, `path` is as it was and the new file is removed. Errors of the system,
    such as a full disk, name `path`.
    """
    path = Path(path)
    try:
        temporary = new_beside(path)
        try:
            yield temporary
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is not None and Path(str(error.filename or path)).parent == path.parent:
            error.filename = str(path)  # not the new file, which the user has not named
        raise


def new_beside(path: Path) -> Path:
    """An empty file under a new name, as readable as any that the user creates."""
    # Not `tempfile`, whose files are private: to make them readable, the umask would have to be
    # read, which is possible only by changing it, for all threads of the process.
    while True:
        temporary = path.parent / f".{path.name[:40]}-{secrets.token_hex(4)}.partial"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return temporary


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
