"""Folders of compiled programs: anyone who can write there runs code in the next process.

The checks are about the permissions of the system: who owns a file, and who may write to it. Where
there are no such permissions (Windows), nothing is checked.
"""

import os
import stat
import tempfile
from pathlib import Path

OTHERS: int = stat.S_IWGRP | stat.S_IWOTH


class NotPrivate(ValueError):
    """A file or folder that somebody else could have changed."""


def private_folder(path: Path | str) -> Path:
    """The folder at `path`, made with mode 700 if there is none, where new files can be written.

    Raises:
      NotPrivate: it belongs to another user, others may write to it, or anybody may put another
        folder in its place.
      OSError: it cannot be made or written to.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink() and hasattr(os, "geteuid") and path.lstat().st_uid != os.geteuid():
        raise NotPrivate(f"{path} is a link of another user")
    check_private(path)
    for above in path.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise NotPrivate(f"anybody may replace what is in {above} (chmod o-w would stop that)")
    with tempfile.TemporaryFile(dir=path):  # raises where the folder can only be read
        return path


def check_private(path: Path | str, descriptor: int | None = None) -> None:
    """Raise `NotPrivate` unless a file or folder is this user's, who alone may write to it.

    Args:
      path: where it is.
      descriptor: of the open file, which is looked at in place of what is at the path now.
    """
    facts = os.stat(path if descriptor is None else descriptor)
    if not hasattr(os, "geteuid"):
        return
    if facts.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another user")
    if facts.st_mode & OTHERS:
        mode = stat.S_IMODE(facts.st_mode)
        raise NotPrivate(f"others may write to {path} (mode {mode:o}; chmod go-w would stop that)")
