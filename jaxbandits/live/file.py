"""The file of a live run: written in one step, checked when read, held by one process."""

import hashlib
import io
import json
import math
import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..parameters import require
from ..system import locks
from ..system.files import replacing
from ..system.identity import Entries, Plain, differences
from ..system.revisions import Revisions, changes
from ..version import VERSION
from .algorithm import LiveAlgorithm
from .constructor import CODE, REVISIONS
from .snapshot import Snapshot

Arrays: TypeAlias = dict[str, np.ndarray]  # what the file holds
Description: TypeAlias = Mapping[str, str]  # of what is run, see `constructor.describe`

FORMAT = 2
BEGINS = b"PK"  # the first bytes of every .npz file
BEFORE = 1  # the format that this version also reads, in which each array is written by itself
ARRAY: re.Pattern[str] = re.compile(r"(\w+) (\[[\d, ]*\]) ([0-9a-f]{64})")
FIELDS = ("rounds", "arm_pulls", "told", "sums", "issued")  # of a `Snapshot`, as in the file


def hold(owner: object, path: Path) -> Callable[[], Any]:
    """Lock `path`; the lock ends when the callable that is returned is called.

    It also ends when `owner` is collected or the process ends. It is on `path` + ".lock", which
    stays: to remove it would let a third process lock a new file while a second one waits for the
    old.

    Raises:
      ValueError: no such folder, no locks on this platform or file system, or another run has the
        lock.
    """
    require(locks.AVAILABLE, f"path: {path} needs file locks, which {sys.platform} lacks")
    require(path.parent.is_dir(), f"path: {path} is in a folder that does not exist")
    require(not path.is_dir(), f"path: {path} is a folder, it must be a file")
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        locks.lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        busy = isinstance(error, BlockingIOError)
        reason = "is in use by another live run" if busy else f"cannot be locked ({error})"
        raise ValueError(f"path: {path} {reason}") from None
    return weakref.finalize(owner, os.close, descriptor)


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
    with replacing(path) as temporary, temporary.open("wb", buffering=0) as stream:
        stream.write(archive.getbuffer())


def load(path: Path, description: Description, entries: Entries | None = None) -> Arrays:
    """The arrays that `save` wrote for the same `description`; the file is only read.

    Args:
      path: the file.
      description, entries: as in `header_of`.

    Raises:
      ValueError: names the file and says what is wrong with it.
    """
    begins = BEGINS
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(BEGINS))
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
        header, intact, read = (_separate if "checksum" in stored else _packed)(stored)
        facts = json.loads(header)
        found, version, plays = (facts[name] for name in ("format", "version", "plays"))
        changed = changes(_revisions(plays), _revisions(description))
    except Exception as error:
        # A damaged file fails in as many ways as its format has layers. Of other files NumPy says
        # how to read them as pickles, which would run what is in them.
        npz = begins == BEGINS
        reason = f"{type(error).__name__}: {error}" if npz else "it is no .npz file"
        raise ValueError(f"path: {path} does not hold a live run ({reason})") from error
    require(intact, f"path: {path} is damaged, its contents do not match their checksum")
    known = found in (FORMAT, BEFORE)
    require(known, f"path: {path} has format {found}, this version reads {FORMAT}")
    require(
        not changed,
        f"path: {path} cannot be continued, {', '.join(changed)}; jaxbandits {version} goes on "
        "with it, or begin another file",
    )
    _check_same(path, plays, description, facts.get("entries", {}) | (entries or {}))
    return read()


def _packed(stored):
    """Header, whether the contents are as they were written, and a function that reads them."""
    header, layout, checksum = stored["header"].tobytes().decode().split("\n")
    contents = stored["contents"].tobytes()

    def read():
        found, at = {}, 0
        for name, dtype, shape in json.loads(layout):
            count = math.prod(shape)
            found[name] = np.frombuffer(contents, dtype, count, at).reshape(shape)
            at += found[name].nbytes
        return found

    return header, checksum == _digest(header, layout, contents), read


def _separate(stored):
    """The same of the format before."""
    header, checksum = (str(stored.pop(name)) for name in ("header", "checksum"))
    digest = hashlib.sha256(header.encode())
    for name in sorted(stored):
        digest.update(f"{name} {stored[name].dtype.str} {stored[name].shape} ".encode())
        digest.update(stored[name].tobytes())
    return header, checksum == digest.hexdigest(), lambda: stored


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
    differing += [
        f"the code of {there[name]} has changed since the file was written"
        for name in names
        if there[name] == here[name] and _other(plays, description, CODE + name)
    ]
    require(not differing, f"path: {path} holds another experiment: {'; '.join(differing)}")


def _revisions(description: Description) -> Revisions:
    return json.loads(description.get(REVISIONS, "{}"))


def _other(plays: Description, description: Description, name: str) -> bool:
    """Whether both have an entry of a name, and not the same."""
    return name in plays and name in description and plays[name] != description[name]


def _parsed(text: str) -> Plain:
    """The description of an array as `described_array` returns it; other text as it is."""
    found = ARRAY.fullmatch(text)
    return [found[1], json.loads(found[2]), found[3]] if found else text


def _digest(header, layout, contents):
    return hashlib.sha256(f"{header}\n{layout}\n".encode() + contents).hexdigest()


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
      ValueError: the arrays are those of another algorithm.
    """
    rows = arrays.get("shown", ())
    wanted, tree = jax.tree.flatten(algorithm.shapes(max(1, len(rows))))
    names = [f"leaf{i}" for i in range(len(wanted))]
    own = {"tickets", *FIELDS, *names, *(("shown",) if algorithm.contextual else ())}
    require(arrays.keys() == own, "state of another algorithm")
    with jax.enable_x64(True):
        leaves = [_restored(arrays[n], s) for n, s in zip(names, wanted, strict=True)]
    state, move = jax.tree.unflatten(tree, leaves)
    return Snapshot(
        state=state,
        move=move,
        rounds=int(arrays["rounds"]),
        issued=int(arrays["issued"]),
        tickets={int(number): int(arm) for number, arm in arrays["tickets"]},
        shown=arrays.get("shown"),
        **{name: arrays[name] for name in ("arm_pulls", "told", "sums")},
    )


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _restored(array: np.ndarray, shape: jax.ShapeDtypeStruct) -> Any:
    """A leaf of that shape; raises where the array does not fit."""
    if _is_key(shape):
        return jax.random.wrap_key_data(jnp.asarray(array), impl="threefry2x32")
    fits = (array.shape, array.dtype) == (shape.shape, shape.dtype)
    found = f"{array.dtype} {array.shape}"
    require(fits, f"state of another algorithm: {found} for {shape.dtype} {shape.shape}")
    return array
