"""Finished cells on disk: one file each, named by the hash of what the cell is."""

import dataclasses
import functools
import hashlib
import json
import secrets
from pathlib import Path

import numpy as np

from ..engine import results
from ..engine.results import joined
from ..system.files import new_beside, replacing, stored_name

LOCAL = "<local>"  # marks a function whose name does not say which one it is


class Store:
    """Saved cells under `folder/cells`: whole ones, and parts of those under way.

    What cannot be read is refused by its name and left alone.
    """

    def __init__(self, folder):
        self.folder = Path(folder) / "cells"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out: {self.folder} cannot be made ({error.strerror})") from None

    def path(self, spec):
        """The file of the cell that `spec` describes."""
        text = json.dumps(spec, sort_keys=True)
        if LOCAL in text:
            raise ValueError(
                "a lambda or inner function cannot be recognised in another run, so its cells "
                "cannot be stored: define it at the top of a module, or leave out `out`"
            )
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.npz"

    def get(self, spec):
        """The saved `Runs` of a finished cell, or None.

        Raises:
          ValueError: the file is damaged, or holds something else.
        """
        path = self.path(spec)
        if not path.exists():
            return None
        runs, wanted = _read(path, path.stem), spec["replications"]
        number = min(len(runs), wanted) if "until" in spec else wanted
        if not np.array_equal(runs.replication, np.arange(number)):
            raise _refused(path, f"it holds {len(runs)} replications instead of {wanted}")
        return runs

    def begun(self, spec, earlier=0):
        """`Runs` of the replications that a run before has stored, or None.

        Args:
          earlier: replications of a sweep that this one goes on from, 0 for none.
        """
        path, parts = self.path(spec), []
        before = self.get(spec | {"replications": earlier}) if earlier else None
        if before is not None:
            parts.append(before)
        for file in self._parts(path):
            try:
                parts.append(_read(file, path.stem))
            except ValueError:
                if file.exists():  # else another process has put the cell together meanwhile
                    raise
        return joined(parts) if parts else None

    def add(self, spec, runs):
        """Save some replications of a cell under way, in one step."""
        path = self.path(spec)
        # By chance, so that processes which share the folder never take the same name.
        _write(path.with_suffix(f".{secrets.token_hex(8)}.part"), path.stem, runs)

    def put(self, spec, runs):
        """Save the `runs` of a finished cell, in one step; its parts are not needed any more."""
        path = self.path(spec)
        _write(path, path.stem, runs)
        for part in self._parts(path):
            part.unlink(missing_ok=True)

    def check_writable(self):
        """Raise unless files can be made in the folder, before anything is played for them."""
        try:
            new_beside(self.folder / "cell").unlink()
        except OSError as error:
            raise ValueError(f"out: {self.folder} cannot be written ({error.strerror})") from None

    def _parts(self, path):
        return sorted(self.folder.glob(f"{path.stem}.*.part"))


def _write(path, cell, runs):
    with replacing(path) as new, new.open("wb") as stream:
        dataclasses.replace(runs, meta=runs.meta | {"cell": cell}).write(stream)


def _read(path, cell):
    try:
        runs = results.load(path)
    except ValueError as error:
        raise _refused(path, str(error).removeprefix("path: ")) from None
    if runs.meta.get("cell") != cell:
        raise _refused(path, "it holds another cell")
    return runs


def _refused(path, reason):
    return ValueError(f"{path}: {reason}; without this file its replications are played again")


def describe(value):
    """Plain data that changes whenever `value` does, for hashing."""
    return described(value, repr, _stored_name)


def _stored_name(function):
    name = stored_name(function)
    return f"{name}{LOCAL}{id(function)}" if "<" in name else name


def described(value, number, name):
    """Plain data: what `number` makes of a float or complex number, `name` of a function."""

    def inner(value):
        return described(value, number, name)

    if isinstance(value, functools.partial):
        return [inner(value.func), inner(list(value.args)), inner(value.keywords)]
    if isinstance(value, dict):
        return {str(key): inner(v) for key, v in value.items()}
    if hasattr(value, "reward") and not isinstance(value, type):  # a simulator
        parts = value._asdict() if isinstance(value, tuple) else vars(value)
        return [inner(type(value)), inner(parts)]
    if isinstance(value, list | tuple):
        return [inner(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str | int | bool | type(None)):
        return value
    if callable(value):
        return name(value)
    if hasattr(value, "arms"):
        parts = {key: inner(v) for key, v in vars(value).items()}
        rare = ("simulator", "stress")  # most have none, and their cells keep their names
        return {key: part for key, part in parts.items() if key not in rare or part is not None}
    if dataclasses.is_dataclass(value):
        return [name(type(value)), inner(vars(value))]
    array = np.asarray(value)
    if array.dtype == object:
        raise ValueError(f"cannot tell {value!r} apart from others, so its runs cannot be stored")
    if array.ndim == 0:
        return number(array.item())
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return [str(array.dtype), list(array.shape), digest]


def digest_files(path, below=()):
    """Hash of a file, or of the files in a folder: other data is another cell.

    Of folders in it, only those named `below`: results may lie there as well.
    """
    path = Path(path)
    folders = [path, *(path / name for name in below)] if path.is_dir() else []
    files = sorted(p for x in folders if x.is_dir() for p in x.iterdir()) if folders else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
