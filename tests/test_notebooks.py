"""Notebooks run at small sizes, and are stored with the outputs of their own sources."""

import base64
import re
import shutil
from operator import attrgetter

import nbformat
import pytest
from params import params
from run_settings import child

from benchmarks.notebooks import FOLDER, ROOT, digest, machine_paths, resized, tidied

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
QUICK = ("first_steps",)  # the others compile several programs each
LONG = (
    "drug_screen",
)  # it draws 100,000 times in each replication: compiled as users' programs are
MOST_CELLS, MOST_BYTES = 15, 400_000
PNG = b"\x89PNG\r\n\x1a\n"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
EXECUTE = """
import nbformat
from benchmarks.notebooks import executed, resized
path, folder = {path!r}, {folder!r}
nbformat.write(executed(resized(nbformat.read(path, as_version=4), {sizes!r}), folder), path)
"""
SMALL = {"replications": 20, "size": 20, "visitors": 160, "most": 400}


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def outputs_of(book):
    return [output for cell in code_cells(book) for output in cell.outputs]


def figures_of(book):
    """Images of a notebook, as bytes."""
    data = [output.get("data", {}) for output in outputs_of(book)]
    return [base64.b64decode(one["image/png"]) for one in data if "image/png" in one]


def texts_of(book):
    """All that is printed or shown as text."""
    outputs = outputs_of(book)
    return [o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs]


def numbers_in(text):
    return {one.replace(",", "") for one in NUMBER.findall(text)}


def unfounded(book):
    """Numbers of the answer, the last cell, that no output and no other cell has."""
    *others, answer = book.cells
    known = [*texts_of(book), *(cell.source for cell in others)]
    return numbers_in(answer.source) - numbers_in("\n".join(known))


def book_of(*sources, text=""):
    """A notebook whose code cells each print a text."""
    cells = [nbformat.v4.new_code_cell(source, execution_count=1) for source in sources]
    for cell in cells:
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
        cell.metadata = nbformat.from_dict({"execution": {"iopub.status.idle": "now"}})
    return nbformat.v4.new_notebook(cells=cells)


def test_the_documentation_lists_every_notebook():
    listed = (ROOT / "docs" / "tutorials" / "index.md").read_text().split()
    assert NOTEBOOKS
    assert {path.stem for path in NOTEBOOKS} <= set(listed)


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=attrgetter("stem"))
def stored(request):
    """The path of a notebook and the notebook."""
    return request.param, read(request.param)


def test_a_notebook_asks_one_question_and_answers_it(stored):
    _, book = stored
    titles = [
        line
        for cell in book.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("# ")
    ]
    assert len(titles) == 1
    first, last = book.cells[0].source, book.cells[-1].source
    assert re.match(r"# [^\n]+\?\n", first)
    assert last.startswith("## Answer\n")
    assert len(book.cells) <= MOST_CELLS
    assert unfounded(book) == set()


def test_a_notebook_is_stored_with_all_outputs_in_order(stored):
    path, book = stored
    cells = code_cells(book)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [
        o for o in outputs_of(book) if o.output_type == "error" or o.get("name") == "stderr"
    ]
    figures = figures_of(book)
    assert figures
    assert all(figure.startswith(PNG) for figure in figures)
    assert path.stat().st_size < MOST_BYTES


def test_stored_outputs_belong_to_the_stored_sources(stored):
    _, book = stored
    message = "the sources have changed: python -m benchmarks.notebooks"
    assert book.metadata.get("jaxbandits", {}).get("sources") == digest(book), message


def test_a_stored_notebook_says_nothing_of_a_machine(stored):
    path, book = stored
    assert machine_paths(book) == []
    assert str(ROOT) not in path.read_text()
    assert tidied(book) == book


@pytest.mark.parametrize("path", params(NOTEBOOKS, always=QUICK, name=attrgetter("stem")))
def test_a_notebook_runs_and_draws_its_figures(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    if path.stem in LONG:
        monkeypatch.delenv("XLA_FLAGS")
        monkeypatch.delenv("JAX_DISABLE_MOST_OPTIMIZATIONS")
    copy = shutil.copy(path, tmp_path)
    # A process of its own: the kernel's client warns of what this project treats as errors.
    child(EXECUTE.format(path=str(copy), folder=str(tmp_path), sizes=SMALL))
    book = read(copy)
    drawn = [text for text in texts_of(book) if text.startswith("<Figure")]
    assert len(figures_of(book)) == len(drawn) == len(figures_of(read(path)))  # not just printed
    assert len(drawn) > 0


def test_other_sources_have_another_digest():
    one, other = book_of("a = 1", "b = 2"), book_of("a = 1", "b = 3")
    assert digest(one) != digest(other)
    assert digest(one) == digest(book_of("a = 1", "b = 2", text="other outputs"))
    assert digest(one) != digest(book_of("a = 1b = 2"))


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("device cpu, 0.466 s after 5.69 s of compiling\n", "device cpu\n"),
        ("device cpu, 1e+02 s\n", "device cpu\n"),
        ("device cpu, 2 cores, 0.466 s after 5.69 s of compiling\n", "device cpu\n"),
        ("<function f at 0x7f2aee8c1d00>", "<function f>"),
        (f"in {ROOT}/notebooks/one.npz", "in notebooks/one.npz"),
        ("in '/tmp/tmpab12/one.npz'", "in 'one.npz'"),
        ("1/2 of 3/4", "1/2 of 3/4"),
    ],
)
def test_what_an_execution_adds_is_removed(printed, kept):
    book = book_of("print()", text=printed)
    found = tidied(book)
    assert found.cells[0].outputs[0].text == kept
    assert found.cells[0].metadata == {}
    assert machine_paths(found) == []
    assert bool(machine_paths(book)) == ("/tmp" in printed or str(ROOT) in printed)


def test_a_notebook_has_one_size_which_no_variable_of_the_environment_sets(stored):
    _, book = stored
    small = resized(book, dict.fromkeys(SMALL, 1))
    changed = [new for old, new in zip(book.cells, small.cells, strict=True) if old != new]
    assert len(changed) == 1
    assert "environ.get" not in "".join(cell.source for cell in book.cells)


def test_a_notebook_without_a_size_or_with_two_is_refused():
    assert resized(book_of("size = 100"), SMALL).cells[0].source == "size = 20"
    for sources in (["a = 1"], ["size = 1", "most = 2"]):
        with pytest.raises(ValueError, match="must have one size"):
            resized(book_of(*sources), SMALL)


def test_a_number_that_nothing_gives_is_noticed():
    book = book_of("steps = 7", text="1200 pulls, 3.5 each")
    book.cells.append(nbformat.v4.new_markdown_cell("## Answer\n1,200 pulls in 7 steps, 3.6 each"))
    assert unfounded(book) == {"3.6"}
