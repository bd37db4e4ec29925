"""Files of numbers and text that may be damaged, or made by somebody else.

What is read here is what was written, or an `Unreadable` whose text says in one line what is
wrong. The texts are our own: NumPy's advise to read a damaged file as a pickle, which runs what is
in it, and those of other libraries tell of their insides.
"""

import contextlib
import hashlib
import json
import math
import os
import stat
import struct
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from ..messages import brief
from .machine import in_gibibytes, memory_bytes

BEGINS = b"PK"  # the first bytes of every .npz file
# The two ways in which NumPy writes arrays, and that of cells which are kept for long.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
END = struct.Struct("<4s4H2LH")  # the last record of an archive
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
HEADER_BYTES = 10_000  # at most, of the text that says what an array is
SEAL = b"\nsha256 of all bytes before this line: "
DIGEST_LETTERS, BLOCK_BYTES = 64, 2**20
LONGEST_NAME = 40  # letters in a message
DEEPEST = 100  # lists and objects inside each other in a text of JSON
HALF_A_CHARACTER = "\\ud"  # begins the escapes of JSON for characters that are no text alone
NO_WAITING: int = getattr(os, "O_NONBLOCK", 0)  # of `os.open`, for somebody who writes into a pipe
KINDS: dict[int, str] = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class Unreadable(ValueError):
    """A file that is damaged, or another one than was expected; the text does not name it."""


class ArrayFacts(NamedTuple):
    """What the header of an array says of it."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"
    begin: int = 0  # bytes of the header


def check_path(name: str, path: Any) -> None:
    """Raise `ValueError` unless this is the name of a file, or of a folder, that can exist."""
    named = isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str)
    try:
        possible = named and b"\0" not in os.fsencode(path) and str(path) != ""  # "" is a folder
    except UnicodeEncodeError:  # half a character
        possible = False
    if not possible:
        raise ValueError(f"{name} must be the name of a file, got {brief(path)}")


def given_path(path: Any) -> Path:
    """The path that the argument `path` of a reader names; raises `ValueError` for others."""
    check_path("path", path)
    return Path(path)


def opened(path: Path | str) -> IO[bytes]:
    """The file at `path`, open to be read.

    Raises:
      Unreadable: it cannot be opened, or is a pipe, on which one might wait for ever, a device or a
        folder.
    """
    try:
        check_regular(path)  # before it is opened, as some devices act when they are
        with contextlib.ExitStack() as failing:
            stream = failing.enter_context(open(path, "rb", opener=_without_waiting))
            # What is looked at is what is read, whatever is put in its place.
            check_regular(stream.fileno())
            failing.pop_all()
            return stream
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    except ValueError as error:
        raise Unreadable(str(error)) from None  # of a name that no file can have


def _without_waiting(path, flags):
    return os.open(path, flags | NO_WAITING)


def check_regular(file: Path | str | int) -> None:
    """Raise `Unreadable` for what exists and is no file with contents.

    Args:
      file: a path, or the descriptor of an open file.
    """
    mode = os.stat(file).st_mode
    if not stat.S_ISREG(mode):
        raise Unreadable(f"it is {KINDS.get(stat.S_IFMT(mode), 'something else')}, and no file")


def read_text(path: Path | str) -> str:
    """The text of a file in UTF-8, without a mark of that; raises `Unreadable`."""
    try:
        return read_bytes(path).decode("utf-8-sig")  # editors may add a mark
    except UnicodeDecodeError:
        raise Unreadable("it is no text in UTF-8") from None


def read_bytes(path: Path | str) -> bytes:
    """What is in a file; raises `Unreadable`."""
    with opened(path) as stream:
        check_fits(os.fstat(stream.fileno()).st_size)
        try:
            return stream.read()
        except OSError as error:  # of a broken disk, say; it does not name the file
            raise Unreadable(error.strerror or str(error)) from None


def check_fits(size: int) -> None:
    """Raise `Unreadable` unless so many bytes fit into this machine's memory."""
    memory = memory_bytes()
    if size > memory:
        raise Unreadable(
            f"it holds {in_gibibytes(size)} of data, and this machine has a memory of "
            f"{in_gibibytes(memory)}"
        )


def seal_of(data: bytes | memoryview) -> bytes:
    """What is appended to a file with these contents, for `check_seal`."""
    return SEAL + hashlib.sha256(data).hexdigest().encode()


def check_seal(stream: IO[bytes]) -> None:
    """Raise `Unreadable` where an open file ends with a seal that is not that of its contents.

    For formats that end with a length of their own: what follows is nothing to their readers, and
    is gone when another program changes the file. A file without a seal is not checked.
    """
    ends = stream.seek(0, os.SEEK_END) - len(SEAL) - DIGEST_LETTERS
    stream.seek(max(0, ends))
    seal = stream.read()
    if not seal.startswith(SEAL):
        return
    stream.seek(0)
    digest = hashlib.sha256()
    while ends and (block := stream.read(min(ends, BLOCK_BYTES))):
        digest.update(block)
        ends -= len(block)
    if seal != SEAL + digest.hexdigest().encode():
        raise Unreadable("it is damaged: its contents do not match their checksum")


class Archive:
    """The arrays of an .npz file by name: first what their headers say, then what they hold.

    A small file can unpack to more than any machine has. Who knows what the arrays must be looks
    at `facts` before one of them is read.

    Args:
      stream: an open file; it stays open.
    Attributes:
      facts: dtype and shape of each array, by name.
      unpacked: whether no array takes more room in memory than in the file.
    Raises:
      Unreadable: it is no .npz file, damaged, or larger than the memory.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        begins = stream.read(len(BEGINS))
        with _damage("it is damaged" if begins == BEGINS else "it is no .npz file"):
            self._zip = zipfile.ZipFile(stream)
            members = self._zip.infolist()
            self._members = {member.filename.removesuffix(".npy"): member for member in members}
            # A damaged table of contents can leave arrays out, and a name can be there twice.
            if len(self._members) != _number_of_members(stream):
                raise Unreadable("its table of contents is damaged")
        check_fits(sum(member.file_size for member in members))
        self.facts: dict[str, ArrayFacts] = {name: self._facts(name) for name in self._members}
        self.unpacked: bool = all(x.compress_type == zipfile.ZIP_STORED for x in members)

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of a name; raises `Unreadable` where it is damaged."""
        dtype, shape, order, begin = self.facts[name]
        with _damage(f"the array {_shown(name)} in it is damaged"):
            data = self._zip.read(self._members[name])  # whole, which compares its checksum
            return np.frombuffer(data, dtype, offset=begin).reshape(shape, order=order).copy(order)

    def _facts(self, name: str) -> ArrayFacts:
        member = self._members[name]
        if member.compress_type not in PACKED:
            raise Unreadable(f"the array {_shown(name)} in it is packed in an unknown way")
        damaged = f"the array {_shown(name)} in it is damaged"
        with _damage(damaged), self._zip.open(member) as stream:
            read_header = HEADERS[np.lib.format.read_magic(stream)]
            shape, by_columns, dtype = read_header(stream, max_header_size=HEADER_BYTES)
            begin = stream.tell()
        if dtype.hasobject:
            raise Unreadable(f"{_shown(name)} in it holds objects of Python")
        if math.prod(shape) * dtype.itemsize != member.file_size - begin:
            raise Unreadable(damaged)
        return ArrayFacts(dtype, shape, "F" if by_columns else "C", begin)


def _shown(name):
    """A name in quotes, the beginning of a long one."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def _number_of_members(stream):
    """How many files an archive says that it has, in its last bytes."""
    stream.seek(-END.size, os.SEEK_END)
    *_, number, _, _, comment = END.unpack(stream.read())
    return None if comment else number


@contextlib.contextmanager
def _damage(text: str) -> Generator[None]:
    """Raise `Unreadable(text)` for whatever goes wrong: damage shows in many ways."""
    try:
        yield
    except Unreadable:
        raise
    except Exception:
        raise Unreadable(text) from None


def parsed(text: str | bytes) -> Any:
    """What a text of JSON says, as Python's `json` returns it.

    Raises:
      Unreadable: it is no JSON, has a name twice in one object, is nested too deeply, or holds a
        number or a text that cannot be represented.
    """
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_float=_finite)
        if HALF_A_CHARACTER in _lower(text):
            json.dumps(found, ensure_ascii=False).encode()
        if _is_deep(found):
            raise RecursionError
        return found
    except Unreadable:
        raise
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"it is no JSON, from line {error.lineno}, column {error.colno} on"
        ) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except UnicodeError:
        raise Unreadable("it holds characters that are no text") from None
    except ValueError:
        raise Unreadable("it holds a whole number of too many digits") from None
    except TypeError:
        raise Unreadable("it is no text") from None


def _is_deep(value: Any) -> bool:
    """Whether lists and objects lie inside each other more than `DEEPEST` times."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in level)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _lower(text):
    return (text if isinstance(text, str) else text.decode()).lower()


def _object(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise Unreadable(f"it has the name {_shown(twice)} twice")
    return found


def _finite(digits):
    number = float(digits)
    if math.isinf(number):  # infinity itself has a name of its own
        raise Unreadable(f"the number {_shown(digits)} in it is too large")
    return number
