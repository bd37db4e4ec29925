"""The table of algorithms in README.md, from the docstrings: `python -m benchmarks.readme`.

A row has the name of a constructor, the section `Setting` of its docstring, and the authors, venue
and year of the paper in its section `Reference`.
"""

import inspect
import re
import sys
from pathlib import Path

from jaxbandits import algorithms

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- algorithms -->\n", "<!-- end of algorithms -->\n"
HEAD = "| Constructor | Setting | Paper |\n| --- | --- | --- |\n"
# Authors, "title", where and when; what follows (an equation, an address) is left out.
PAPER = re.compile(r'^(?P<authors>[^"]+), "[^"]+", (?P<where>.*?\b(?:19|20)\d{2})')


def section(function, name):
    """The text of a section of a docstring, in one line; raises if it has none."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^{name}:\n((?:[ ]+.*\n?)+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"the docstring of {function.__name__} has no section {name}")
    return " ".join(found[1].split())


def paper(function):
    """Authors, venue and year of the paper of an algorithm."""
    reference = section(function, "Reference")
    found = PAPER.match(reference)
    return f"{found['authors']}, {found['where']}" if found else reference.split(". ")[0]


def row(name):
    """The line of an algorithm."""
    function = getattr(algorithms, name)
    return f"| `{name}` | {section(function, 'Setting').rstrip('.')} | {paper(function)} |\n"


def table():
    """All rows, those of one setting together."""

    def order(name):
        return row(name).split("|")[2].strip(" `"), name

    by_setting = sorted(algorithms.__all__, key=order)
    return HEAD + "".join(map(row, by_setting))


def with_table(text):
    """The text with the table between its two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def main():
    """Rewrite the table."""
    old = README.read_text()
    new = with_table(old)
    README.write_text(new)
    print("unchanged" if new == old else f"{README.name} rewritten")


if __name__ == "__main__":
    sys.exit(main())
