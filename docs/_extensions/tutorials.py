"""Copies the notebooks beside the page that lists them, before the build reads its sources."""

import json
import shutil
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def title(path):
    """The text of the first heading of a notebook."""
    for cell in json.loads(path.read_text())["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line[2:].strip()
    raise ValueError(f"{path.name} has no heading")


def copy(app):
    folder = Path(app.srcdir) / "tutorials"
    for old in folder.glob("*.ipynb"):
        if not (NOTEBOOKS / old.name).exists():
            old.unlink()
    for path in NOTEBOOKS.glob("*.ipynb"):
        title(path)
        copied = folder / path.name
        if not copied.exists() or copied.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copied)


def setup(app):
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
