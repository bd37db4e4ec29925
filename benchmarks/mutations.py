"""Mutation testing: which small changes of the package do its tests notice?

`python -m benchmarks.mutations` draws changes at random (`<=` for `<`, `+` for `-`, another
constant, a transpose left out, ...), makes each in a copy of the repository, and runs the tests
that belong to the changed file. A change with which all tests pass is a survivor: either a test is
missing, or the change has no observable effect. Results are stored after each change, and the same
command continues where it stopped.

A change is caught if a test fails, or if the tests take `SLOW` times as long as without it (a loop
that does not end). The times without a change, and the tests that fail without one, are measured
first and stored in the folder `--work`, with compiled programs. `--show` prints the survivors of
the stored results; `--again` repeats them, after new tests were written; `--all` repeats every
stored change whose expression still exists, after tests were rewritten, and drops the others; it
too continues where it stopped. `EQUIVALENT` lists survivors that need no test.
"""

import argparse
import collections
import functools
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import NamedTuple

from .mutants import changed, mutants

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutations.json"
# How many of 150 changes are in each part of the package.
SHARES = {
    "kernels": 60,
    "algorithms": 48,
    "compilers": 6,
    "engine": 14,
    "sweeps": 12,
    "live": 8,
    "": 2,  # files at the root of the package
}
# The time limit: so many times the seconds without the change, at least so many seconds.
SLOW, LEAST = 2.5, 60.0
# Files, by name or by folder and name, whose tests are in files of other names.
OTHERS = {
    "episode": ("test_simulate", "test_lanes", "test_protocol", "test_endings"),
    "device_loop": ("test_simulate", "test_lanes", "test_same_numbers", "test_endings"),
    "host_loop": ("test_lanes", "test_simulate", "test_same_numbers"),
    "choices": ("test_lanes", "test_engine"),
    "traits": ("test_simulate", "test_endings", "test_read_anew"),
    "traces": ("test_read_anew",),
    "traced_episodes": ("test_read_anew",),
    "named": ("test_kept_programs", "test_read_anew"),
    "api": ("test_simulate", "test_lanes", "test_bad_input"),
    "schedules": ("test_contextual",),
    "partition": ("test_simulate", "test_bad_input"),
    "problems": ("test_simulate", "test_contextual"),
    "glm": ("test_kernels_at_random", "test_units", "test_composing", "test_twin_glm"),
    "parameters": ("test_bad_input", "test_bad_budgets"),
    "core": ("test_simulate", "test_own_algorithms"),
    "debugging": ("test_own_algorithms",),
    "control": ("test_lanewise", "test_lanes"),
    "shared_call": ("test_shared_call", "test_lanewise"),
    "private_folders": ("test_cache", "test_security", "test_native_build"),
    "progress": ("test_simulate", "test_cli"),
    "signatures": ("test_bad_input", "test_sweep_spec"),
    "bounds": ("test_dataset",),
    "cells": ("test_sweep_only", "test_sweep_spec", "test_sweep_store"),
    "identity": ("test_stored", "test_sweep_spec", "test_files"),
    "locks": ("test_sweep_folder", "test_live_files"),
    "grid": ("test_sweep_store",),
    "local": ("test_sweep_store", "test_sweep_ahead"),
    "description": ("test_sweep_folder", "test_sweep_store"),
    "cell_progress": ("test_sweep_store", "test_sweep_until"),
    "newton": ("test_irls", "test_likelihood_set"),
    "barrier": ("test_xy_design", "test_xy_newton"),
    "by_name": ("test_xy_many", "test_xy_design", "test_designs_by_name"),
    "design/checks": ("test_units", "test_bad_input", "test_composing", "test_designs_by_name"),
    "design/optimal": ("test_units", "test_bad_input", "test_composing", "test_designs_by_name"),
    "design/directions": ("test_xy_design", "test_xy_many"),
    "gap_index": ("test_twins", "test_twin_top_m"),
    "elimination": ("test_twin_gse", "test_twin_od_linbai"),
    "deep": ("test_twin_deep_fpl", "test_twin_rep_glm_fpl"),
    "lingape": ("test_twins",),
    "rounding_by_name": ("test_efficient_rounding", "test_twin_rage"),
    "spec": ("test_sweep_spec",),
    "radius": ("test_logistic_radius", "test_glm_laws"),
    "budgeted": ("test_at_budget", "test_endings"),
    "diagnosed": ("test_watched",),
    "comparisons": ("test_twins", "test_twin_top_m"),
    "pair_selection": ("test_twin_top_m",),
    "panels": ("test_plot",),
}
OF_FOLDERS = {
    "compilers": ("test_lanewise", "test_engine"),
    "live": ("test_live", "test_live_files", "test_live_input", "test_live_contextual"),
}
MOST_TESTS = 6  # files of tests for one change, in addition to these
DEFAULTS = ("tests/test_defaults.py",)
# Survivors without an observable effect, by the digests of their changes, with the reason.
EQUIVALENT = {
    "46200bb8d3df": "the search for c begins with a wider bracket and ends at the same root",
    "26dbe8598457": "differs only if a number equals the limit exactly",
    "1938a6c1c3e5": "a design does not depend on the common unit of all features",
    "0fafb225d423": "chooses between two ways to compute the same sum that cost the same",
    "be691a928756": "multiplies or divides by 1",
    "f217e368b38e": "differs only if a width equals a gap exactly",
    "3b95d36390f9": "only a hint for the compiler",
    "e6f25f325007": "a limit of twenty million entries is one larger",
    "4e80e9bf9d3f": "the message of a process is never empty",
    "a2913355458f": "differs only if exactly the requested time has passed",
    "fae9560b03d2": "chooses between two ways to look up one of two entries",
    "da5902e583ec": "a loss that is equal for all arms changes no weight of a hedge",
}


def part_of(file):
    """The folder of the package that contains a file, "" for its root."""
    folders = file.split("/")[1:-1]
    return folders[0] if folders else ""


def chosen(number, seed, known=()):
    """Random changes: for each part of the package as many as its share.

    Every change of a part is equally likely. `known` are `(name, file)` of earlier changes, which
    are not chosen again but count.
    """
    played = collections.Counter(part_of(file) for _, file in known)
    names = {name for name, _ in known}
    by_part = collections.defaultdict(list)
    for path in sorted((ROOT / "jaxbandits").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if part_of(file) in SHARES and path.name != "__init__.py":
            by_part[part_of(file)] += mutants(file, path.read_text())
    whole = sum(SHARES.values())
    for part, share in SHARES.items():
        count = round(number * share / whole) - played[part]
        left = [mutant for mutant in by_part[part] if mutant.name not in names]
        # An order that does not change when other files are edited.
        left.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).hexdigest())
        yield from left[: max(0, count)]


def once_more(rows):
    """The changes of those rows whose expressions still exist."""
    for row in rows:
        path = ROOT / row["file"]
        every = mutants(row["file"], path.read_text()) if path.exists() else ()
        yield from (mutant for mutant in every if mutant.name == row["name"])


@functools.cache
def _texts(folder):
    """`{path: text}` of the files of tests, or of the files of the package."""
    pattern = "test_*.py" if folder == "tests" else "*.py"
    return {path: path.read_text() for path in sorted((ROOT / folder).rglob(pattern))}


def tests_of(file):
    """The files of tests that belong to a file, by their names or because they use it."""
    stem = Path(file).stem
    every = _texts("tests")
    named = [path for path in every if path.stem in (f"test_{stem}", f"test_twin_{stem}")]
    within = f"{Path(file).parent.name}/{stem}"
    others = OF_FOLDERS.get(part_of(file), ()) + OTHERS.get(within, OTHERS.get(stem, ()))
    named += [path for path in every if path.stem in others]
    uses = re.compile(rf"(import [^\n]*\b{stem}\b|\bjb\.(\w+\.)?{stem}\b|\b{stem}\.)")
    users = [path for path, text in every.items() if stem in text and uses.search(text)]
    users.sort(key=lambda path: -len(uses.findall(every[path])))
    found = dict.fromkeys(path.relative_to(ROOT).as_posix() for path in [*named, *users])
    if not found:  # then the tests of the files that import it
        for path, text in _texts("jaxbandits").items():
            if re.search(rf"import [^\n]*\b{stem}\b", text):
                found |= dict.fromkeys(tests_of(path.relative_to(ROOT).as_posix()))
    return [*list(found)[:MOST_TESTS], *DEFAULTS]


class Copy:
    """A copy of the repository in which files are changed and tests run."""

    def __init__(self, folder, cache):
        self.folder, self.cache = Path(folder), cache
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.folder / name)

    def run(self, files, *how, limit=None):
        """`(exit status, seconds)` of the tests in files; the status is None beyond the limit."""
        own = os.environ | {
            "PYTHONPATH": str(self.folder),
            "JAX_COMPILATION_CACHE_DIR": str(self.cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        }
        began = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *how, *files],
                cwd=self.folder,
                env=own,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, time.monotonic() - began
        return done.returncode, time.monotonic() - began

    def outcome(self, mutant, files, how, limit):
        """The result of the tests with a change, "passed", "failed" or "slow", and the seconds."""
        path = self.folder / mutant.file
        before = path.read_text()
        path.write_text(changed(mutant, before))
        try:
            status, seconds = self.run(files, "-x", "-n0", *how, limit=limit)
        finally:
            path.write_text(before)
        return ("slow" if status is None else "failed" if status else "passed"), seconds


class Unchanged(NamedTuple):
    """The tests of a file without any change."""

    seconds: float
    failing: list  # names of tests that fail anyway and are therefore not run


def unchanged(files, jobs, work):
    """`{file: Unchanged}`, measured only once; lacks files all of whose tests fail."""
    stored = work / "unchanged.json"
    known = json.loads(stored.read_text()) if stored.exists() else {}
    missing = [file for file in files if file not in known]
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            here = Copy(Path(folder) / "copy", work / "cache")
            here.run(missing, f"-n{jobs}", f"--junitxml={report}")
            known |= dict.fromkeys(missing, (0.0, [])) | found_in(report)
        stored.write_text(json.dumps(known, indent=1) + "\n")
    return {file: Unchanged(*known[file]) for file in files}


def found_in(report):
    """`{file: Unchanged}` from a JUnit report of pytest."""
    found = {}
    for test in xml.parse(report).iter("testcase"):
        file = test.get("classname").replace(".", "/") + ".py"
        before = found.get(file, Unchanged(0.0, []))
        if any(test.find(word) is not None for word in ("failure", "error")):
            found[file] = before._replace(failing=[*before.failing, test.get("name")])
        else:
            found[file] = before._replace(seconds=before.seconds + float(test.get("time")))
    return found


def campaign(todo, jobs, work, keep):
    """Test all changes with `jobs` threads; calls `keep(row)` after each one."""
    tests = {mutant.file: tests_of(mutant.file) for mutant in todo}
    wanted = dict.fromkeys(name for file in tests for name in (file, *tests[file]))
    before = unchanged(list(wanted), jobs, work)
    waiting, lock = queue.SimpleQueue(), threading.Lock()
    for mutant in todo:
        waiting.put(mutant)

    def play():
        with tempfile.TemporaryDirectory() as folder:
            here = Copy(folder, work / "cache")
            while True:
                try:
                    mutant = waiting.get_nowait()
                except queue.Empty:
                    return
                files = [file for file in (mutant.file, *tests[mutant.file]) if file in before]
                files.sort(key=lambda file: before[file].seconds)
                limit = max(LEAST, SLOW * sum(before[file].seconds for file in files))
                failing = [f"{file}::{name}" for file in files for name in before[file].failing]
                left_out = [f"--deselect={name}" for name in failing]
                found = here.outcome(mutant, files, left_out, limit)
                with lock:
                    keep(row_of(mutant, files, *found))

    threads = [threading.Thread(target=play) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def row_of(mutant, tests, outcome, seconds):
    """The stored row of a change."""
    facts = {name: getattr(mutant, name) for name in ("name", "file", "line", "before", "after")}
    return facts | {"outcome": outcome, "seconds": round(seconds, 1), "tests": tests}


def described(row):
    """A change in one line of text."""
    return f"{row['outcome']:8} {row['file']}:{row['line']}  {row['before']} -> {row['after']}"


def survives(row):
    """Whether no test notices the change although it has an observable effect."""
    return row["outcome"] == "passed" and row["name"] not in EQUIVALENT


def summary(rows):
    """Counts of the outcomes, and the shares of changes caught, now and at their first test."""
    same = sum(row["name"] in EQUIVALENT for row in rows if row["outcome"] == "passed")
    counts = collections.Counter(row["outcome"] for row in rows)
    caught, most = counts["failed"] + counts["slow"], max(1, len(rows) - same)
    first = sum(row.get("first", row["outcome"]) != "passed" for row in rows)
    return dict(counts) | {
        "equivalent": same,
        "share_caught": round(caught / most, 4),
        "share_caught_at_first": round(first / most, 4),
    }


def main(arguments=None):
    """Test changes, store the results, and print the survivors and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--most", type=int, help="test at most so many of the remaining changes now"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=ROOT / ".mutations")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(arguments)
    stored = json.loads(options.results.read_text()) if options.results.exists() else {"rows": []}
    rows = stored["rows"]
    if not options.show:
        if options.all:
            left = {mutant.name: mutant for mutant in once_more(rows)}
            rows[:] = [row for row in rows if row["name"] in left]
            times = {row["name"]: row.get("repeated", 0) for row in rows}
            todo = [left[name] for name in times if times[name] == min(times.values())]
        elif options.again:
            todo = list(once_more(filter(survives, rows)))
        else:
            todo = list(
                chosen(options.number, options.seed, [(r["name"], r["file"]) for r in rows])
            )

        def keep(row):
            index = next((i for i, old in enumerate(rows) if old["name"] == row["name"]), len(rows))
            for old in rows[index : index + 1]:
                row["first"] = old.get("first", old["outcome"])
                row["repeated"] = old.get("repeated", 0) + options.all
            rows[index : index + 1] = [row]
            text = json.dumps({"summary": summary(rows), "rows": rows}, indent=1)
            options.results.write_text(text + "\n")
            print(described(row), flush=True)

        options.work.mkdir(exist_ok=True)
        campaign(todo[: options.most], options.jobs, options.work.resolve(), keep)
    for row in rows:
        if survives(row):
            print(described(row))
    print(summary(rows))


if __name__ == "__main__":
    main()
