"""Compiled programs in the user's cache folder, kept from one process to the next.

A program is code: what somebody else put in its place would run here. The folder must therefore
belong to the user alone, and the name of a file holds two digests: one of all that the program was
made from, one of its bytes. What does not fit its name is removed, with a warning, and made anew.
"""

import contextlib
import functools
import hashlib
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

from ..messages import brief
from .data_files import NO_WAITING, Unreadable, check_regular
from .locks import NO_LINKS
from .private_folders import NotPrivate, check_private, private_folder

VARIABLE = "JAXBANDITS_CACHE"  # of the environment: another folder, or `OFF`
OFF = "off"
PROGRAMS, SUFFIX = "programs", ".program"  # a folder in it, and the end of its files' names
NATIVE = "jaxbandits-native"  # another one, of libraries
MOST_BYTES = 2**30  # of all that is kept; what was not used for longest goes first
NEW = ".new-"  # begins the name of a file that is being written
HOUR = 3600  # seconds after which such a file was left behind by a process that was killed
# Names of what is kept below the folder: programs, native libraries, and JAX's own programs. Other
# files are not ours to remove.
OURS: tuple[re.Pattern[str], ...] = (
    re.compile(rf"{PROGRAMS}/([0-9a-f]{{32}}\.[0-9a-f]{{32}}\.program|\.new-\w+)"),
    re.compile(rf"{NATIVE}/jaxbandits_[0-9a-f]{{32}}\.[0-9a-f]{{32}}\.so"),
    re.compile(r"[\w<>.-]+-[0-9a-f]{64}-(cache|atime)"),
)


def folder() -> Path | None:
    """Where programs are kept: made if it is missing; None if they are not kept.

    A warning says why a folder is not used.
    """
    named = os.environ.get(VARIABLE, "")
    if named.lower() == OFF:
        return None
    try:
        default = "" if named else platformdirs.user_cache_dir("jaxbandits", appauthor=False)
    except RuntimeError as error:  # there is no home folder
        return _unusable(str(error))
    return _usable(named or default)


@functools.cache
def _usable(named: str) -> Path | None:
    """The folder of this name, made if it is missing; None, with a warning, if it is not used."""
    try:
        path = Path(named).expanduser()
        if not path.is_absolute():
            return _unusable(f"{VARIABLE} must be an absolute path, got {brief(named)}")
        return private_folder(path)
    except (NotPrivate, OSError, RuntimeError) as error:
        return _unusable(reason(error))


@functools.cache  # one warning is enough
def _unusable(why: str) -> None:
    hint = f"{VARIABLE} can name another folder, or be {OFF!r}"
    warn(f"compiled programs are not kept: {why}; {hint}")


def read(name: str) -> bytes | None:
    """The bytes that were kept under a name, or None."""
    found = intact(_files_of(name), name, "kept")
    return None if found is None else found[1]


def intact(paths: Iterable[Path], name: str, kind: str) -> tuple[Path, bytes] | None:
    """The first file that fits its name, with its bytes; those before it are removed.

    Args:
      paths: files of the name, see `file_name`.
      name: what they hold was made from.
      kind: what a warning calls the program, where a file is damaged or not private.
    """
    for path in paths:
        try:
            data = _content(path)
            if path.name == file_name(name, data, path.suffix):
                with contextlib.suppress(OSError):
                    os.utime(path)  # it was used
                return path, data
            problem = f"{path} is damaged"
        except FileNotFoundError:  # another process has removed it
            continue
        except Unreadable as error:
            problem = f"{path}: {error}"
        except (NotPrivate, OSError) as error:
            problem = reason(error)
        warn(f"a {kind} program is compiled anew: {problem}")
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def _content(path: Path) -> bytes:
    """The bytes of a file that is the user's alone; raises `NotPrivate` for another one."""
    check_private(path.parent)
    # What is checked and what is read are the same file, whatever is put in its place.
    with os.fdopen(os.open(path, os.O_RDONLY | NO_LINKS | NO_WAITING), "rb") as file:
        check_regular(file.fileno())
        check_private(path, file.fileno())
        return file.read()


def _files_of(name: str) -> list[Path]:
    above = folder()
    return [] if above is None else sorted((above / PROGRAMS).glob(f"{name}.*{SUFFIX}"))


def discard(name: str) -> None:
    """Remove what is kept under a name."""
    for path in _files_of(name):
        with contextlib.suppress(OSError):
            path.unlink()


def keep(name: str, data: bytes) -> None:
    """Keep some bytes under a name; where that fails, a warning says why."""
    above = folder()
    if above is None:
        return
    new = None
    try:
        private_folder(above)
        place = private_folder(above / PROGRAMS)
        handle, new = tempfile.mkstemp(dir=place, prefix=NEW)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        discard(name)
        os.replace(new, place / file_name(name, data))
    except BaseException as error:
        with contextlib.suppress(OSError):
            if new is not None:
                os.unlink(new)
        if not isinstance(error, NotPrivate | OSError):
            raise
        warn(f"a compiled program is not kept: {reason(error)}")
    else:
        prune(above)


def prune(above: Path, most: int = MOST_BYTES) -> None:
    """Remove what was not used for longest until all that is kept in a folder has `most` bytes."""
    total = 0
    for used, size, path in sorted(_kept(above), reverse=True):
        total += size
        left_behind = path.name.startswith(NEW) and used < time.time() - HOUR
        if total > most or left_behind:
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


def _kept(above: Path) -> Iterator[tuple[float, int, Path]]:
    """`(when last used, bytes, path)` of each file that is kept in a folder."""
    for path in [
        *above.glob("*"),
        *above.glob(f"{PROGRAMS}/*"),
        *above.glob(f"{NATIVE}/*"),
    ]:
        if any(ours.fullmatch(path.relative_to(above).as_posix()) for ours in OURS):
            with contextlib.suppress(OSError):
                facts = path.lstat()
                yield facts.st_mtime, facts.st_size, path


def file_name(name: str, data: bytes, suffix: str = SUFFIX) -> str:
    """What a file of these bytes is called."""
    return f"{name}.{digest(data)}{suffix}"


def digest(data: bytes) -> str:
    """A name for some bytes."""
    return hashlib.sha256(data).hexdigest()[:32]


def reason(error: Exception) -> str:
    """What went wrong with a file, in a few words."""
    if not isinstance(error, OSError):
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def warn(text: str) -> None:
    """Warn as this package does about programs that are not kept."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)
