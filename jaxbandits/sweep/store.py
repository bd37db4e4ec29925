"""Finished cells on disk: one file each, named by the hash of what the cell is."""

import functools
import hashlib
import json
import warnings
from pathlib import Path

import numpy as np

from .. import results

LOCAL = "<local>"  # marks a function whose name does not say which one it is


class Store:
    """Saved cells under `folder/cells`."""

    def __init__(self, folder):
        self.folder = Path(folder) / "cells"
        self.folder.mkdir(parents=True, exist_ok=True)

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
        """The saved `Runs`, or None; a damaged file counts as absent, with a warning."""
        path = self.path(spec)
        if not path.exists():
            return None
        try:
            runs = results.load(path)
        except Exception as error:
            # A truncated file fails in as many ways as its format has layers.
            warnings.warn(f"{path.name} is damaged and is computed again: {error}", stacklevel=2)
            return None
        if len(runs) != spec["replications"]:
            warnings.warn(f"{path.name} is incomplete and is computed again", stacklevel=2)
            return None
        return runs

    def put(self, spec, runs):
        """Save the `runs` of a finished cell, in one step."""
        runs.save(self.path(spec))


def describe(value):
    """Plain data that changes whenever `value` does, for hashing."""
    if isinstance(value, functools.partial):
        return [describe(value.func), describe(list(value.args)), describe(value.keywords)]
    if isinstance(value, dict):
        return {str(name): describe(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [describe(v) for v in value]
    if isinstance(value, Path):
        return describe(str(value))
    if isinstance(value, str | int | bool | type(None)):
        return value
    if callable(value):
        name = f"{value.__module__}.{value.__qualname__}"
        return f"{name}{LOCAL}{id(value)}" if "<" in name else name
    if hasattr(value, "arms"):
        return {name: describe(v) for name, v in vars(value).items()}
    array = np.asarray(value)
    if array.dtype == object:
        raise ValueError(f"cannot tell {value!r} apart from others, so its runs cannot be stored")
    if array.ndim == 0:
        return repr(array.item())
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return [str(array.dtype), list(array.shape), digest]


def digest_files(path):
    """Hash of a file, or of the files directly in a folder: other data is another cell."""
    path = Path(path)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
