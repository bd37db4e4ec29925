"""Notebooks run from top to bottom at small sizes, and are stored without outputs."""

import shutil
from operator import attrgetter
from pathlib import Path

import nbformat
import pytest
from params import params
from run_settings import child

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LONG = ("digits_that_pay", "page_layouts")  # they compile several programs each
EXECUTE = """
from pathlib import Path
import nbformat
from nbclient import NotebookClient
path = Path({path!r})
book = nbformat.read(path, as_version=4)
NotebookClient(book, resources={{"metadata": {{"path": path.parent}}}}).execute()
nbformat.write(book, path)
"""


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


@pytest.mark.parametrize("path", params(NOTEBOOKS, slow=LONG, name=attrgetter("stem")))
def test_a_notebook_runs_and_draws_its_figures(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXBANDITS_NOTEBOOK_SIZE", "20")
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    copy = shutil.copy(path, tmp_path)
    # A process of its own: the kernel's client warns of what this project treats as errors.
    child(EXECUTE.format(path=str(copy)))
    outputs = [o for c in nbformat.read(copy, as_version=4).cells for o in c.get("outputs", ())]
    assert outputs
    texts = [o["data"].get("text/plain", "") for o in outputs if o.output_type == "display_data"]
    drawn = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(drawn) == sum(text.startswith("<Figure") for text in texts)  # not just printed
