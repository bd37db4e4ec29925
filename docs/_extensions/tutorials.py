"""Copies the notebooks beside the page that lists them, before the build reads its sources."""

import shutil
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def copy(app):
    folder = Path(app.srcdir) / "tutorials"
    for old in folder.glob("*.ipynb"):
        if not (NOTEBOOKS / old.name).exists():
            old.unlink()
    for path in NOTEBOOKS.glob("*.ipynb"):
        copied = folder / path.name
        if not copied.exists() or copied.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copied)


def setup(app):
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
