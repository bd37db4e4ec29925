"""Files that are there whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path


@contextlib.contextmanager
def replacing(path):
    """A new file beside `path` that takes its place when the block ends, on disk by then.

    Where the block raises, `path` is as it was and the new file is gone.
    """
    path = Path(path)
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:40]}-", suffix=".partial"
    )
    os.close(descriptor)
    temporary = Path(temporary)
    try:
        temporary.chmod(0o666 & ~_umask())
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder):
    """So that the new name outlives a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
