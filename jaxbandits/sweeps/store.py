"""Finished cells on disk: one file each, named by the hash of what the cell is."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..engine import results
from ..engine.checkpoints import rounds_of
from ..engine.results import TABLES, Runs, joined
from ..instances import Instance
from ..instances.fields import SAME_VALUES
from ..system.data_files import Unreadable
from ..system.files import check_writable, replacing
from ..system.identity import LOCAL

Spec: TypeAlias = Mapping[str, Any]  # of a `Cell`

CELLS = "cells"  # the folder in that of a sweep
KEY = 2  # the form of keys; that of version 0.2.0, which is not noted, held less of a user's code
OF_ACCURACY = "epsilon"  # the option of an algorithm that says how good an answer has to be
MOST_READ = 1000  # files that are looked through for what is only said
UNKNOWN: re.Pattern[str] = re.compile(rf'{LOCAL}\d+ ?((?:[^"\\]|\\.)*)')  # in the text of a spec


class Store:
    """Saved cells under `folder/cells`: whole ones, and parts of those that are not complete.

    A file that cannot be read is named in the error, and stays as it is.

    Args:
      folder: the folder of the sweep.
      earlier: replications of the sweep that is extended, 0 for none.
    """

    def __init__(self, folder: Path | str, earlier: int = 0) -> None:
        self.folder: Path = Path(folder) / CELLS
        self._earlier = earlier
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out: {self.folder} cannot be made ({error.strerror})") from None

    def path(self, spec: Spec) -> Path:
        """The file of the cell that `spec` describes."""
        text = json.dumps(spec, sort_keys=True)
        if (local := UNKNOWN.search(text)) is not None:
            reason = json.loads(f'"{local[1]}"') or (
                f"{_unnamed(text)} cannot be recognised in another run, so its cells cannot be "
                "stored: give a function or class of the top of a module"
            )
            raise ValueError(f"{reason}, or leave out `out`")
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.npz"

    def get(self, spec: Spec, problem: Any = None) -> Runs | None:
        """The saved `Runs` of a finished cell, or None.

        Args:
          spec: that of the cell.
          problem: that of the cell, whose arms and answers the runs must have; None: any.
        Raises:
          ValueError: the file is damaged, or holds something else.
        """
        path = self.path(spec)
        if not path.exists():
            return None
        runs, wanted = _read(path, path.stem, spec, problem), spec["replications"]
        number = min(len(runs), wanted) if "until" in spec else wanted
        if not np.array_equal(runs.replication, np.arange(number)):
            held = f"{len(runs)} replications instead of {wanted}"
            if len(runs) == number:
                held = f"other replications than 0 to {number - 1}"
            raise _refused(path, f"it holds {held}")
        return runs

    def begun(self, spec: Spec, problem: Any = None) -> Runs | None:
        """`Runs` of the replications that an earlier run has stored, or None.

        Args:
          spec, problem: as in `get`.
        """
        path, parts = self.path(spec), []
        before = self.get(self._smaller(spec), problem) if self._earlier else None
        if before is not None:
            parts.append(before)
        for file in self._parts(path):
            try:
                parts.append(_read(file, path.stem, spec, problem))
            except ValueError:
                if file.exists():  # else another process has completed the cell meanwhile
                    raise
                continue
            if _columns(parts[-1]) != _columns(parts[0]):
                raise _refused(file, "it holds other tables than what else is stored of its cell")
        return joined(parts) if parts else None

    def _smaller(self, spec: Spec) -> Spec:
        """The cell in the sweep that is extended."""
        return {**spec, "replications": self._earlier}

    def names(self) -> frozenset[str]:
        """What the files are called, for `holds`."""
        return frozenset(file.name.partition(".")[0] for file in self.folder.iterdir())

    def holds(self, spec: Spec, names: frozenset[str]) -> bool:
        """Whether one of the files called `names` has replications of a cell."""
        specs = [spec, self._smaller(spec)] if self._earlier else [spec]
        return any(self.path(each).stem in names for each in specs)

    def has_former(self, spec: Spec, known: Iterable[Spec]) -> bool:
        """Whether version 0.2.0 has stored runs here that may be of a cell, by another name.

        Args:
          spec: the cell, with code of a user.
          known: cells by whose names files are found.
        """
        names = {self.path(each).stem for each in known}
        for file in itertools.islice(self.folder.glob("*.npz"), MOST_READ):
            if file.stem not in names:
                with contextlib.suppress(ValueError):
                    meta = results.load(file).meta
                    if "key" not in meta and meta.get("seed") == spec["seed"]:
                        return True
        return False

    def add(self, spec: Spec, runs: Runs) -> None:
        """Save some replications of a cell, in one step."""
        path = self.path(spec)
        # A random name, so that processes which share the folder never take the same one.
        _write(path.with_suffix(f".{secrets.token_hex(8)}.part"), path.stem, runs)

    def put(self, spec: Spec, runs: Runs) -> None:
        """Save the `runs` of a finished cell, in one step, and remove its parts."""
        path = self.path(spec)
        _write(path, path.stem, runs)
        for part in self._parts(path):
            part.unlink(missing_ok=True)

    def check_writable(self) -> None:
        """Raise unless files can be made in the folder, before anything is simulated."""
        try:
            check_writable(self.folder)
        except OSError as error:
            raise ValueError(f"out: {self.folder} cannot be written ({error.strerror})") from None

    def _parts(self, path: Path) -> list[Path]:
        return sorted(self.folder.glob(f"{path.stem}.*.part"))


def _write(path: Path, cell: str, runs: Runs) -> None:
    meta = runs.meta | {"cell": cell, "key": KEY}
    # Partial files are removed when the folder is locked: it can hold many cells.
    with replacing(path, tidy=False) as new, new.open("wb") as stream:
        dataclasses.replace(runs, meta=meta).write(stream)


def _read(path: Path, cell: str, spec: Spec, problem: Any) -> Runs:
    try:
        runs = results.read(path)
    except Unreadable as error:
        raise _refused(path, f"it does not hold saved runs ({error})") from None
    if runs.meta.get("cell") != cell:
        raise _refused(path, "it holds another cell")
    try:
        _check_played(runs, spec)
        if isinstance(problem, Instance):
            _check_indices(runs, len(problem.arms), len(problem.targets))
            # Where no epsilon is bound it is 0.
            check_flags(runs, np.asarray(problem.values), OF_ACCURACY in json.dumps(spec))
    except Unreadable as error:
        raise _refused(path, str(error)) from None
    return runs


def _check_played(runs: Runs, spec: Spec) -> None:
    """Raise `Unreadable` unless runs were played as long as a cell says."""
    horizon = spec["horizon"]
    rounds = [] if horizon is None else rounds_of(spec["record"], int(horizon))
    if not np.array_equal([] if runs.rounds is None else runs.rounds, rounds):
        raise Unreadable("its regret is that of other rounds")
    if horizon is not None and (runs.pulls != horizon).any():
        raise Unreadable(f"it has replications with fewer or more pulls than {horizon}")
    if horizon is None and (runs.pulls > spec["max_pulls"]).any():
        raise Unreadable(f"it has replications with more pulls than {spec['max_pulls']}")


def _check_indices(runs: Runs, num_arms: int, num_targets: int) -> None:
    """Raise `Unreadable` unless arms and answers of runs are those that an instance has."""
    found = runs.arm_pulls.shape[1]
    if found != num_arms:
        raise Unreadable(f"it has pulls of {found} arms, and the instance has {num_arms}")
    mask = runs.answer.ndim == 2
    fits = runs.answer.shape[1] == num_targets if mask else (runs.answer < num_targets).all()
    if not fits:
        raise Unreadable(f"it has an answer that is none of the {num_targets} targets")


def check_flags(runs: Runs, values: np.ndarray, accuracy: bool) -> None:
    """Raise `Unreadable` where `correct` is not what the answers and the true values make it.

    Args:
      runs: with answers that exist.
      values: of the targets `[M]`, known before the run.
      accuracy: whether answers may be worse than the best by something above 0.
    """
    ranked = np.sort(values)
    if runs.answer.ndim == 2:
        sizes = runs.answer.sum(1)
        judged = sizes > 0
        worst = np.where(runs.answer, values, np.inf).min(1)
        behind = ranked[-np.maximum(sizes, 1)] - worst
    else:
        judged = runs.answer >= 0
        behind = ranked[-1] - values[np.maximum(runs.answer, 0)]
    margin = SAME_VALUES * np.abs(values).max()
    wrong = judged & ~runs.correct & (behind <= 0)
    if not accuracy:
        wrong |= judged & runs.correct & (behind > margin)
    if wrong.any():
        number = runs.replication[np.flatnonzero(wrong)[0]]
        raise Unreadable(
            f"'correct' contradicts 'answer' in {wrong.sum():,} of {len(runs):,} replications "
            f"(number {number} first), by the values of the instance's targets"
        )


def _columns(runs: Runs) -> dict[str, Any]:
    """By name, what the tables of runs of one cell have in common."""
    tables = {name: getattr(runs, name) for name in TABLES} | runs.info
    return {name: (table.dtype.kind, table.shape[1:]) for name, table in tables.items()}


def _refused(path: Path, reason: str) -> ValueError:
    return ValueError(f"{path}: {reason}; without this file its replications are played again")


def _unnamed(text):
    """What a description calls by a name that does not say which one it is."""
    name = next(word for word in re.findall(r'[^" ]+', text) if LOCAL in word).split(LOCAL)[0]
    if name.endswith("<lambda>"):
        return "a lambda"
    return f"the inner function {name.split('<locals>.')[-1]}"
