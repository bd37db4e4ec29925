"""The reference has a page for every public name, with an example and a signature to read."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import jaxbandits as jb

EXTENSIONS = Path(__file__).parent.parent / "docs" / "_extensions"


def extension(name):
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages, signatures = extension("reference_pages"), extension("signatures")
docstrings = extension("docstrings")
LISTED = [name for names in pages.groups().values() for name in names]


def named(name):
    value = jb
    for part in name.split("."):
        value = getattr(value, part)
    return value


NAMES = [name for name in LISTED if callable(named(name))]


def test_every_public_name_has_an_example():
    """The doctests run them."""
    lacking = [name for name in NAMES if ">>> " not in inspect.getdoc(named(name))]
    assert not lacking


def test_a_new_public_name_needs_a_group(monkeypatch):
    monkeypatch.setattr(jb, "__all__", [*jb.__all__, "unheard_of"])
    monkeypatch.setattr(jb, "unheard_of", len, raising=False)
    with pytest.raises(ValueError, match="unheard_of"):
        pages.groups()


def test_constants_are_described_by_their_comments():
    pytest.importorskip("sphinx")
    constants = [name for name in LISTED if not callable(named(name))]
    assert "theory.TOLERANCE" in constants
    for name in constants:
        lines = [float.__doc__]
        value = named(name)
        docstrings.mended(None, "data", f"jaxbandits.{name}", value, None, lines)
        assert lines[0] != float.__doc__, name
    with pytest.raises(ValueError, match=r"theory\.LIMIT: a public constant needs a comment"):
        docstrings.comment_on("jaxbandits.theory.LIMIT")


def test_signatures_are_those_of_the_source():
    text, returned = signatures.of_function(jb.lingape)
    assert text.startswith("(arms: Arms, *, delta: Probability=0.05, ")
    assert "selection: Literal['greedy', 'ratio']='greedy'" in text
    assert "threshold: Literal['self_normalised', " in text
    assert returned == "Algorithm"
    assert signatures.of_fields(jb.Move) == ("(arm, count, done, answer, info=...)", "")


@pytest.mark.parametrize(
    "comment",
    ["draws of each; None: one each", "int: index into targets, or bool: a set", "rounds played"],
)
def test_no_part_of_a_comment_on_a_field_becomes_its_type(comment):
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    lines = [comment, "or more"]
    docstrings.mended(None, "attribute", "jaxbandits.Move.count", None, None, lines)
    shown = str(napoleon.GoogleDocstring(lines, what="attribute"))
    assert shown.split() == [*comment.split(), "or", "more"]


def test_every_signature_can_be_read():
    for name in NAMES:
        value = named(name)
        what = "class" if inspect.isclass(value) else "function"
        text, _ = signatures.from_source(None, what, name, value, None, None, None)
        assert " at 0x" not in text, name
        assert "Annotated" not in text, name


def test_pages_with_formulas_find_all_that_draws_them():
    pytest.importorskip("docutils")
    mathematics, static = extension("mathematics"), EXTENSIONS.parent / "_static"
    style = (static / mathematics.STYLE).read_text()
    fonts = set(re.findall(r"url\(([^)]+)\)", style))
    assert len(fonts) == 20
    needed = [*mathematics.FILES, mathematics.STYLE, *(f"katex/{font}" for font in fonts)]
    assert [name for name in needed if not (static / name).is_file()] == []
