"""The pages on algorithms agree with docstrings and stored results, and their examples run."""

import re

import matplotlib.pyplot as plt
import pytest

from benchmarks import algorithms as measuring
from benchmarks import pages
from jaxbandits import algorithms
from jaxbandits.engine import compile_times
from jaxbandits.intervals import half_width

WRITTEN = [f"algorithms/{page}.md" for page in pages.FAMILIES]
WITH_TEXT = [*WRITTEN, "which_algorithm.md", "glossary.md", "peers.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
RECOMMENDS = re.compile(r"\b(?:[Uu]se|[Tt]ake|[Pp]refer)\b")


def text_of(page):
    return (pages.DOCS / page).read_text(encoding="utf-8")


def test_the_pages_agree_with_docstrings_and_results():
    """`python -m benchmarks.pages` writes them."""
    for path, text in pages.pages().items():
        assert text_of(path) == text, path


def test_an_algorithm_is_on_the_page_of_one_family_at_most():
    members = [name for _, names in pages.FAMILIES.values() for name in names]
    assert len(members) == len(set(members)) == 37
    assert sorted([*members, *pages.others()]) == sorted(algorithms.__all__)


def test_the_index_has_a_row_for_every_algorithm():
    found = re.findall(r"^\| \[?`(\w+)`(?:\]\((\w+)\.md\))? \|", text_of(pages.INDEX), re.MULTILINE)
    wanted = [(name, pages.family_of(name) or "") for name in algorithms.__all__]
    assert sorted(found) == sorted(wanted)


def test_a_change_of_a_docstring_or_of_a_result_changes_the_index(monkeypatch):
    before = pages.index()
    text = algorithms.rage.__doc__
    monkeypatch.setattr(algorithms.rage, "__doc__", text.replace("sub-Gaussian", "normal"))
    changed = pages.index()
    assert changed != before
    monkeypatch.setattr(algorithms.rage, "__doc__", text)
    rows, _ = pages.stored("algorithms")
    rage = next(row for row in rows if row["algorithm"] == "rage")
    monkeypatch.setitem(rage, "pulls_mean", 2 * rage["pulls_mean"])
    assert pages.index() != before


def test_the_interval_of_no_error_is_exact():
    low, high = pages.binomial_interval(0, 1000)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025**0.001)  # (1 - high)^1000 = 0.025


def test_percentages_have_two_digits_that_count():
    shown = [pages.percent(share) for share in (0.0, 0.00018, 0.0123, 0.412, 1.0)]
    assert shown == ["0%", "0.018%", "1.2%", "41%", "100%"]


def test_a_figure_is_what_the_file_holds():
    what = "guarantees / setting=lingape; delta=0.05 / itself.replications / ,"
    text = f"in <!-- f: {what} -->5<!-- /f --> runs"
    assert pages.with_figures(text) == f"in <!-- f: {what} -->20,000<!-- /f --> runs"


def test_a_plus_or_minus_is_half_of_a_95_percent_interval():
    row = pages.measured("regret, logistic", "glm_ucb")
    what = "algorithms / problem=regret, logistic; algorithm=glm_ucb / regret_se / "
    assert float(pages.figure(what + "±1")) == pytest.approx(
        half_width(row["regret_se"], row["replications"]), abs=0.05
    )
    assert pages.result_of("glm_ucb").endswith(f" ± {pages.figure(what + '±1')}")
    assert not re.search(r"± <!-- f: [^>]* / [^±>]+ -->", "".join(map(text_of, WITH_TEXT)))


def test_a_figure_of_no_row_or_of_several_is_refused():
    with pytest.raises(ValueError, match="must choose one row, it chooses 0"):
        pages.figure("guarantees / setting=lingape; delta=0.7 / promised / 2")
    with pytest.raises(ValueError, match="must choose one row, it chooses 3"):
        pages.figure("guarantees / setting=lingape / promised / 2")


def test_text_outside_of_code_is_escaped():
    assert pages._prose("A_0 is `x_k <= 1` or < [2]") == r"A\_0 is `x_k <= 1` or \< \[2\]"


def test_a_docstring_must_say_what_becomes_of_arms_without_features(monkeypatch):
    text = algorithms.rage.__doc__.replace(pages.WITHOUT, "")
    monkeypatch.setattr(algorithms.rage, "__doc__", text)
    with pytest.raises(ValueError, match="Assumptions of rage must end with"):
        pages.assumptions("rage")


def test_every_recommendation_has_a_figure_that_was_measured():
    for block in re.split(r"\n(?=\n|- |\| )", text_of("which_algorithm.md")):
        row = block.startswith("| ") and "](algorithms/" in block  # of the table of first choices
        if row or RECOMMENDS.search(block):
            assert pages.FIGURE.search(block), block


@pytest.mark.parametrize("page", WRITTEN)
def test_a_page_has_the_parts_that_readers_expect(page):
    parts = ["The problem", "The idea", "Members", "Options that matter", "What is proved"]
    parts += ["Cost", "When not to use it", "Example"]
    found = re.findall(r"^## (.*)$", text_of(page), re.MULTILINE)
    assert found[: len(parts)] == parts
    assert found[len(parts) :] in (["Paper"], ["Papers"])
    assert "$$" in text_of(page)
    assert BLOCK.search(text_of(page))


@pytest.mark.parametrize("page", WITH_TEXT)
def test_no_mark_begins_a_line(page):
    """Markdown would take the rest of the line for HTML."""
    assert not re.search(r"^\s*<!-- f:", text_of(page), re.MULTILINE)


@pytest.mark.parametrize("page", WITH_TEXT)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", text_of(page)):
        assert (pages.DOCS / page).parent.joinpath(target).exists(), target


def test_the_paper_is_named_without_title_and_equation():
    authors = "T. Fiez, L. Jain, K. Jamieson, L. Ratliff, NeurIPS 2019"
    assert pages.paper(algorithms.rage) == authors


def test_a_docstring_without_the_section_setting_is_refused():
    def algorithm(arms):
        """Draws.

        Args:
          arms: features.
        """

    with pytest.raises(ValueError, match="algorithm has no section Setting"):
        pages.section(algorithm, "Setting")
    assert pages.section(algorithm, "Args") == "arms: features."


def test_every_member_of_a_family_is_measured_on_some_problem():
    members = [name for _, names in pages.FAMILIES.values() for name in names]
    wanted = {pages.MEASURED_AS.get(name, name) for name in members}
    assert wanted <= {row["algorithm"] for row in pages.stored("algorithms")[0]}


@pytest.mark.slow
def test_a_row_of_the_benchmark_counts_errors_draws_and_time():
    problem = measuring.problems()["budget, no features"]._replace(replications=40)
    row = measuring.measured(problem, problem.algorithms["sequential_halving"])
    assert (row["replications"], row["pulls_mean"], row["cut_short"]) == (40, 320.0, 0)
    assert row["errors"] <= 8  # P(more) < 1e-6 at an error probability of 0.0187
    assert row["error_low"] <= row["errors"] / 40 <= row["error_high"]
    assert row["cpu_seconds_a_run"] > 0
    bound = measuring.lower_bound(measuring.problems()["best arm"])
    assert bound == pytest.approx(pages.measured("best arm", "top_two")["lower_bound"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_TEXT)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in BLOCK.findall(text_of(page)):
        exec(compile(block, page, "exec"), names)
    plt.close("all")


def test_the_package_holds_the_measured_compile_times():
    """`python -m benchmarks.pages` writes them."""
    assert compile_times.STORED.read_text(encoding="utf-8") == pages.compile_seconds()
