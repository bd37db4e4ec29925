"""The documentation in a browser: its pages on a phone, its formulas, and what its search finds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from browser import found_by, needed

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = needed
PHONE = 390  # pixels
MILLISECONDS = 200  # of virtual time for a page
# Loads the pages one after the other in a frame. What scrolls in a box of its own may be wide.
SCRIPT = """
const pages = PAGES, found = {};
const frame = document.createElement('iframe');
frame.style.cssText = 'width:PHONEpx;height:800px;border:0';
const look = (page) => {
  const inside = frame.contentDocument, root = inside.documentElement;
  const all = (what) => [...inside.querySelectorAll(what)];
  const style = (element) => frame.contentWindow.getComputedStyle(element);
  found[page] = {
    width: root.clientWidth,
    whole: Math.max(root.scrollWidth, inside.body.scrollWidth),
    headings: all('.bd-main h1, .bd-main h2, .bd-main h3, .bd-main h4')
      .map((heading) => style(heading).fontSize),
    formulas: all('.formula').length,
    unreadable: all('.formula').filter((formula) => !formula.querySelector('.katex')).length
      + all('.katex-error').length,
    underlined: all('.bd-article a code').filter(
      (code) => style(code).textDecorationLine !== 'none').length,
    lost: all('.bd-article img').filter((img) => img.complete && !img.naturalWidth).length,
    links: all('#search-results a').map((link) => link.getAttribute('href')),
  };
};
onload = async () => {
  document.body.append(frame);
  for (const page of pages) {
    await new Promise((ready) => { frame.onload = ready; frame.src = 'SITE/' + page; });
    await new Promise((ready) => setTimeout(ready, WAIT));
    look(page);
  }
  document.title = JSON.stringify(found);
};
"""
# What users would type who see what `Troubleshooting` is about.
WORDS = (
    "does not stop",
    "compiles for ever",
    "compiles forever",
    "nothing happens",
    "one core",
    "Ctrl-C",
    "out of memory",
    "random numbers frozen",
    "numbers differ",
    "which engine",
    "plot not shown",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx_book_theme")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(DOCS), str(folder)]
    subprocess.run(command, check=True, timeout=600)
    return folder


def seen(site, folder, pages, wait):
    script = SCRIPT.replace("PAGES", json.dumps(pages)).replace("PHONE", str(PHONE))
    script = script.replace("SITE", site.as_uri()).replace("WAIT", str(wait))
    return found_by(script, folder, f"--virtual-time-budget={10 * wait * len(pages)}")


@pytest.fixture(scope="module")
def looked(site, tmp_path_factory):
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if not page.startswith("_static")]
    found = seen(site, tmp_path_factory.mktemp("looked"), pages, MILLISECONDS)
    assert list(found) == pages
    return found


def test_no_page_is_wider_than_a_phone(looked):
    wide = {page: one["whole"] for page, one in looked.items() if one["whole"] > one["width"]}
    assert not wide


def test_headings_have_three_sizes_in_all(looked):
    assert len({size for one in looked.values() for size in one["headings"]}) == 3


def test_formulas_pictures_and_names_can_be_read(looked):
    assert sum(one["formulas"] for one in looked.values()) > 100
    for page, one in looked.items():
        assert (one["unreadable"], one["underlined"], one["lost"]) == (0, 0, 0), page


def test_the_search_finds_troubleshooting_by_the_words_of_users(site, tmp_path):
    pages = [f"search.html?q={words.replace(' ', '+')}" for words in WORDS]
    found = seen(site, tmp_path, pages, 10 * MILLISECONDS)
    for words, page in zip(WORDS, pages, strict=True):
        first = found[page]["links"][0]
        assert first.startswith("how_to/troubleshooting"), (words, first)
