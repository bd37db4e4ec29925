"""Which files a constructor reads, and whether they have changed."""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE_OPTION: str = "path"  # of what reads a file: a name says nothing of what is in it


class FileStamp(NamedTuple):
    """What changes when a file does, at the latest with its next change."""

    path: str
    changed: int  # nanoseconds
    size: int
    number: int  # of the file in its file system


def stamps_of(source: Any) -> Iterator[FileStamp]:
    """The stamps of the files that a constructor reads: of each file, or of all in a folder.

    Args:
      source: `functools.partial` of constructors with their options; of anything else there are
        none.
    """
    if not isinstance(source, functools.partial):
        return
    given = source.keywords.get(FILE_OPTION)
    if isinstance(given, str | os.PathLike):
        place = Path(given).resolve()
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            with contextlib.suppress(OSError):
                facts = file.stat()
                yield FileStamp(str(file), facts.st_mtime_ns, facts.st_size, facts.st_ino)
    for value in source.keywords.values():
        yield from stamps_of(value)
