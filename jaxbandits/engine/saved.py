"""Saved runs: how they are read from a file, and what must hold of their tables."""

from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ..system.data_files import Archive, ArrayFacts, Unreadable, parsed
from ..whole_numbers import is_whole

FORMAT: int = 1
HEADER: str = "header"  # the name of the text in a file of runs
# Arrays among the fields of `Runs`: the axes that each may have, by the kind of its numbers.
AXES: dict[str, dict[str, str]] = {
    "replication": {"i": "R"},
    "pulls": {"i": "R"},
    "answer": {"i": "R", "b": "RM"},
    "correct": {"b": "R"},
    "stopped": {"b": "R"},
    "arm_pulls": {"i": "RK"},
    "rounds": {"i": "T"},
    "regret": {"f": "RT"},
    "regret_errors": {"f": "RK"},
}
OPTIONAL: tuple[str, ...] = ("regret_errors",)
# Arrays that the file of a live run has besides others, in its format and the one before.
OF_LIVE: tuple[set[str], ...] = ({HEADER, "contents"}, {HEADER, "checksum"})
OF_REGRET: tuple[str, ...] = ("rounds", "regret")  # both are there, or none
# The same of each table of the fields that are dicts.
DICTS: dict[str, dict[str, str]] = {
    "info": dict.fromkeys("biuf", "R"),
    "facts": {"b": "R"},
}
KINDS: dict[str, str] = {"i": "whole numbers", "b": "truth values", "f": "numbers", "u": "counts"}
LEAST_ANSWER: int = -1  # which says that none of the targets is right
# Entries of `meta` that are read later.
TEXTS: tuple[str, ...] = ("engine", "engine_reason", "device", "jax", "jaxbandits", "cell")
SECONDS: tuple[str, ...] = ("seconds", "compile_seconds")


def read(stream: IO[bytes]) -> dict[str, Any]:
    """The fields of `Runs`, by name, from an open file.

    Raises:
      Unreadable: it is damaged, holds something else or what no run can have, or is of a later
        format.
    """
    archive = Archive(stream)
    meta = _meta(archive)
    names = [name for name in archive.facts if name != HEADER]
    check_shapes({name: archive.facts[name] for name in names})
    tables = {name: archive[name] for name in names}
    fields: dict[str, Any] = {name: table for name, table in tables.items() if name in AXES}
    check_entries(fields)
    for group in DICTS:
        start = f"{group}/"
        own = {name: table for name, table in tables.items() if name.startswith(start)}
        fields[group] = {name.removeprefix(start): table for name, table in own.items()}
    return fields | {"meta": meta}


def _meta(archive: Archive) -> dict[str, Any]:
    live = any(names <= archive.facts.keys() for names in OF_LIVE)
    _require(not live, "it is the file of a live run: give it to jb.Live as `path`")
    _require(HEADER in archive.facts, f"it has no {HEADER!r}")
    try:
        header = parsed(str(archive[HEADER]))
    except Unreadable as error:
        raise Unreadable(f"its header is damaged: {error}") from None
    version, meta = _entries(header)
    _require(version <= FORMAT, f"it has format {version}, this version reads {FORMAT}")
    for name in TEXTS:
        _require(isinstance(meta.get(name, ""), str), f"{name!r} in its meta is no text")
    cores = meta.get("cores", 1)
    _require(is_whole(cores, 1), "'cores' in its meta is no number of cores")
    for name in SECONDS:
        _require(_is_time(meta.get(name, 0.0)), f"{name!r} in its meta is no number of seconds")
    return meta


def _entries(header: Any) -> tuple[int, dict[str, Any]]:
    """`(version of the format, meta)`."""
    match header:
        case {"format": int(version), "meta": dict(meta)} if version is not True:
            return version, meta
    raise Unreadable("its header is that of something else")


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < np.inf


def check_shapes(facts: Mapping[str, ArrayFacts]) -> None:
    """Raise `Unreadable` unless arrays of these dtypes and shapes can be the tables of `Runs`.

    Args:
      facts: by name; that of an entry of a dict begins with the name of the dict, as `info/phases`.
    """
    for name in AXES:
        there = name in facts or name in OPTIONAL
        there = there or (name in OF_REGRET and not facts.keys() & set(OF_REGRET))
        _require(there, f"it has no {name!r}")
    lengths: dict[str, tuple[int, str]] = {}
    for name, (dtype, shape, *_) in facts.items():
        axes = _axes(name, dtype.kind)
        _require(len(shape) == len(axes), f"{name!r} must have {len(axes)} axes, got {len(shape)}")
        for axis, length in zip(axes, shape, strict=True):
            known, other = lengths.setdefault(axis, (length, name))
            _require(known == length, f"{name!r} has {length} entries where {other!r} has {known}")


def _axes(name: str, kind: str) -> str:
    """A letter for each axis of a table with numbers of this kind."""
    allowed = AXES.get(name) or DICTS.get(name.partition("/")[0], {})
    _require(bool(allowed), f"it has {name[:40]!r}, which runs have not")
    words = " or ".join(KINDS[kind] for kind in allowed)
    _require(kind in allowed, f"{name!r} must hold {words}")
    return allowed[kind]


def check_entries(tables: Mapping[str, np.ndarray]) -> None:
    """Raise `Unreadable` where tables of fitting shapes hold what no run can have."""
    numbers, pulls, arm_pulls = (tables[name] for name in ("replication", "pulls", "arm_pulls"))
    _require(bool((numbers >= 0).all()), "'replication' holds a number below 0")
    _require(bool((np.diff(numbers) > 0).all()), "'replication' must increase from entry to entry")
    _require(bool((pulls >= 0).all()), "'pulls' holds a number below 0")
    _require(bool((arm_pulls >= 0).all()), "'arm_pulls' holds a number below 0")
    wrong = np.flatnonzero(arm_pulls.sum(1) != pulls)[:1]
    _require(not wrong.size, f"'arm_pulls' do not sum to 'pulls' in replication {numbers[wrong]}")
    answer = tables["answer"]
    indices = answer.dtype.kind == "i"
    _require(not (indices and (answer < LEAST_ANSWER).any()), "'answer' holds one that is no index")
    if "regret" in tables:
        rounds = tables["rounds"]
        _require(bool(rounds.size and rounds[0] > 0), "'rounds' must begin at 1 or later")
        _require(bool((np.diff(rounds) > 0).all()), "'rounds' must increase from entry to entry")
        _require(bool((pulls >= rounds[-1]).all()), "'rounds' go on after the last pull")
        _require(bool(np.isfinite(tables["regret"]).all()), "'regret' holds one that is not finite")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise Unreadable(text)
