"""`compare` plays several algorithms with the same noise and shows them side by side."""

import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits.engine.results import paired_difference

INSTANCE = jb.instances.soare(3, angle=0.5)
ALGORITHMS = {
    "LinGapE": partial(jb.lingape, delta=0.1),
    "strict": partial(jb.lingape, delta=0.01),
}


@pytest.fixture(scope="module")
def found():
    return jb.compare(ALGORITHMS, INSTANCE, replications=20, seed=3)


@pytest.fixture(scope="module")
def alone():
    return [jb.simulate(INSTANCE, x, replications=20, seed=3) for x in ALGORITHMS.values()]


def test_the_table_has_the_numbers_of_single_simulations(found, alone):
    assert list(found.table.index) == list(ALGORITHMS)
    for (_, row), runs in zip(found.table.iterrows(), alone, strict=True):
        summary = runs.summary()
        for name in ("replications", "errors", "error_low", "error_high", "pulls_mean", "pulls_se"):
            assert row[name] == pytest.approx(summary[name])
    expected = paired_difference(alone[1], alone[0])
    strict = found.table.loc["strict"]
    assert strict.difference == pytest.approx(expected["mean"])
    assert strict.difference_low == pytest.approx(expected["low"])
    assert strict.difference_high == pytest.approx(expected["high"])
    assert found.table.loc["LinGapE"].difference == 0.0
    bound = jb.theory.pull_lower_bound(INSTANCE, 0.01)
    assert strict.over_bound == pytest.approx(strict.pulls_mean / bound, rel=1e-3)


def test_it_is_shown_as_a_table(found):
    lines = repr(found).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("algorithm")
    assert lines[2].startswith("strict")
    assert lines[0].endswith("pulls less those of the first [95%]")
    mean, low, high = map(float, re.findall(r"-?\d+(?:\.\d+)?", lines[2])[-3:])
    row = found.table.loc["strict"]
    assert (mean, low, high) == pytest.approx(
        (row.difference, row.difference_low, row.difference_high), rel=0.05
    )
    table = ElementTree.fromstring(found._repr_html_().replace("&nbsp;", " "))
    assert [row[0].text for row in table.iter("tr")] == ["algorithm", *ALGORITHMS]


def test_it_is_drawn(found):
    figure = found.plot(title="one")
    assert isinstance(figure, Figure)
    assert figure.axes


@pytest.mark.slow
def test_regret_is_compared_instead_of_pulls_where_there_is_some():
    algorithms = {"slow": jb.lin_ucb, "random": jb.uniform}
    found = jb.compare(algorithms, INSTANCE, replications=20, horizon=30)
    runs = [jb.simulate(INSTANCE, x, replications=20, horizon=30) for x in algorithms.values()]
    expected = paired_difference(runs[1], runs[0], of="regret")
    row = found.table.loc["random"]
    assert row.regret_mean == pytest.approx(runs[1].regret[:, -1].mean())
    assert row.difference_low == pytest.approx(expected["low"])


def test_replications_cut_short_have_no_difference():
    found = jb.compare(ALGORITHMS, INSTANCE, replications=20, max_pulls=20, bounds=False)
    assert (found.table.cut_short == 20).all()
    assert np.isnan(found.table.difference).all()
    assert "pull_lower_bound" not in found.table


def test_algorithms_must_be_named():
    for wrong in ([jb.uniform], {}):
        with pytest.raises(ValueError, match="algorithms must be a dict of constructors by name"):
            jb.compare(wrong, INSTANCE, replications=20)
    with pytest.raises(ValueError, match=r"algorithms\['one'\] must be a constructor, got 'unif"):
        jb.compare({"one": "uniform"}, INSTANCE, replications=20)
    with pytest.raises(ValueError, match="instance must be an Instance or a callable, got 3"):
        jb.compare({"one": jb.uniform}, 3, replications=20)
