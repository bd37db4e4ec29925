"""The table of algorithms in the README agrees with the docstrings."""

import pytest

from benchmarks import readme


def test_the_table_agrees_with_the_docstrings():
    """`python -m benchmarks.readme` writes the table."""
    text = readme.README.read_text()
    assert readme.with_table(text) == text


def test_a_row_omits_title_and_equation_of_the_paper():
    paper = "T. Fiez, L. Jain, K. Jamieson, L. Ratliff, NeurIPS 2019"
    assert (
        readme.row("rage") == f"| `rage` | best arm, fixed confidence, transductive | {paper} |\n"
    )


def test_a_docstring_without_the_section_setting_is_refused():
    def algorithm(arms):
        """Draws.

        Args:
          arms: features.
        """

    with pytest.raises(ValueError, match="algorithm has no section Setting"):
        readme.section(algorithm, "Setting")
    assert readme.section(algorithm, "Args") == "arms: features."
