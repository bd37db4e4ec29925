"""`compare` plays several algorithms with the same noise and shows them side by side."""

import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from pages import example

import jaxbandits as jb
from jaxbandits.engine import host_loop
from jaxbandits.engine.results import paired_difference
from jaxbandits.report import narrow
from jaxbandits.report.comparison import AlgorithmRuns
from jaxbandits.report.frame import frame, write_csv
from jaxbandits.report.pairs import LEAST_DISCORDANT
from jaxbandits.sweeps import grid, local
from jaxbandits.sweeps.selection import complete

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


def test_equal_pulls_are_compared_by_errors():
    basis = jb.instances.canonical(4, gap=0.5)
    uniform = partial(jb.at_budget(jb.uniform, 40))
    algorithms = {"halving": partial(jb.sequential_halving, budget=40), "uniform": uniform}
    found = jb.compare(algorithms, basis, replications=60, bounds=False)
    alone = [jb.simulate(basis, build, replications=60) for build in algorithms.values()]
    wrong = [1.0 - runs.correct for runs in alone]
    assert (wrong[0] != wrong[1]).sum() >= LEAST_DISCORDANT
    assert found.table.difference.tolist() == [0.0, pytest.approx((wrong[1] - wrong[0]).mean())]
    assert repr(found).startswith("60 replications; difference: errors minus those of halving")


def test_it_is_shown_as_a_table(found):
    title, header, *lines = repr(found).splitlines()
    assert title == "20 replications; difference: pulls minus those of LinGapE, paired"
    names = ["algorithm", "error rate [95%]", "pulls ± 95%", "/ bound", "difference ± 95%"]
    assert re.split("  +", header) == names
    assert [line.split()[0] for line in lines] == list(ALGORITHMS)
    assert max(map(len, [title, header, *lines])) < 80
    row, cells = found.table.loc["strict"], re.split("  +", lines[1])
    mean, width = map(float, cells[2].split(" ± "))
    assert abs(mean - row.pulls_mean) < row.pulls_se / 5
    assert width == pytest.approx(2.093 * row.pulls_se, rel=0.03)  # Student's, not 1.96
    assert (row.pulls_high - row.pulls_low) / 2 == pytest.approx(2.0930240544 * row.pulls_se)
    difference, half = map(float, cells[4].split(" ± "))
    assert abs(difference - row.difference) < half / 10
    assert half == pytest.approx((row.difference_high - row.difference_low) / 2, rel=0.05)
    table = ElementTree.fromstring(found._repr_html_())
    assert [row[0].text for row in table.iter("tr")] == ["algorithm", *ALGORITHMS]
    assert table.find("caption").text == title


def test_the_table_prints_the_columns_that_it_has(found):
    assert type(found.table) is pandas.DataFrame
    header = re.split(" +", found.table.to_string().splitlines()[0].strip())
    assert header == list(found.table.columns)


def test_names_in_the_html_table_are_no_markup(found):
    table = found.table.rename(index={"strict": "<b>&"})
    text = narrow.html_of(table)
    assert "&lt;b&gt;&amp;" in text
    assert "<b>" not in text


def test_plots_of_runs_take_a_comparison(found, alone):
    ax = Figure().subplots()
    jb.plot.stopping_times(found, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(ALGORITHMS)
    assert set(ax.get_lines()[1].get_xdata()) == {0, *alone[1].pulls}
    bars, rates = Figure().subplots(), Figure().subplots()
    jb.plot.arm_pulls(found, ax=bars)
    heights = [bar.get_height() for bar in bars.patches]
    shares = [runs.arm_pulls.sum(0) / runs.arm_pulls.sum() for runs in alone]
    np.testing.assert_allclose(heights, np.concatenate(shares))
    jb.plot.error_rates(found, ax=rates)
    assert [text.get_text() for text in rates.get_xticklabels()] == list(ALGORITHMS)
    with pytest.raises(ValueError, match="LinGapE have no regret"):
        jb.plot.regret(found)
    means = AlgorithmRuns(found.runs["strict"]._cell.drop_vars("arm_pulls"))
    np.testing.assert_allclose(means.arm_pulls[0], alone[1].arm_pulls.mean(0))


def test_replications_of_an_algorithm_are_those_of_runs(found, alone):
    """Names, shapes and types too."""
    for runs, one in zip(found.runs.values(), alone, strict=True):
        for name in ("replication", "pulls", "stopped", "correct", "answer", "arm_pulls"):
            mine, theirs = getattr(runs, name), getattr(one, name)
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype.kind == theirs.dtype.kind, name
    assert repr(found.runs["strict"]).startswith("<20 replications of strict: pulls, stopped, ")


def test_it_is_drawn(found):
    figure = found.plot()
    assert isinstance(figure, Figure)
    assert figure.axes
    title = "4 arms in 3 dimensions, normal rewards\n20 replications"
    assert figure.get_suptitle().startswith(title)
    assert found.plot(title="one").get_suptitle() == "one"


@pytest.mark.slow
def test_regret_is_compared_instead_of_pulls_where_there_is_some():
    algorithms = {"slow": jb.lin_ucb, "random": jb.uniform}
    found = jb.compare(algorithms, INSTANCE, replications=20, horizon=30)
    runs = [jb.simulate(INSTANCE, x, replications=20, horizon=30) for x in algorithms.values()]
    expected = paired_difference(runs[1], runs[0], of="regret")
    row = found.table.loc["random"]
    assert row.regret_mean == pytest.approx(runs[1].regret[:, -1].mean())
    assert row.difference_low == pytest.approx(expected["low"])
    assert "regret ± 95%" in repr(found)
    curve = jb.plot.regret(found, ax=Figure().subplots()).axes[0].get_lines()[1]
    np.testing.assert_allclose(curve.get_ydata(), runs[1].regret.mean(0))


def test_replications_cut_short_have_no_difference():
    found = jb.compare(ALGORITHMS, INSTANCE, replications=20, max_pulls=20, bounds=False)
    assert (found.table.cut_short == 20).all()
    assert np.isnan(found.table.difference).all()
    assert "pull_lower_bound" not in found.table
    header, first = repr(found).splitlines()[1:3]
    assert re.split("  +", header)[3] == "cut short"
    assert re.split("  +", first)[1:] == ["-", ">= 20", "20", "-"]


def test_algorithms_must_be_named():
    for wrong in ([jb.uniform], {}):
        with pytest.raises(ValueError, match="algorithms must be a dict of constructors by name"):
            jb.compare(wrong, INSTANCE, replications=20)
    with pytest.raises(ValueError, match=r"algorithms\['one'\] must be a constructor, got 'unif"):
        jb.compare({"one": "uniform"}, INSTANCE, replications=20)
    with pytest.raises(ValueError, match="instance must be an Instance or a callable, got 3"):
        jb.compare({"one": jb.uniform}, 3, replications=20)


def test_every_replication_is_in_a_data_frame(found, alone):
    frame = found.to_dataframe()
    assert frame.index.names == ["algorithm", "replication"]
    for name, runs in zip(ALGORITHMS, alone, strict=True):
        expected = runs.to_dataframe()
        given = frame.loc[name][list(expected.columns)]
        pandas.testing.assert_frame_equal(given, expected, check_dtype=False)
        arms = found.to_dataframe(per="arm").loc[name].arm_pulls.unstack()
        np.testing.assert_array_equal(arms, runs.arm_pulls)
    with pytest.raises(ValueError, match="which have no rounds"):
        found.to_dataframe(per="round")


def test_a_comparison_at_each_point_of_axes(found):
    """The same numbers as without axes, a row for each algorithm at each point."""
    algorithms = {"LinGapE": jb.lingape, "loose": partial(jb.lingape, epsilon=0.1)}
    at = jb.compare(algorithms, INSTANCE, axes={"delta": [0.1, 0.01]}, replications=20, seed=3)
    assert at.table.index.names == ["algorithm", "delta"]
    assert len(at.table) == 4
    known = ["errors", "pulls_mean", "pulls_se", "over_bound"]
    for name, delta in (("LinGapE", 0.1), ("strict", 0.01)):
        pandas.testing.assert_series_equal(
            at.table.loc["LinGapE", delta][known], found.table.loc[name][known], check_names=False
        )
    one, other = (at.dataset.pulls.sel(instance="instance", algorithm=x) for x in algorithms)
    expected = (other - one).mean("replication").values
    np.testing.assert_allclose(at.table.loc["loose"].difference, expected)
    title, header, *lines = repr(at).splitlines()
    assert title == "20 replications; difference: pulls minus those of LinGapE, paired"
    assert re.split("  +", header)[:3] == ["algorithm", "delta", "error rate [95%]"]
    rows = [re.split("  +", line) for line in lines]
    assert [row[:2] for row in rows] == [[x, y] for x in algorithms for y in ("0.1", "0.01")]
    assert [row[-1] == "-" for row in rows] == [True, True, False, False]
    assert list(at.runs) == [f"{x}, delta = {y}" for x in algorithms for y in (0.1, 0.01)]
    np.testing.assert_array_equal(at.runs["loose, delta = 0.01"].pulls, other.sel(delta=0.01))
    (ax,) = at.plot().axes
    assert ax.get_xlabel() == "delta"
    assert "lower bound" in {line.get_label() for line in ax.get_lines()}
    with pytest.raises(ValueError, match="unknown axis 'nothing'"):
        jb.compare(algorithms, INSTANCE, axes={"nothing": [1]}, replications=20)


def test_a_table_of_regret_begins_with_regret():
    data = example(instances=("instance",), regret=True)
    table = frame(data).droplevel("instance")
    assert list(table.columns)[:4] == ["regret_mean", "regret_se", "regret_low", "regret_high"]
    header, lines = narrow.shown(table)
    assert header[2:] == ["regret ± 95%", "cut short", "difference ± 95%", "error rate [95%]"]
    assert len(lines) == 4


def test_the_table_of_cells_is_written(tmp_path):
    """Every number of a sweep's cells as CSV; what was not played has no row."""
    data = example()
    data = data.where(~((data.instance == "soare") & (data.algorithm == "GSE") & (data.gap == 0.5)))
    write_csv(data, tmp_path / "table.csv")
    read = pandas.read_csv(tmp_path / "table.csv", index_col=[0, 1, 2])
    assert read.index.names == ["instance", "algorithm", "gap"]
    assert len(read) == 7
    cells = complete(data)
    for (instance, algorithm, gap), row in read.iterrows():
        cell = cells.sel(instance=instance, algorithm=algorithm, gap=gap)
        for name in ("replications", "cut_short", "errors", "error_low", "pulls_mean", "pulls_se"):
            assert row[name] == pytest.approx(float(cell[name]))
    first, second = (cells.pulls.sel(instance="soare", algorithm=x) for x in ("LinGapE", "GSE"))
    expected = float((second - first).sel(gap=0.25).mean())
    assert read.loc["soare", "GSE", 0.25].difference == pytest.approx(expected)


HALVING = partial(jb.sequential_halving, budget=40)


def test_an_interrupted_comparison_has_what_is_done(monkeypatch):
    played = local._report

    def impatient(display, title, known, most, done, total):
        played(display, title, known, most, done, total)
        if "LinUCB" in title and done:
            raise KeyboardInterrupt

    monkeypatch.setattr(local, "_report", impatient)
    monkeypatch.setattr(host_loop, "CALL_SECONDS", 1e-9)  # few runs end in a call
    algorithms = {"uniform": jb.uniform, "LinUCB": jb.lin_ucb, "LinTS": jb.lin_ts}
    play = partial(jb.compare, algorithms, INSTANCE, replications=200, horizon=40)
    said = r"^interrupted: \d+ of 600 replications are done$"
    with pytest.warns(UserWarning, match=said) as told:
        found = play(batch=8)
    assert {warning.filename for warning in told} == {__file__}
    done = found.table.replications
    assert done["uniform"] == 200
    assert 0 < done["LinUCB"] < 200
    assert done["LinTS"] == 0
    said = f"interrupted: {done.sum():.0f} of 600 replications are done"
    assert said in repr(found).splitlines()
    assert found.dataset.attrs["partial"] == said
    table = found.table
    assert np.isfinite(table.regret_mean).tolist() == [True, True, False]
    assert np.isfinite(table.difference).tolist() == [True, True, False]
    last = found.dataset.regret.isel(instance=0, round=-1).sel(algorithm="LinUCB").values
    played = last[np.isfinite(last)]
    assert len(played) == done["LinUCB"]
    assert table.regret_mean["LinUCB"] == pytest.approx(played.mean())
    assert table.regret_se["LinUCB"] == pytest.approx(played.std(ddof=1) / len(played) ** 0.5)
    found.plot()


def test_a_comparison_that_is_interrupted_before_anything_is_done_raises(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jb.compare({"first": HALVING}, INSTANCE, replications=5)


def test_an_interrupted_bound_leaves_what_was_played(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "with_bounds", interrupted)
    with pytest.warns(UserWarning, match="all replications are done, but no bound"):
        found = jb.compare({"first": HALVING}, INSTANCE, replications=5)
    assert found.table.replications["first"] == 5
