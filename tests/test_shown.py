"""`Runs` show their summary: in a terminal in a few lines, in a notebook as a table."""

import dataclasses
import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from run_settings import SOARE, simulate

import jaxbandits as jb
from jaxbandits.engine.results import first_of, none_of


@pytest.fixture(scope="module")
def runs():
    return simulate("sequential", 20)


def lines_of(runs):
    """The lines by name; each is short."""
    title, *lines = repr(runs).splitlines()
    assert title == "Runs"
    assert len(lines) <= 11
    assert all(len(line) <= 100 for line in lines)
    found = dict(re.fullmatch(r"  (\S.*?)  +(\S.*)", line).groups() for line in lines)
    table = ElementTree.fromstring(runs._repr_html_())
    cells = [(row[0].text, row[1].text) for row in table.findall("tr")]
    assert [name for name, _ in cells] == list(found)
    for name, text in cells:
        assert text == found[name] or found[name].endswith(" ...")
    return found


def test_the_numbers_are_those_of_the_summary(runs):
    found, summary = lines_of(runs), runs.summary()
    assert found["replications"] == f"20 with {runs.arm_pulls.shape[1]} arms"
    rate = rf"{summary['error_rate']:.3g} \[0, {summary['error_high']:.2g}\]: 0 of 20"
    assert re.fullmatch(rate, found["error rate [95%]"])
    mean, width = map(float, re.match(r"(\d+) ± (\d+) \(95%\);", found["pulls"]).groups())
    assert abs(mean - summary["pulls_mean"]) < 0.1 * summary["pulls_se"]
    assert width == pytest.approx(2.093 * summary["pulls_se"], rel=0.03)  # Student's, not 1.96
    median = re.search(r"median ([\d.]+),", found["pulls"]).group(1)
    assert abs(float(median) / np.median(runs.pulls) - 1) < 1e-3
    assert found["played"].startswith(f"seed 7, engine {runs.meta['engine']}, device cpu")
    assert found["played"].endswith("s of compiling")
    assert "no answer" not in found


def test_runs_that_were_cut_short_say_why():
    found = lines_of(
        jb.simulate(SOARE, partial(jb.lingape, delta=0.1), replications=20, seed=7, max_pulls=20)
    )
    assert "error rate [95%]" not in found
    assert found["no answer"] == "20 max_pulls (20 cut short)"
    assert found["pulls"] == ">= 20 in each replication"


def test_a_rate_of_answers_that_do_not_stand_is_not_shown():
    runs = simulate("sequential", 20)
    broken = dataclasses.replace(runs, facts=runs.facts | {"broken": np.ones(20, bool)})
    found = lines_of(broken)
    assert found["error rate [95%]"] == "-: 20 without an answer that stands"
    assert found["no answer"] == "20 nan (0 cut short)"
    some = dataclasses.replace(runs, facts=runs.facts | {"broken": np.arange(20) < 19})
    assert lines_of(some)["error rate [95%]"].endswith(": 0 of 20")


def test_regret_runs_show_the_regret():
    runs = simulate("regret", 20)
    found = lines_of(runs)
    mean, width, level = map(float, re.findall(r"[\d.]+", found["regret"]))
    assert abs(mean - runs.regret[:, -1].mean()) < 0.1 * width
    assert width == pytest.approx(2.093 * runs.summary()["regret_se"], rel=0.03)
    assert level == 95
    assert list(found)[:2] == ["replications", "regret"]
    assert found["pulls"] == f"{runs.pulls[0]} in each replication"


def test_no_replication_and_many_counts_fit_too(runs):
    assert lines_of(none_of(runs))["replications"].startswith("0 with")
    many = {f"count number {k} & <more>": np.ones(20, int) for k in range(50)}
    found = lines_of(dataclasses.replace(runs, info=many))
    assert found["counted"].endswith(" ...")


def test_a_single_replication_has_no_interval(runs):
    found = lines_of(first_of(runs, 1))
    assert found["pulls"] == f"{runs.pulls[0]} (1 replication: no interval)"
    found = lines_of(first_of(simulate("regret", 20), 1))
    assert found["regret"].endswith(" (1 replication: no interval)")
