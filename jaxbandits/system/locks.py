"""Locks of files, which end with the process that holds them."""

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

AVAILABLE: bool = fcntl is not None


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file at once, for this process alone or shared with others.

    Raises:
      BlockingIOError: another process has a lock that excludes this one.
      OSError: the platform or the file system has no locks.
    """
    if fcntl is None:
        raise OSError("this platform has no file locks")
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
