"""The pages of the documentation: their Python runs, and their links and names exist."""

import pkgutil
import re
import tomllib
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

import jaxbandits as jb
from jaxbandits import sweeps

DOCS = Path(jb.__file__).parents[1] / "docs"
FOLDERS = ("how_to", "explanation")
PAGES = sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md"))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
TOML = re.compile(r"^```toml\n(.*?)^```$", re.M | re.S)
FENCED = re.compile(r"^(\s*)```.*?^\1```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(r"\{py:(?:func|class|meth|attr|mod|data)\}`(?:[^`<]*<)?~?([\w.]+)>?`")
MARK = re.compile(r"<!-- /?f.*?-->")  # of figures: `benchmarks.pages`
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)
# Options of JAX that a page sets.
OPTIONS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
ELSEWHERE = ("http://", "https://", "mailto:", "#")


def python_in(text):
    """The Python blocks of a page, each with its lines where they are in the page."""
    return ["\n" * text.count("\n", 0, x.start(1)) + x[1] for x in PYTHON.finditer(text)]


def name_of(page):
    return f"{page.parent.name}-{page.stem}"


@pytest.fixture
def _options_as_before():
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.mark.slow
@pytest.mark.usefixtures("_options_as_before")
@pytest.mark.parametrize("page", [p for p in PAGES if python_in(p.read_text())], ids=name_of)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in python_in(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


def test_sweep_files_in_the_pages_are_accepted():
    # Those on plugins need the page's own constructors: `test_plugins`.
    pages = [page for page in PAGES if page.stem != "plugins"]
    texts = [text for page in pages for text in TOML.findall(page.read_text())]
    assert texts
    for text in texts:
        sweeps.parse(tomllib.loads(text))


def broken_links(page):
    """Links of a page to files that do not exist."""
    found = LINK.findall(FENCED.sub("", page.read_text()))
    inside = [link.partition("#")[0] for link in found if not link.startswith(ELSEWHERE)]
    return [link for link in inside if not (page.parent / link).is_file()]


def unknown_names(page):
    """Names of the package in a page that it does not have."""

    def exists(name):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            return False
        return True

    return [name for name in NAME.findall(page.read_text()) if not exists(name)]


def test_links_and_names_of_all_pages_exist():
    pages = sorted(DOCS.rglob("*.md"))
    assert len(PAGES) < len(pages)
    assert {page.name: found for page in pages if (found := broken_links(page))} == {}
    assert {page.name: found for page in pages if (found := unknown_names(page))} == {}


def test_a_link_or_a_name_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "[a](page.md), [b](other.md#part), [c](https://example.org)\n"
        "{py:func}`jaxbandits.simulate`, {py:meth}`~jaxbandits.Runs.summary`,\n"
        "{py:class}`runs <jaxbandits.Ruins>`\n"
        "```python\ntable[0](missing.md)\n```\n"
    )
    assert broken_links(page) == ["other.md"]
    assert unknown_names(page) == ["jaxbandits.Ruins"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_index_lists_every_page_of_its_folder(folder):
    index = DOCS / folder / "index.md"
    listed = " ".join(TOCTREE.findall(index.read_text())).split()
    others = {page.stem for page in PAGES if page.parent.name == folder} - {"index"}
    assert {name for name in listed if not name.startswith(":")} >= others
    assert {link for link in LINK.findall(index.read_text()) if "/" not in link} == {
        f"{name}.md" for name in others
    }


def test_lines_of_a_block_are_those_of_the_page():
    (block,) = python_in("# Title\n\n```python\none = 1\n```\n\n```text\nno python\n```\n")
    assert block.split("\n").index("one = 1") == 3


def test_troubles_come_first_and_each_has_a_line_of_code():
    index, page = (
        (DOCS / "how_to" / name).read_text() for name in ("index.md", "troubleshooting.md")
    )
    assert LINK.findall(index)[0] == "troubleshooting.md"
    troubles = page.split("\n## ")[1:]
    assert len(troubles) > 10
    assert [text.partition("\n")[0] for text in troubles if not PYTHON.search(text)] == []


def too_long(text):
    """Lines of a page that an editor does not show whole, but those of tables."""
    lines = [MARK.sub("", line) for line in text.split("\n") if not line.startswith("|")]
    return [line for line in lines if len(line) > 200]


def test_lines_of_pages_are_not_long():
    written = {"changelog.md", "deviations.md"}
    pages = [p for p in DOCS.rglob("*.md") if p.name not in written]
    pages = [p for p in pages if "api" not in p.parts and p.parent.name != "reproductions"]
    assert {page.name: long for page in pages if (long := too_long(page.read_text()))} == {}
    assert too_long(f"| {'a' * 300} |\n{'b' * 201}") == ["b" * 201]
