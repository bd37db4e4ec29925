"""Tables of figures that grow by a row at a time, as JSON."""

import argparse
import json
from pathlib import Path


def kept(path):
    """The rows of a file, none where there is none."""
    path = Path(path)
    return json.loads(path.read_text()) if path.exists() else []


def stored(rows, key, **wanted):
    """The row whose entries named by `key` are those wanted, or None."""
    return next((row for row in rows if all(row[k] == wanted[k] for k in key)), None)


def keep(path, rows, row, key):
    """The rows with this one in the place of that with the same `key`, written to the file."""
    rows = [old for old in rows if any(old[k] != row[k] for k in key)] + [row]
    Path(path).write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def command(described, *, replications, results):
    """The parser of a table's command: which rows, of how many replications, and its file."""
    parser = argparse.ArgumentParser(description=described.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words that a row has to contain")
    parser.add_argument("--replications", type=int, default=replications)
    parser.add_argument("--out", type=Path, default=results)
    return parser


def whole_table(arguments, described, rows, *, replications, results, about=None):
    """The command of a table that is played whole: `rows(replications)`, shown and written.

    `about` says what else the file holds; by default the number of replications.
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
