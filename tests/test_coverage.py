"""Intervals hold the truth as often as they say, of few replications and after several looks."""

import json

import numpy as np
import pytest

from benchmarks import coverage
from jaxbandits.intervals import CONFIDENCE, binomial_interval, half_width
from jaxbandits.sweeps.until import EACH_LOOK

STORED = json.loads(coverage.RESULTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", coverage.NUMBERS)
def test_students_intervals_hold_the_mean_of_few_numbers_and_normal_ones_do_not(number):
    values = np.random.default_rng(number).standard_normal((20_000, number))
    student, normal = coverage.held(values, 0.0), coverage.held(values, 0.0, coverage.NORMAL)
    assert abs(student["coverage"] - CONFIDENCE) < 4 * student["standard_error"]
    assert normal["coverage"] < CONFIDENCE - 4 * normal["standard_error"]


@pytest.mark.parametrize(
    ("width", "most", "rate"), [(0.01687, 1200, 0.0172), (0.0365, 400, 0.0388)]
)
def test_an_interval_after_several_looks_holds_the_error_rate(width, most, rate):
    """Two of the worst cases, enumerated: 95% at each look are too few."""
    short, enough = (
        coverage.until_coverage(rate, coverage.looks_of(width, most, confidence))[0]
        for confidence in (CONFIDENCE, EACH_LOOK)
    )
    assert short < 0.93
    assert enough >= CONFIDENCE


def test_without_looks_the_coverage_is_that_of_the_exact_interval():
    """A width that nothing reaches leaves the last look alone, whose coverage is a binomial sum."""
    looks = coverage.looks_of(1e-6, 100, CONFIDENCE)
    covered, replications = coverage.until_coverage(0.1, looks)
    low, high = binomial_interval(np.arange(101), 100)
    inside = (low <= 0.1) & (high >= 0.1)
    assert covered == pytest.approx(
        coverage.stats.binom.pmf(np.arange(101), 100, 0.1)[inside].sum()
    )
    assert replications == 100


def test_a_cell_without_errors_ends_at_the_first_look_that_is_wide_enough():
    covered, replications = coverage.until_coverage(0.0, coverage.looks_of(0.05, 1000, EACH_LOOK))
    assert (covered, replications) == (1.0, 100.0)


def test_the_stored_figures_are_those_of_this_rule_and_high_enough():
    table = STORED["until"][str(EACH_LOOK)]
    assert table["worst"]["coverage"] >= CONFIDENCE > STORED["until"]["0.95"]["worst"]["coverage"]
    for row in table["rates"][:: len(coverage.RATES) // 2]:
        looks = coverage.looks_of(row["width"], row["most"], EACH_LOOK)
        found, replications = coverage.until_coverage(row["rate"], looks)
        assert found == pytest.approx(row["coverage"], abs=1e-9)
        assert row["replications"] == round(replications)
        assert found >= CONFIDENCE
    for kind in ("normal", "lingape"):
        rows = [STORED[kind][str(number)] for number in coverage.NUMBERS]
        assert all(row["student"]["coverage"] > 0.94 for row in rows)
        assert all(row["normal"]["coverage"] < row["student"]["coverage"] for row in rows)
        assert STORED["until_pulls"][kind][str(EACH_LOOK)]["coverage"] > CONFIDENCE


def test_half_widths_are_students():
    assert half_width(1.0, 3) == pytest.approx(4.302652729696142)
    np.testing.assert_allclose(
        half_width(np.ones(2), np.array([10, 20])), [2.262157, 2.093024], 1e-6
    )
    assert np.isnan(half_width(1.0, 1))
    assert np.isnan(half_width(0.0, 1))
    assert half_width(0.0, 2) == 0.0
