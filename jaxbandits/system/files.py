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


def new_beside(path: Path) -> Path:
    """An empty file under a new name, as readable as any that the user creates."""
    # Not `tempfile`, whose files are private: to make them readable, the umask would have to be
    # read, which is possible only by changing it, for all threads of the process.
    while True:
        temporary = path.parent / f".{path.name[:40]}-{secrets.token_hex(4)}.partial"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return temporary


def _sync(path, mode):
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
