"""Tables of results in JSON files, which grow by one row at a time."""

import argparse
import json
from pathlib import Path


def kept(path):
    """The rows of a file; none if the file does not exist."""
    path = Path(path)
    return json.loads(path.read_text()) if path.exists() else []


def stored(rows, key, **wanted):
    """The row whose columns `key` have the values `wanted`, or None."""
    return next((row for row in rows if all(row[k] == wanted[k] for k in key)), None)


def keep(path, rows, row, key):
    """Write the rows to the file with this row added, or in place of the one with the same `key`.

    Returns all rows.
    """
    rows = [old for old in rows if any(old[k] != row[k] for k in key)] + [row]
    Path(path).write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def command(described, *, replications, results):
    """A parser of the command line: which rows, how many replications, and the file."""
    parser = argparse.ArgumentParser(description=described.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=[], help="only rows that contain all of these words"
    )
    parser.add_argument("--replications", type=int, default=replications)
    parser.add_argument("--out", type=Path, default=results)
    return parser


def whole_table(arguments, described, rows, *, replications, results, about=None):
    """Compute all rows of a table, `rows(replications)`; print them and write them to the file.

    `about` gives further entries of the file; by default the number of replications.
    """
    parser = argparse.ArgumentParser(description=described.splitlines()[0])
    parser.add_argument("--replications", type=int, default=replications)
    parser.add_argument("--out", type=Path, default=results)
    asked = parser.parse_args(arguments)
    found = []
    for row in rows(asked.replications):
        found.append(row)
        print(row, flush=True)
    about = {"replications": asked.replications} if about is None else about
    asked.out.write_text(json.dumps({**about, "rows": found}, indent=1) + "\n", encoding="utf-8")
