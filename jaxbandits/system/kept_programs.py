"""Compiled programs in the user's cache folder, kept from one process to the next.

A program is code: what somebody else put in its place would run here. The folder must therefore
belong to the user alone, and the name of a file holds two digests: one of all that the program was
made from, one of its bytes. What does not fit its name is removed, with a warning, and made anew.
"""

import contextlib
import functools
import hashlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from .private_folders import NotPrivate, check_private, private_folder

VARIABLE = "JAXBANDITS_CACHE"  # of the environment: another folder, or `OFF`
OFF = "off"
PROGRAMS, SUFFIX = "programs", ".program"  # a folder in it, and the end of its files' names
MOST_BYTES = 2**30  # of everything in the folder; what was not used for longest goes first
NEW = ".new-"  # begins the name of a file that is being written
HOUR = 3600  # seconds after which such a file was left behind by a process that was killed


def folder() -> Path | None:
    """Where programs are kept: made if it is missing; None if they are not kept.

    A warning says why a folder is not used.
    """
    named = os.environ.get(VARIABLE, "")
    if named == OFF:
        return None
    if not named:
        named = platformdirs.user_cache_dir("jaxbandits", appauthor=False)
    return _usable(Path(named).expanduser().absolute())


@functools.cache
def _usable(path: Path) -> Path | None:
    """The folder at `path`, made if it is missing; None, with a warning, if it must not be used."""
    try:
        return private_folder(path)
    except (NotPrivate, OSError) as error:
        hint = f"{VARIABLE} can name another folder, or be {OFF!r}"
        warn(f"compiled programs are not kept: {reason(error)}; {hint}")
        return None


def read(name: str) -> bytes | None:
    """The bytes that were kept under a name, or None."""
    above = folder()
    if above is None:
        return None
    for path in sorted((above / PROGRAMS).glob(f"{name}.*{SUFFIX}")):
        try:
            check_private(path.parent)
            check_private(path)
            data = path.read_bytes()
            if path.name == _file_name(name, data):
                with contextlib.suppress(OSError):
                    os.utime(path)  # it was used
                return data
            problem = f"{path} is damaged"
        except FileNotFoundError:  # another process has removed it
            continue
        except (NotPrivate, OSError) as error:
            problem = reason(error)
        warn(f"a kept program is compiled anew: {problem}")
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def keep(name: str, data: bytes) -> None:
    """Keep some bytes under a name; where that fails, a warning says why."""
    above = folder()
    if above is None:
        return
    new = None
    try:
        place = private_folder(above / PROGRAMS)
        handle, new = tempfile.mkstemp(dir=place, prefix=NEW)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(new, place / _file_name(name, data))
    except (NotPrivate, OSError) as error:
        warn(f"a compiled program is not kept: {reason(error)}")
        with contextlib.suppress(OSError, TypeError):
            os.unlink(new)  # ty: ignore[invalid-argument-type]  # suppressed where it is None
    else:
        prune(above)


def prune(above: Path, most: int = MOST_BYTES) -> None:
    """Remove what was not used for longest until all files in a folder have `most` bytes."""
    found = sorted(_files(above), reverse=True)
    total = 0
    for used, size, path in found:
        total += size
        left_behind = path.name.startswith(NEW) and used < time.time() - HOUR
        if total > most or left_behind:
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


def _files(above: Path) -> Iterator[tuple[float, int, Path]]:
    """`(when last used, bytes, path)` of each file."""
    for path in above.rglob("*"):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if path.is_file():
                yield facts.st_mtime, facts.st_size, path


def _file_name(name: str, data: bytes) -> str:
    return f"{name}.{digest(data)}{SUFFIX}"


def digest(data: bytes) -> str:
    """A name for some bytes."""
    return hashlib.sha256(data).hexdigest()[:32]


def reason(error: Exception) -> str:
    """What went wrong with a file, in a few words."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


def warn(text: str) -> None:
    """Warn as this package does about programs that are not kept."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)
