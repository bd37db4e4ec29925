"""The file of a live run: written in one step, checked when read, held by one process."""

import hashlib
import io
import json
import math
import os
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..parameters import require
from ..system import locks
from ..system.data_files import Archive, Unreadable, check_path, check_regular, opened, parsed
from ..system.files import remove_partial, replacing
from ..system.identity import Entries, Plain, differences
from ..system.jax_options import pinned, pinning
from ..system.own_code import FORMER_MARK
from ..system.revisions import Revisions, changes
from ..version import VERSION
from .algorithm import LiveAlgorithm
from .checks import check_snapshot
from .constructor import CODE, REVISIONS
from .snapshot import Snapshot

Arrays: TypeAlias = dict[str, np.ndarray]  # what the file holds
Description: TypeAlias = Mapping[str, str]  # of what is run, see `constructor.describe`

FORMAT = 2
BEFORE = 1  # the format that this version also reads, in which each array is written by itself
ARRAY: re.Pattern[str] = re.compile(r"(\w+) \[(\d{1,18}(?:, \d{1,18})*)\] ([0-9a-f]{64})")
# Fields of a `Snapshot`, as in the file: types, and axes of the length K.
FIELDS: dict[str, tuple[type, int]] = {
    "rounds": (np.int64, 0),
    "arm_pulls": (np.int64, 1),
    "told": (np.int64, 1),
    "sums": (np.float64, 1),
    "issued": (np.int64, 0),
}


def hold(owner: object, path: Path) -> Callable[[], Any]:
    """Lock `path`; the lock ends when the callable that is returned is called.

    It also ends when `owner` is collected or the process ends. It is on `path` + ".lock", which
    stays: to remove it would let a third process lock a new file while a second one waits for the
    old.

    What a process that was killed had begun to write is removed.

    Raises:
      ValueError: no such folder, no file, no locks on this platform or file system, or another run
        has the lock.
    """
    require(locks.AVAILABLE, f"path: {path} needs file locks, which {sys.platform} lacks")
    require(path.parent.is_dir(), f"path: {path} is in a folder that does not exist")
    try:
        check_regular(path)
    except FileNotFoundError:
        pass  # it will be made
    except (OSError, Unreadable) as error:
        raise ValueError(f"path: {path} cannot be used: {_reason(error)}") from None
    release = weakref.finalize(owner, os.close, _locked(path))
    remove_partial(path.parent, path.name)
    return release


def _locked(path: Path) -> int:
    """The descriptor of the file that locks `path`."""
    lock = f"{path}.lock"
    try:
        descriptor = locks.opened(lock)
    except (OSError, Unreadable) as error:
        raise ValueError(f"path: {path} cannot be locked by {lock}: {_reason(error)}") from None
    try:
        locks.lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        busy = isinstance(error, BlockingIOError)
        reason = "is in use by another live run" if busy else f"cannot be locked ({error})"
        raise ValueError(f"path: {path} {reason}") from None
    return descriptor


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def real_path(path: Path | str) -> Path:
    """Where a file is, whatever links lead to it.

    Raises:
      ValueError: it is no name of a file.
    """
    check_path("path", path)
    return Path(os.path.realpath(path))


def header_of(description: Description, entries: Entries) -> str:
    """What a file says of its run, the same after each reward; versions are for the reader alone.

    Args:
      description: of what is run.
      entries: of small arrays in the description, for messages about what differs.
    """
    facts = {"format": FORMAT, "version": VERSION, "jax": jax.__version__}
    return json.dumps(facts | {"plays": description, "entries": entries})


def save(path: Path, header: str, arrays: Arrays) -> None:
    """Write `arrays`; when this returns they survive a crash of the machine.

    Two arrays are written, in one piece, which takes a third of the time: the bytes of all, and
    lines of text that say what they are.
    """
    layout = json.dumps([[name, x.dtype.str, x.shape] for name, x in arrays.items()])
    contents = b"".join(x.tobytes() for x in arrays.values())
    text = "\n".join([header, layout, _digest(header, layout, contents)]).encode()
    archive = io.BytesIO()
    np.savez(
        archive, header=np.frombuffer(text, np.uint8), contents=np.frombuffer(contents, np.uint8)
    )
    # Partial files were removed when the path was locked.
    with replacing(path, tidy=False) as temporary, temporary.open("wb", buffering=0) as stream:
        stream.write(archive.getbuffer())


def load(path: Path, description: Description, entries: Entries | None = None) -> Arrays:
    """The arrays that `save` wrote for the same `description`; the file is only read.

    Args:
      path: the file.
      description, entries: as in `header_of`.

    Raises:
      ValueError: names the file and says what is wrong with it.
    """
    try:
        with opened(path) as stream:
            header, intact, read = _parts(stream)
        facts = _facts(header)
        plays = facts["plays"]
        changed = changes(_revisions(plays), _revisions(description))
    except Unreadable as error:
        raise ValueError(f"path: {path} does not hold a live run ({error})") from None
    require(intact, f"path: {path} is damaged, its contents do not match their checksum")
    found, version = facts["format"], facts["version"]
    known = found in (FORMAT, BEFORE)
    require(known, f"path: {path} has format {found}, this version reads {FORMAT}")
    require(
        not changed,
        f"path: {path} cannot be continued, {', '.join(changed)}; jaxbandits {version} goes on "
        "with it, or begin another file",
    )
    _check_same(path, plays, description, facts["entries"] | (entries or {}))
    try:
        return read()
    except Unreadable as error:
        raise ValueError(f"path: {path} is damaged: {error}") from None


def _parts(stream: IO[bytes]) -> tuple[str, bool, Callable[[], Arrays]]:
    """Header, whether the contents are as they were written, and a function that reads them."""
    archive = Archive(stream)
    if not archive.unpacked:
        raise Unreadable("it is compressed, as live runs are not")
    stored = {name: archive[name] for name in archive.facts}
    return (_separate if "checksum" in stored else _packed)(stored)


def _packed(stored):
    if stored.keys() != {"header", "contents"}:
        raise Unreadable("it has other arrays")
    header, layout, checksum = _lines(stored["header"].tobytes())
    contents = stored["contents"].tobytes()
    intact = checksum == _digest(header, layout, contents)
    return header, intact, lambda: _unpacked(parsed(layout), contents)


def _lines(header: bytes) -> list[str]:
    try:
        lines = header.decode().split("\n")
    except UnicodeDecodeError:
        lines = []
    if len(lines) != 3:
        raise Unreadable("its header is damaged")
    return lines


def _unpacked(layout: Any, contents: bytes) -> Arrays:
    """The arrays of a layout, which says what each part of the contents is."""
    found: Arrays = {}
    at = 0
    try:
        for name, dtype, shape in layout:
            count = math.prod(shape)
            table = np.frombuffer(contents, dtype, count, at) if count else np.zeros(0, dtype)
            found[name] = table.reshape(shape)
            at += found[name].nbytes
    except (TypeError, ValueError, OverflowError):
        raise Unreadable("its layout does not fit its contents") from None
    if at != len(contents) or len(found) != len(layout):
        raise Unreadable("its layout does not fit its contents")
    return found


def _separate(stored):
    """Parts of a file in the format before."""
    if "header" not in stored:
        raise Unreadable("it has no header")
    header, checksum = (str(stored.pop(name)) for name in ("header", "checksum"))
    digest = hashlib.sha256(header.encode())
    for name in sorted(stored):
        digest.update(f"{name} {stored[name].dtype.str} {stored[name].shape} ".encode())
        digest.update(stored[name].tobytes())
    return header, checksum == digest.hexdigest(), lambda: stored


def _facts(header: str) -> dict[str, Any]:
    """What a header says, by name."""
    match facts := parsed(header):
        case {"format": int(), "version": str(), "plays": dict(plays)}:
            tables = facts.setdefault("entries", {})
            if _are_all(plays, str) and isinstance(tables, dict) and _are_all(tables, list):
                return facts
    raise Unreadable("its header is that of something else")


def _are_all(table: Mapping[str, Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in table.values())


def _check_same(path: Path, plays: Description, description: Description, entries: Entries) -> None:
    """Raise unless the file is of the run that is described; the error names what differs."""
    beside = (CODE, REVISIONS)
    names = sorted(x for x in plays.keys() | description.keys() if not x.startswith(beside))
    there, here = (
        {name: _parsed(one.get(name, "left out")) for name in names} for one in (plays, description)
    )
    differing = [
        f"{where.strip()} {one} there, {two} here"
        for where, one, two in differences(there, here, entries)
    ]
    # Where one of them has no hash, the file is of an earlier version, or a text was not found.
    changed = [name for name in names if _other(plays, description, CODE + name)]
    former = [name for name in changed if plays[CODE + name].startswith(FORMER_MARK)]
    differing += [
        f"the files of path {there[name]} have changed since the file was written"
        if name == "path"
        else f"the code of {there[name]} has changed since the file was written, or what it reads"
        for name in changed
        if there[name] == here[name] and name not in former
    ]
    require(not differing, f"path: {path} holds another experiment: {'; '.join(differing)}")
    if former:
        warnings.warn(
            f"path: {path} is of version 0.2.0, which did not note all that "
            f"the code of {there[former[0]]} reads: the run goes on, and whether that has changed "
            "before today is not known",
            RuntimeWarning,
            stacklevel=4,
        )


def _revisions(description: Description) -> Revisions:
    match found := parsed(description.get(REVISIONS, "{}")):
        case dict() if _are_all(found, list):
            if all(isinstance(line, str) for lines in found.values() for line in lines):
                return found
    raise Unreadable("its revisions are no lists of lines")


def _other(plays: Description, description: Description, name: str) -> bool:
    """Whether both have an entry of a name, and not the same."""
    return name in plays and name in description and plays[name] != description[name]


def _parsed(text: str) -> Plain:
    """The description of an array as `described_array` returns it; other text as it is."""
    found = ARRAY.fullmatch(text)
    return [found[1], [int(size) for size in found[2].split(", ")], found[3]] if found else text


def _digest(header, layout, contents):
    return hashlib.sha256(f"{header}\n{layout}\n".encode() + contents).hexdigest()


@pinning
def to_arrays(snapshot: Snapshot) -> Arrays:
    """A `Snapshot` as a flat dict of NumPy arrays, random keys as their bits."""
    leaves = jax.tree.leaves((snapshot.state, snapshot.move))
    arrays = {f"leaf{i}": _plain(leaf) for i, leaf in enumerate(leaves)}
    arrays |= {name: np.asarray(getattr(snapshot, name)) for name in FIELDS}
    if snapshot.shown is not None:
        arrays["shown"] = snapshot.shown
    arrays["tickets"] = np.array([*snapshot.tickets.items()], np.int64).reshape(-1, 2)
    return arrays


def from_arrays(arrays: Arrays, algorithm: LiveAlgorithm) -> Snapshot:
    """The `Snapshot` of an algorithm that `to_arrays` flattened.

    Raises:
      ValueError: the arrays are those of another algorithm, or of no live run.
    """
    rows = arrays.get("shown", np.zeros(0, np.int64))
    wanted, tree = jax.tree.flatten(algorithm.shapes(max(1, rows.size)))
    names = [f"leaf{i}" for i in range(len(wanted))]
    own = {"tickets", *FIELDS, *names, *(("shown",) if algorithm.contextual else ())}
    require(arrays.keys() == own, "state of another algorithm")
    num_arms = len(algorithm.numbers["arms"])
    for name, (dtype, axes) in FIELDS.items():
        _check_fits(arrays[name], jax.ShapeDtypeStruct((num_arms,) * axes, dtype))
    _check_fits(rows, jax.ShapeDtypeStruct((rows.size,), np.int64))
    tickets = arrays["tickets"]
    _check_fits(tickets, jax.ShapeDtypeStruct((tickets.size // 2, 2), np.int64))
    with pinned():
        leaves = [_restored(arrays[n], s) for n, s in zip(names, wanted, strict=True)]
    state, move = jax.tree.unflatten(tree, leaves)
    snapshot = Snapshot(
        state=state,
        move=move,
        rounds=int(arrays["rounds"]),
        issued=int(arrays["issued"]),
        tickets={int(number): int(arm) for number, arm in tickets},
        shown=arrays.get("shown"),
        **{name: arrays[name] for name in ("arm_pulls", "told", "sums")},
    )
    if len(snapshot.tickets) < len(tickets):
        raise Unreadable("two of its tickets have one number")
    targets = algorithm.numbers.get("targets", algorithm.numbers["arms"])
    check_snapshot(snapshot, num_arms, len(targets))
    return snapshot


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _restored(array: np.ndarray, shape: jax.ShapeDtypeStruct) -> Any:
    """A leaf of that shape; raises where the array does not fit."""
    if _is_key(shape):
        bits = jax.eval_shape(jax.random.key_data, shape)
        _check_fits(array, bits)
        return jax.random.wrap_key_data(jnp.asarray(array), impl="threefry2x32")
    _check_fits(array, shape)
    return array


def _check_fits(array: np.ndarray, shape: jax.ShapeDtypeStruct) -> None:
    fits = (array.shape, array.dtype) == (shape.shape, shape.dtype)
    found = f"{array.dtype} {array.shape}"
    require(fits, f"state of another algorithm: {found} for {shape.dtype} {shape.shape}")
