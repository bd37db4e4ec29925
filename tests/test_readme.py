"""The table of algorithms in the README is what the docstrings say."""

import pytest

from benchmarks import readme


def test_the_table_is_that_of_the_docstrings():
    """`python -m benchmarks.readme` writes it."""
    text = readme.README.read_text()
    assert readme.with_table(text) == text


def test_a_row_leaves_out_title_and_equation():
    paper = "T. Fiez, L. Jain, K. Jamieson, L. Ratliff, NeurIPS 2019"
    assert (
        readme.row("rage") == f"| `rage` | best arm, fixed confidence, transductive | {paper} |\n"
    )


def test_a_docstring_without_a_setting_is_refused():
    def algorithm(arms):
        """Draws.

        Args:
          arms: features.
        """

    with pytest.raises(ValueError, match="algorithm has no section Setting"):
        readme.section(algorithm, "Setting")
    assert readme.section(algorithm, "Args") == "arms: features."
