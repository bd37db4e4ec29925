"""Tables of figures that grow by a row at a time, as JSON."""

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
