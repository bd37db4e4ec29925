"""The pages on the papers' figures: they agree with what is kept, and differences are explained."""

import inspect
import json
import math
import re
import tomllib
from types import SimpleNamespace

import pytest

from benchmarks import reproductions
from benchmarks.reproductions import PAPERS
from jaxbandits.reproduce import EXPERIMENTS
from jaxbandits.reproduce.measures import Estimate, all_hold

NOTES = tomllib.loads(reproductions.NOTES.read_text())
PAPER_KEYS, EXPERIMENT_KEYS = {"about"}, {"text", "paper", "claims"}
FILE = re.compile(r"`((?:benchmarks|docs|jaxbandits)/[\w/.-]+\.\w+)`")
ANGLE = {"options": json.dumps({"[instances.soare]": {"angle": 0.01}})}  # the paper's
NAME = "rage/fig1d"


@pytest.fixture
def kept():
    """The results that are kept."""
    found = json.loads(reproductions.KEPT.read_text())
    if not found:
        pytest.skip("no results are kept yet")
    return found


def claim(text, holds, **measured):
    return {"claim": text, "measured": measured, "holds": holds}


def result(name=NAME, *claims, **changes):
    """What is kept of a run at the paper's size."""
    whole = reproductions.whole(name)
    facts = {
        "title": "A title",
        "shown_pixels": 500,
        "claims": list(claims),
        "left_out": [],
        "data": "{}",
    }
    how = {"seconds": 90.0, "compile_seconds": 30.0, "engine": "xla", "device": "cpu", "jax": "1"}
    return whole | facts | how | changes


def notes_of(name):
    """The notes on the experiment that is kept under a name."""
    return NOTES[name.removesuffix(reproductions.RECORDED)]


def texts(name):
    """The claims of an experiment, with the numbers of its paper."""
    claims = inspect.getclosurevars(EXPERIMENTS[name].claims).nonlocals["claims"]
    known = [one.text for one in claims]
    return [one if isinstance(one, str) else one(SimpleNamespace(attrs=ANGLE)) for one in known]


# The notes.


def test_notes_are_of_papers_and_experiments_that_exist():
    assert set(NOTES) == {*PAPERS, *EXPERIMENTS}
    for name in PAPERS:
        assert set(NOTES[name]) == PAPER_KEYS
    for name in EXPERIMENTS:
        assert {"text"} <= set(NOTES[name]) <= EXPERIMENT_KEYS


def test_every_note_says_something():
    strings = [
        (name, text)
        for name, note in NOTES.items()
        for one in note.values()
        for text in (one.values() if isinstance(one, dict) else [one])
    ]
    assert [name for name, text in strings if len(text.strip()) < 40] == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_explained_claims_are_those_of_the_experiment(name):
    starts = NOTES[name].get("claims", {})
    known = texts(name)
    assert [one for one in starts if not any(text.startswith(one) for text in known)] == []
    assert [text for text in known if sum(map(text.startswith, starts)) > 1] == []


def test_files_that_notes_name_exist():
    named = set(FILE.findall(reproductions.NOTES.read_text()))
    assert named
    assert [file for file in named if not (reproductions.ROOT / file).is_file()] == []


# What is kept, and the pages.


def test_pages_are_those_of_what_is_kept():
    written = {name: (reproductions.PAGES / name).read_text() for name in reproductions.pages()}
    assert written == reproductions.pages()


def test_claims_that_fail_are_explained(kept):
    unexplained = [
        f"{name}: {one['claim']}"
        for name, found in kept.items()
        for one in found["claims"]
        if one["holds"] is False and not reproductions.reason(one, notes_of(name).get("claims", {}))
    ]
    assert unexplained == []


def judged(one, number):
    """The verdicts of Student's intervals on what a claim on pulls rests on; none of others."""
    found = one["measured"]
    for case in (case for case in found.values() if isinstance(case, dict)):
        if None in case.values():
            continue
        if "power" in case:
            ends = found.get("least", -math.inf), found.get("most", math.inf)
            yield Estimate(case["power"], case["standard_error"], number).within(*ends)
        for point in [case, *(point for point in case.values() if isinstance(point, dict))]:
            if point.get("standard_error_of_log") is not None:
                most = found.get("limit", found.get("most", math.inf))  # "limit" until 0.2.0
                ends = math.log(found["least"]) if "least" in found else -math.inf, math.log(most)
                value, error = math.log(point["ratio"]), point["standard_error_of_log"]
                yield Estimate(value, error, number).within(*ends)


def test_verdicts_on_pulls_are_those_of_students_intervals(kept):
    """Few replications need wider intervals than two standard errors."""
    few = 0
    for result in kept.values():
        for one in result["claims"]:
            verdicts = list(judged(one, result["replications"]))
            if verdicts and "not_played" not in one["measured"]:
                assert all_hold(verdicts) is one["holds"], one["claim"]
                few += result["replications"] <= 30
    assert few > 10


def test_kept_results_have_a_picture_and_are_of_known_experiments(kept):
    assert set(kept) <= set(reproductions.names())
    pictures = [reproductions.PICTURES / reproductions.picture(name) for name in kept]
    assert [file.name for file in pictures if not file.is_file()] == []


# The parts of a page.


def test_a_run_at_the_papers_size_is_not_smaller():
    assert reproductions.smaller(NAME, result()) == []
    assert reproductions.smaller("glm/fig1", result("glm/fig1")) == []


def test_what_a_smaller_run_lacks():
    small = result(replications=5, points={"dim": [40, 80]}, left_out=["RAGE"])
    assert reproductions.smaller(NAME, small) == [
        "5 replications instead of 20",
        "dim 40, 80 of 40, 80, 120, 160",
        "without RAGE",
    ]
    short = result("glm/fig1", horizon=2000)
    assert reproductions.smaller("glm/fig1", short) == ["2,000 rounds instead of 50,000"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, ""),
        ({"pulls": [2742457], "least": None}, "`pulls: [2,742,457]; least: not known`"),
        ({"share": 0.99378, "standard_error": 1e-4}, "`share: 0.99378 ± 0.00020`"),
        ({"share": 0.99378, "standard_error": None}, "`share: 0.9938`"),
        (
            {"by": 0.02, "A - B": {"difference": 0.0234, "standard_error": 0.005}},
            "`by: 0.02; A - B: 0.0234 ± 0.0098`",
        ),
        (
            {"A / B": {"dim 5": {"ratio": 0.5, "standard_error_of_log": math.log(2) / 1.95996}}},
            "`A / B: dim 5: 0.5 [0.25, 1]`",
        ),
        (
            {"RAGE": {"errors": 3, "runs": 4000, "low": 0.0002, "high": 0.002}},
            "`RAGE: 3 of 4,000 wrong [0.0002, 0.002]`",
        ),
        (
            {"not_played": ["dim = 5"], "ratios": [0.5] * 13},
            f"`not played: [dim = 5]; ratios: [{'0.5, ' * 12}… (13 in all)]`",
        ),
        (
            {"pulls": [97.2, 180.0], "standard_errors": [7.4, None]},
            "`pulls: [97 ± 15, 180]`",
        ),
        (
            {"difference": {"2.0": 273.2, "1.0": 1250.0}, "standard_errors": [7.4, 29.0]},
            "`difference: 2.0: 273 ± 15, 1.0: 1,250 ± 57`",
        ),
        ({"marks": "a `b`", "empty": {}}, "`marks: a 'b'; empty: none`"),
        ({"q = 2": {"GSE": 1e-4, "OD-LinBAI": 3e-31}}, "`q = 2: GSE: 0.0001, OD-LinBAI: 3e-31`"),
    ],
)
def test_measured_numbers_as_text(found, text):
    assert reproductions.measured(found, math.inf) == text


def test_claims_of_the_paper_come_first_and_those_that_fail():
    said = [claim("a", True), claim("b", None), claim("c | d", False)]
    said = [one | {"paper": "Section 5", "ours": "1 / 2: `x`"} for one in said]
    paper, own = reproductions.claims_tables([claim("e", True) | {"paper": ""}, *said])
    assert paper.splitlines() == [
        "**What the paper says.**",
        "",
        "| Verdict | Claim | Ours | The paper |",
        "| --- | --- | --- | --- |",
        "| **fails** | c \\| d | `1 / 2: 'x'` | Section 5 |",
        "| open | b | `1 / 2: 'x'` | Section 5 |",
        "| holds | a | `1 / 2: 'x'` | Section 5 |",
    ]
    assert own.splitlines()[0] == "**What we expected besides.**"
    assert own.splitlines()[2:] == [
        "| Verdict | Claim | Ours |",
        "| --- | --- | --- |",
        "| holds | e | see below |",
    ]


def test_reasons_are_given_for_claims_that_do_not_hold():
    claims = [
        claim("It holds.", True),
        claim("It is open.", None),
        claim("Too small.", None),
        claim("It fails. (on synthetic rows)", False),
        claim("Nobody knows.", False),
    ]
    known = {"It fails.": "Because\nof noise.\n", "It is": "Few runs.", "It holds.": "Never seen."}
    assert reproductions.reasons(claims, known).splitlines()[2:] == [
        "- **fails**: It fails. (on synthetic rows) Because of noise.",
        "- **fails**: Nobody knows. No explanation is known.",
        "- open: It is open. Few runs.",
    ]
    assert reproductions.reasons(claims[:1], known) == ""


def test_a_section_has_the_notes_whether_it_was_played_or_not():
    note = {"text": "Another angle.\n", "paper": "Table 1.", "claims": {"It": "Because."}}
    for found in (None, result(NAME, claim("It fails.", False, pulls=[1]))):
        text = reproductions.section(NAME, {} if found is None else {NAME: found}, note)
        assert "**Differences and why.** Another angle.\n" in text
        assert "**The paper's numbers.** Table 1.\n" in text
        assert f"jaxbandits reproduce {NAME} --out fig1d" in text
        assert ("Not played yet." in text) == (found is None)
        assert ("- **fails**: It fails. Because." in text) == (found is not None)


def test_the_index_counts_verdicts_and_lists_failures():
    played = result(NAME, claim("a", True), claim("b", False), claim("c", None), claim("d", True))
    text = reproductions.index({NAME: played, "rage/fig2b": result("rage/fig2b", replications=1)})
    assert f"| [{NAME}](rage.md) | 2 | 1 | 1 | the paper's | 2 |" in text
    assert "| [rage/fig2b](rage.md) | 0 | 0 | 0 | smaller | 2 |" in text
    assert "| [rage/fig1a](rage.md) | | | | not played yet | |" in text
    assert "| **all** | **2** | **1** | **1** | | **4** |" in text
    assert f"\n- [{NAME}](rage.md): b\n" in text
    assert "\nNone.\n" in reproductions.index({})
