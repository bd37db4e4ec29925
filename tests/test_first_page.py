"""README and site begin with what the package prints and draws."""

import re

import pytest

from benchmarks.first_page import PAGES, PICTURE, blocks, executed

PNG = b"\x89PNG\r\n\x1a\n"


def words(line):
    return re.split("  +", line)


def test_readme_and_site_begin_with_the_same_block():
    one, other = map(blocks, PAGES)
    assert one == other
    assert PICTURE.read_bytes().startswith(PNG)
    assert all(PICTURE.name in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.slow
def test_the_first_block_prints_such_a_table_and_draws_a_picture():
    code, printed = blocks(PAGES[0])
    few = code.replace("replications=1000", "replications=20")
    assert few != code
    found, picture = executed(few)
    assert picture.startswith(PNG)
    shown, expected = found.splitlines(), printed.splitlines()
    assert len(shown) == len(expected)
    assert words(shown[1]) == words(expected[1])
    for line, same in zip(shown[2:], expected[2:], strict=True):
        assert words(line)[:2] == words(same)[:2]
