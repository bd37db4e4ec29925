"""Locks of files, which end with the process that holds them."""

import os
from pathlib import Path

from .data_files import NO_WAITING, Unreadable, check_regular

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

AVAILABLE: bool = fcntl is not None
NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)  # of `os.open`


def opened(path: Path | str) -> int:
    """The descriptor of a file that only serves as a lock, made if there is none.

    Raises:
      Unreadable: a link, which somebody may have made to have another file written to, or no file.
      OSError: it cannot be opened or made.
    """
    if os.path.islink(path):
        raise Unreadable("it is a link, and no file")
    flags = os.O_RDWR | os.O_CREAT | NO_LINKS | NO_WAITING
    descriptor = os.open(path, flags, 0o666)
    try:
        check_regular(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file at once, for this process alone or shared with others.

    Raises:
      BlockingIOError: another process has a lock that excludes this one.
      OSError: the platform or the file system has no locks.
    """
    if fcntl is None:
        raise OSError("this platform has no file locks")
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def is_at(descriptor: int, path: Path | str) -> bool:
    """Whether an open file is still the one at its path, where another may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
