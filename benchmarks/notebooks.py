"""Executes the notebooks at their full size and stores their outputs.

    python -m benchmarks.notebooks [NAME ...]

A notebook is replaced only if all its cells have run. What differs from one execution to the next
without need is not stored: times, addresses of objects, paths of this machine. A digest of the
sources is stored beside the outputs, so that a test notices outputs of other sources.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from jaxbandits.system.files import replacing

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
# The assignment of a notebook that says how much is played.
SIZE = re.compile(r"^(replications|visitors|size|most) = \d+(?= *(?:#|$))", re.MULTILINE)
LIMIT = 600  # seconds for a cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Folders of users, programs and temporary files, and drives of Windows.
PATHS = re.compile(
    rf"(?:{re.escape(str(ROOT))}|/(?:home|root|tmp|var|usr|opt|mnt|srv|Users|private)/|\b[A-Z]:\\)"
    r"[^\s'\"<>,)]*"
)
ADDRESSES = re.compile(r" at 0x[0-9a-f]+")
# As `Runs` prints them.
SECONDS = re.compile(r"(?:, \d+ cores)?, [\d.e+-]+ s(?: after [\d.e+-]+ s of compiling)?")


def executed(book, folder=FOLDER):
    """A copy of a notebook with the outputs of all its cells, run in order in a new kernel.

    Args:
      book: a notebook of `nbformat`.
      folder: where the kernel works.
    Raises:
      nbclient.exceptions.CellExecutionError: a cell failed.
    """
    book = nbformat.from_dict(book)
    options = {
        "resources": {"metadata": {"path": str(folder)}},
        "timeout": LIMIT,
        "coalesce_streams": True,
    }
    NotebookClient(book, kernel_name="python3", record_timing=False, **options).execute()
    return tidied(book)


def resized(book, sizes):
    """A copy of a notebook that plays less, or more.

    Args:
      book: a notebook of `nbformat`.
      sizes: a whole number for each name that `SIZE` finds.
    Raises:
      ValueError: not one assignment says how much the notebook plays.
    """
    book = nbformat.from_dict(book)
    found = 0
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.source, some = SIZE.subn(lambda m: f"{m[1]} = {sizes[m[1]]}", cell.source)
            found += some
    if found != 1:
        raise ValueError(f"a notebook must have one size, got {found}")
    return book


def tidied(book):
    """A copy of an executed notebook, without what is particular to this execution."""
    book = nbformat.from_dict(book)
    book.metadata = nbformat.from_dict(METADATA | {"jaxbandits": {"sources": digest(book)}})
    for cell in book.cells:
        cell.metadata = nbformat.from_dict({})
        for output in cell.get("outputs", ()):
            output.update(_map_texts(output, _without_machine))
    return book


def digest(book):
    """A digest of the sources of a notebook: kinds and texts of its cells, in order."""
    sources = [(cell.cell_type, cell.source) for cell in book.cells]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def machine_paths(book):
    """Paths of a machine in the outputs of a notebook."""
    found = []
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            _map_texts(output, lambda text: found.extend(PATHS.findall(text)) or text)
    return found


def _without_machine(text):
    text = PATHS.sub(lambda path: Path(path[0]).name, text.replace(f"{ROOT}/", ""))
    return SECONDS.sub("", ADDRESSES.sub("", text))


def _map_texts(thing, change):
    """The same nested dicts and lists with other texts; images are left as they are."""
    if isinstance(thing, str):
        return change(thing)
    if isinstance(thing, list):
        return [_map_texts(one, change) for one in thing]
    if isinstance(thing, dict):
        return {
            name: one if name.startswith("image/") else _map_texts(one, change)
            for name, one in thing.items()
        }
    return thing


def write(book, path):
    """Store a notebook; a reader never sees half of it."""
    with replacing(path) as new:
        new.write_text(nbformat.writes(book) + "\n")


def main(arguments=None):
    """Execute the notebooks named, by default all of them."""
    known = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(known)}")
    names = parser.parse_args(arguments).names or known
    for name in set(names) - set(known):
        parser.error(f"NAME must be one of {', '.join(known)}, got {name!r}")
    os.environ["PYTHONPATH"] = str(ROOT)
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        start = time.perf_counter()
        write(executed(nbformat.read(path, as_version=4)), path)
        seconds = time.perf_counter() - start
        print(f"{name}: {seconds:.0f} s, {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
