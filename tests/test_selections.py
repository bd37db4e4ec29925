"""Figures and tables of any part of a sweep's dataset are those of what it holds."""

import dataclasses
import json
from functools import partial

import numpy as np
import pandas
import pytest
import xarray
from pages import example
from params import params

import jaxbandits as jb
from jaxbandits.report import pairs, plot, table, write
from jaxbandits.report.frame import frame
from jaxbandits.sweeps.columns import SUMMARY, TAKEN
from jaxbandits.sweeps.dataset import write as save
from jaxbandits.sweeps.selection import complete, replications_text

LINGAPE = {name: partial(jb.lingape, delta=delta) for name, delta in (("A", 0.3), ("B", 0.01))}
EVEN = np.arange(20) % 2 == 0


def swept(replications, **options):
    return jb.sweep(
        {"soare": partial(jb.instances.soare, 2)},
        LINGAPE,
        axes={"angle": [0.8, 1.2]},
        replications=replications,
        progress=False,
        **options,
    )


@pytest.fixture(scope="module")
def dataset():
    return swept(20)


def again(dataset, folder, **options):
    save(dataset, folder / "again.nc")
    return xarray.open_dataset(folder / "again.nc", **options)


def joined(*datasets, **options):
    return xarray.concat(datasets, join="outer", data_vars="all", **options)


# By name, a selection, and the same by lists alone.
SELECTIONS = {
    "some replications": (lambda d: d.isel(replication=slice(7)), {"replication": [*range(7)]}),
    "by their numbers": (lambda d: d.sel(replication=slice(2, 5)), {"replication": [2, 3, 4, 5]}),
    "a mask": (lambda d: d.isel(replication=EVEN), {"replication": np.flatnonzero(EVEN)}),
    "a condition": (lambda d: d.where(d.replication < 7), {"replication": [*range(7)]}),
    "without the rest": (
        lambda d: d.where(d.replication < 7, drop=True),
        {"replication": [*range(7)]},
    ),
    "one replication": (lambda d: d.isel(replication=3), {"replication": [3]}),
    "an instance": (lambda d: d.isel(instance=0), {}),
    "an instance by name": (lambda d: d.sel(instance="soare"), {}),
    "an instance without a name": (lambda d: d.isel(instance=0, drop=True), {}),
    "an algorithm": (lambda d: d.sel(algorithm="B"), {"algorithm": [1]}),
    "a value of an axis": (lambda d: d.sel(angle=1.2), {"angle": [1]}),
    "one cell": (
        lambda d: d.isel(algorithm=[0], angle=[1]).squeeze(),
        {"algorithm": [0], "angle": [1]},
    ),
    "a scalar of each": (
        lambda d: d.isel(instance=0, algorithm=1, angle=0, replication=4),
        {"algorithm": [1], "angle": [0], "replication": [4]},
    ),
    "another order": (lambda d: d.isel(angle=[1, 0]), {"angle": [1, 0]}),
    "renamed without labels": (lambda d: d.rename_dims(angle="a", replication="r"), {}),
    "labels of pandas": (
        lambda d: d.assign_coords(angle=pandas.CategoricalIndex(d.angle.values)),
        {},
    ),
    "labels of any precision": (lambda d: d.assign_coords(angle=d.angle.astype("g")), {}),
    "numbers of half precision": (lambda d: d.assign(pulls=d.pulls.astype(np.float32)), {}),
    "other dimensions first": (lambda d: d.transpose(..., "algorithm", "instance"), {}),
    "stacked": (lambda d: d.stack(cell=("instance", "algorithm")), {}),
    "only what is needed": (lambda d: d[["pulls", "correct", "stopped", "reason"]], {}),
    "without attributes": (lambda d: d.drop_attrs(), {}),
    "more numbers": (lambda d: d.reindex(replication=range(30)), {}),
    "an arm": (lambda d: d.isel(arm=1), {}),
    "a reason": (lambda d: d.isel(why=0), {}),
}


def summaries(dataset):
    whole = complete(dataset)
    return {name: whole[name].values for name in (*SUMMARY, "reasons")}


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_is_summed_up_as_what_it_holds(dataset, name):
    select, by_lists = SELECTIONS[name]
    one, other = select(dataset), dataset.isel(by_lists)
    for (column, values), expected in zip(
        summaries(one).items(), summaries(other).values(), strict=True
    ):
        np.testing.assert_allclose(values, expected, rtol=1e-12, err_msg=column)
    _, lines = table.rows(one, pairs.differences(one))
    assert len(lines) == other.sizes["algorithm"] * other.sizes["angle"]
    assert {line[2] for line in lines} == {f"{x:g}" for x in other.angle.values}
    number = replications_text(complete(one))
    assert f"{number} replications" in plot.title_of(one)


DRAWN = ("a mask", "one cell", "another order", "stacked", "more numbers")


@pytest.mark.parametrize("name", params(SELECTIONS, always=DRAWN))
def test_a_selection_is_drawn_as_what_it_holds(dataset, name):
    select, by_lists = SELECTIONS[name]
    one, other = select(dataset), dataset.isel(by_lists)
    panel = jb.plot.sweep(one, quantities=["pulls"]).axes[0]
    drawn = [x.lines[0].get_ydata() for x in panel.containers if x.lines[0].get_xdata().size]
    np.testing.assert_array_equal(drawn, complete(other).pulls_mean.values[0])


def test_the_first_replications_are_a_smaller_sweep(dataset):
    """Means, intervals, paired differences and the number said are those of 7 replications."""
    first, small = dataset.isel(replication=slice(7)), swept(7)
    for name, values in summaries(first).items():
        np.testing.assert_array_equal(values, small[name].values, err_msg=name)
    assert pairs.differences(first) == pairs.differences(small)
    assert pairs.differences(first) != pairs.differences(dataset)
    assert table.rows(first) == table.rows(small)
    assert "\n7 replications" in f"\n{plot.title_of(first)}"


@pytest.mark.parametrize("chunks", [None, {}], ids=["read", "dask"])
def test_a_file_is_read_again(dataset, tmp_path, chunks):
    if chunks is not None:
        pytest.importorskip("dask.array")
    with again(dataset, tmp_path, chunks=chunks) as stored:
        expected = summaries(dataset.sel(angle=0.8))
        for name, values in summaries(stored.sel(angle=0.8)).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_sweeps_are_joined(dataset):
    other = swept(9, seed=1)
    more = joined(dataset, other, dim="replication")
    assert (complete(more).replications == 29).all()
    seeds = joined(dataset, other, dim="seed").assign_coords(seed=[0, 1])
    titles = [ax.get_title() for ax in jb.plot.sweep(seeds).axes if ax.get_title()]
    assert titles == ["soare, seed = 0", "soare, seed = 1"]
    assert plot.title_of(seeds).startswith("9 to 20 replications")
    others = dataset.assign_coords(algorithm=["C", "D"]).isel(replication=slice(5))
    _, lines = table.rows(joined(dataset, others, dim="algorithm"))
    assert [line[3] for line in lines] == ["20"] * 4 + ["5"] * 4


TWICE = {
    "one many times": lambda d: d.isel(replication=np.zeros(100, int)),
    "some twice": lambda d: d.isel(replication=[0, 1, 2, 2]),
    "with replacement": lambda d: d.isel(replication=np.arange(40) % 20, angle=0),
    "joined with itself": lambda d: joined(d, d, dim="replication"),
    "parts that meet": lambda d: joined(
        d.isel(replication=slice(12)), d.isel(replication=slice(8, 20)), dim="replication"
    ),
}


@pytest.mark.parametrize("odd", TWICE)
@pytest.mark.parametrize(
    "read",
    [jb.plot.sweep, table.rows, lambda d: jb.Comparison(d).runs],
    ids=["figure", "table", "runs"],
)
def test_a_replication_does_not_count_twice(dataset, read, odd):
    with pytest.raises(ValueError, match=r"^dataset: replication \d+ stands \d+ times with equal"):
        read(TWICE[odd](dataset))


def test_replications_numbered_on_are_others(dataset):
    """As where all results of two seeds are equal."""
    other = dataset.assign_coords(replication=np.arange(20, 40))
    twice = complete(joined(dataset, other, dim="replication"))
    assert (twice.replications == 40).all()
    assert (twice.pulls_mean == complete(dataset).pulls_mean).all()


def test_the_page_of_a_selection_is_written(dataset, tmp_path):
    save(dataset.sel(angle=0.8).isel(replication=slice(7)), tmp_path / "results.nc")
    text = write(tmp_path).read_text()
    assert "7 in each cell" in text
    assert "of 7" in text
    assert "of 20" not in text


def test_a_masked_cell_is_one_that_was_not_run(dataset):
    masked = complete(dataset.where(dataset.angle > 1.0))
    assert masked.replications.values[0, :, 0].tolist() == [0, 0]
    assert np.isnan(masked.pulls_mean.values[0, :, 0]).all()
    kept = complete(dataset.sel(angle=1.2))
    np.testing.assert_array_equal(masked.pulls_mean[..., 1:], kept.pulls_mean)
    assert jb.plot.sweep(dataset.where(dataset.angle > 1.0)).axes


def test_boxes_of_cells_of_which_one_is_masked(dataset):
    one = dataset.isel(angle=0, drop=True)
    (ax,) = jb.plot.sweep(one.where(one.algorithm == "B"), quantities=["pulls"]).axes
    middles = [x.lines[0].get_ydata()[0] for x in ax.containers if x.lines[0].get_xdata().size]
    assert np.isnan(middles[0])
    assert middles[1] == one.pulls.sel(algorithm="B").mean()
    assert jb.plot.sweep(one.where(one.algorithm == "C")).axes  # nothing is left


def test_the_bound_of_one_point_is_a_level_line():
    dataset = example(instances=("one",))
    bounded = dataset.assign(pull_lower_bound=0 * complete(dataset).pulls_mean + 1000.0)
    (ax,) = jb.plot.sweep(bounded.sel(gap=0.25), quantities=["pulls"]).axes
    (line,) = [line for line in ax.get_lines() if line.get_label() == "lower bound"]
    assert list(line.get_ydata()) == [1000.0, 1000.0]


def test_bands_of_curves_are_students():
    dataset = example(instances=("one",), regret=True).isel(gap=0, replication=slice(3))
    (ax,) = jb.plot.sweep(dataset).axes
    vertices = ax.collections[0].get_paths()[0].vertices
    ends = vertices[vertices[:, 0] == 6, 1]
    error = float(dataset.regret[0, 0, :, -1].std(ddof=1)) / 3**0.5
    assert np.ptp(ends) == pytest.approx(2 * 4.302652729696142 * error)
    assert ax.get_ylabel() == "regret, mean (95%)"


def test_curves_and_arms_of_a_selection():
    dataset = example(instances=("one",), regret=True)
    arms = ((*dataset.pulls.dims, "arm"), np.arange(2 * 2 * 20 * 3).reshape(1, 2, 2, 20, 3))
    dataset = dataset.assign(arm_pulls=arms).assign_coords(arm=range(3))
    part = dataset.isel(gap=1, replication=slice(5))
    (ax,) = jb.plot.sweep(part).axes
    curve = ax.get_lines()[0].get_ydata()
    np.testing.assert_allclose(curve, part.regret[0, 0].mean("replication"))
    (ax,) = jb.plot.sweep(part.isel(arm=2), quantities=["arms"]).axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2"]
    last = jb.plot.sweep(part.isel(round=-1)).axes[0].get_lines()[0]
    assert last.get_xdata().tolist() == [6]


REFUSED = {
    "averaged over replications": (lambda d: d.mean("replication"), "no replication left: select"),
    "averaged over algorithms": (lambda d: d.mean("algorithm"), "average nothing over them"),
    "averaged over an axis": (lambda d: d.mean("angle"), "average nothing over them"),
    "the most of the replications": (
        lambda d: d.max("replication", keep_attrs=True),
        "no replication left: select .*; a single one keeps its number",
    ),
    "the fewest": (lambda d: d.min("replication", keep_attrs=True), "no replication left: select"),
    "another name": (lambda d: d.rename(replication="r"), "no replication left: select"),
    "without a number": (lambda d: d.isel(replication=3, drop=True), "no replication left: sel"),
    "answers masked alone": (
        lambda d: d.assign(correct=d.correct.where(d.replication < 7)),
        r"^dataset: 'correct' is NaN where 'pulls' is not: select .* dataset.where\(...\)",
    ),
    "ends masked alone": (
        lambda d: d.assign(stopped=d.stopped.where(d.replication < 7)),
        "^dataset: 'stopped' is NaN where 'pulls' is not",
    ),
    "runs": (
        lambda d: xarray.Dataset({"pulls": ("replication", [1])}, attrs={"seed": "0"}),
        "^dataset must be that of a sweep, this has no attribute 'axes' and no instances$",
    ),
    "a seed as text": (
        lambda d: d.assign_attrs(seed="0"),
        "^dataset: the attribute 'seed' is not a whole number, 0 or above, got '0'$",
    ),
    "no replications": (lambda d: d.isel(replication=[]), "holds no replication"),
    "no algorithms": (lambda d: d.isel(algorithm=[]), "holds no algorithm"),
    "no value of an axis": (lambda d: d.sel(angle=[]), "holds no angle"),
    "without pulls": (lambda d: d.drop_vars("pulls"), "has no variable 'pulls'"),
    "without answers": (lambda d: d.drop_vars("correct"), "has no variable 'correct'"),
    "one algorithm twice": (lambda d: d.isel(algorithm=[0, 0]), "the algorithm A stands twice"),
    "a table": (lambda d: d.pulls, "must be that of a sweep, an xarray.Dataset, got a DataArray"),
    "a path": (lambda d: "results.nc", "must be that of a sweep, an xarray.Dataset, got a str"),
    "one of the axes twice": (
        lambda d: d.assign_attrs(axes='["angle", "angle"]'),
        "not a list of names that differ",
    ),
    "an axis that is a part": (lambda d: d.assign_attrs(axes='["instance"]'), "none of them alg"),
    "text": (lambda d: d.assign(pulls=d.pulls.astype(str)), "'pulls' must hold numbers, got <U"),
    "text as objects": (
        lambda d: d.assign(judged=d.judged.astype(str).astype(object)),
        "'judged' must hold numbers, got object",
    ),
    "complex numbers": (
        lambda d: d.assign(promised_error=d.promised_error * 1j),
        "'promised_error' must hold numbers, got complex128",
    ),
    "dates": (lambda d: d.assign(judged=d.judged.astype("M8[s]")), "'judged' must hold numbers"),
    "pulls below 0": (lambda d: d.assign(pulls=-d.pulls), "'pulls' holds -"),
    "infinitely many pulls": (lambda d: d.assign(pulls=d.pulls * np.inf), "'pulls' holds inf"),
    "half a flag": (lambda d: d.assign(judged=d.judged * 0.5), "'judged' holds 0.5"),
    "a dimension more": (
        lambda d: d.assign(correct=d.correct.expand_dims(q=2)),
        "'correct' has the dimension q, 'pulls' has not",
    ),
    "a single number of pulls": (lambda d: d.assign(pulls=3), "'pulls' has no instance"),
    "a single reason": (lambda d: d.assign(reason=0), "'reason' has no replication"),
    "arms without their dimension": (
        lambda d: d.assign(arm_pulls_mean=3.0),
        "'arm_pulls_mean' has no arm",
    ),
    "names that are none": (
        lambda d: d.assign_coords(algorithm=np.array([None, "B"])),
        "labels of algorithm must be text or numbers, got ",
    ),
    "a date as a name": (
        lambda d: d.assign_coords(algorithm=np.array([0, 1], "M8[s]")),
        "labels of algorithm must be text or numbers",
    ),
    "a value that is NaN": (
        lambda d: d.assign_coords(angle=[np.nan, 1.0]),
        "labels of angle must be neither NaN nor complex, got nan",
    ),
    "a date that is none": (
        lambda d: d.assign_coords(angle=np.array(["2020", "NaT"], "M8[ns]")),
        "labels of angle must be neither NaN nor complex, got NaT",
    ),
    "a value that is None": (
        lambda d: d.assign_coords(angle=np.array([None, 1.0])),
        "labels of angle must be neither NaN nor complex, got None",
    ),
    "complex values": (
        lambda d: d.assign_coords(angle=[1j, 2j]),
        "labels of angle must be neither NaN nor complex",
    ),
    "axes that are no names": (lambda d: d.assign_attrs(axes="[3]"), "not a list of names"),
}


LABELS = {
    "dates": (np.array(["2021", "2020"], "M8[ns]"), ["2021-01-01 00:00:00", "2020-01-01 00:00:00"]),
    "lengths of time": (np.array([1, 60], "m8[s]"), ["0 days 00:00:01", "0 days 00:01:00"]),
    "intervals": (pandas.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    "periods": (pandas.period_range("2020", "2021", freq="Y"), ["2020", "2021"]),
    "whole numbers of pandas": (pandas.Index([1, 2], dtype="Int64"), [1, 2]),
    "what no scale shows": (np.array([1e-300, 1e300]), [1e-300, 1e300]),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_kind_are_text_or_numbers(dataset, tmp_path, name):
    given, shown = LABELS[name]
    labelled = dataset.assign_coords(angle=given)
    found, expected = frame(labelled), frame(dataset)
    assert found.index.unique("angle").tolist() == shown
    np.testing.assert_array_equal(found.values, expected.values)
    assert [line[3:] for line in table.rows(labelled)[1]] == [
        line[3:] for line in table.rows(dataset)[1]
    ]
    (ax,) = jb.plot.sweep(labelled, quantities=["pulls"]).axes
    words = [text.get_text().replace("\n", " ") for text in ax.get_xticklabels()]
    assert words == [f"{x:g}" if isinstance(x, float) else str(x) for x in shown]
    comparison = jb.Comparison(labelled.isel(instance=[0]))
    assert len(comparison.runs) == 4
    assert len(comparison.to_dataframe()) == 80
    if name in ("dates", "lengths of time"):
        with again(labelled, tmp_path) as stored:
            assert frame(stored).index.equals(found.index)


def test_a_dimension_with_labels_of_its_own_is_the_axis(dataset):
    swapped = dataset.assign_coords(k=("angle", [3, 4])).swap_dims(angle="k")
    assert frame(swapped).index.names == ["instance", "algorithm", "k"]
    np.testing.assert_array_equal(frame(swapped).pulls_mean, frame(dataset).pulls_mean)


def test_numbers_of_short_precision_are_averaged_in_double(dataset):
    few = dataset.assign(pulls=dataset.pulls * 0 + 2049).isel(replication=slice(3))
    few.pulls[..., 0] = 2048
    short = frame(few.assign(pulls=few.pulls.astype(np.float32)))
    assert short.pulls_mean.tolist() == [2048 + 2 / 3] * 4


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("bound", [0.0, 1e-308, np.inf])
def test_bounds_that_are_none_divide_nothing(dataset, bound):
    given = dataset.assign(pull_lower_bound=0 * complete(dataset).pulls_mean + bound)
    assert frame(given).over_bound.isna().all() == (bound == 0)
    jb.plot.sweep(given, quantities=["pulls"]).canvas.draw()


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("function", [jb.plot.sweep, plot.title_of, table.rows, pairs.pairs])
def test_what_cannot_be_shown_is_one_line(dataset, name, function):
    select, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        function(select(dataset))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("quantities", "message"),
    [
        (["pull"], "unknown quantity 'pull'; did you mean 'pulls'"),
        ("pulls", "quantities must be a list of names, got 'pulls'"),
        ([], "quantities must be a list of names"),
        (["regret"], "'regret' needs 'regret', which dataset lacks"),
        (["arms"], "'arms' needs 'arm_pulls', which dataset lacks"),
        (True, "quantities must be a list of names, got True"),
        ({"pulls"}, "quantities must be a list of names, got {'pulls'}"),
        (iter(["pulls"]), "quantities must be a list of names, got <list_iterator"),
        ([["pulls"]], "quantities must be a list of names, got "),
        (np.array([1.0, 2.0]), "quantities must be a list of names, got array"),
    ],
)
def test_quantities_are_checked(dataset, quantities, message):
    with pytest.raises(ValueError, match=message):
        jb.plot.sweep(dataset.drop_vars("arm_pulls"), quantities=quantities)


def test_contextual_cells_have_no_error_rate_in_any_selection(dataset):
    """Results of 0.2.0 say so by an error rate that is missing though all have stopped."""
    old = dataset.drop_vars("judged").assign(error_rate=dataset.error_rate * np.nan)
    for part in (old, old.isel(replication=slice(3)), old.where(old.replication < 3)):
        assert np.isnan(complete(part).error_rate).all()
    new = dataset.assign(judged=False & dataset.judged).drop_vars("error_rate")
    assert np.isnan(complete(new.isel(replication=slice(3))).error_rate).all()
    assert complete(dataset).error_rate.notnull().all()


def test_means_of_arms_are_not_those_of_other_replications(dataset):
    part = complete(dataset.isel(replication=slice(3)))
    assert (part.arm_pulls_mean == part.arm_pulls.mean("replication")).all()
    large = dataset.drop_vars("arm_pulls")  # as of a sweep that is too large to keep them
    assert "arm_pulls_mean" in complete(large)
    assert "arm_pulls_mean" not in complete(large.isel(replication=slice(3)))


def test_a_comparison_shows_what_its_dataset_holds():
    found = jb.compare(LINGAPE, jb.instances.soare(2, angle=1.2), replications=20, bounds=False)
    three = dataclasses.replace(found, dataset=found.dataset.isel(replication=slice(3)))
    assert repr(three).startswith("3 replications")
    assert three.table.replications.tolist() == [3, 3]
    three.dataset["pulls"] = three.dataset.pulls * 0 + 7
    assert three.table.pulls_mean.tolist() == [7.0, 7.0]
    part = jb.Comparison(found.dataset.isel(replication=slice(5)))
    assert part.plot().get_suptitle().splitlines()[1].startswith("5 replications")
    assert len(part.runs["A"].pulls) == part.runs["A"].summary()["replications"] == 5
    assert jb.plot.sweep(found).axes
    masked = jb.Comparison(found.dataset.where(found.dataset.replication < 5))
    for draw in (jb.plot.stopping_times, jb.plot.arm_pulls, jb.plot.error_rates):
        one, other = (draw(each) for each in (part, masked))
        for line, same in zip(one.axes[0].get_lines(), other.axes[0].get_lines(), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), same.get_ydata())
        assert [x.get_height() for x in one.patches] == [x.get_height() for x in other.patches]


def test_names_of_dropped_dimensions(dataset):
    one = complete(dataset.isel(instance=0, algorithm=0, drop=True))
    assert one.instance.values.tolist() == ["soare"]  # the only one of the sweep
    assert one.algorithm.values.tolist() == ["algorithm"]
    assert json.loads(complete(dataset.isel(angle=0, drop=True)).attrs["axes"]) == []


def test_a_file_of_a_sweep_is_loaded(dataset, tmp_path):
    save(dataset, tmp_path / "results.nc")
    assert jb.load(tmp_path / "results.nc").identical(dataset)
    dataset.sel(angle=0.8).to_netcdf(tmp_path / "part.nc", engine="h5netcdf")
    part = jb.load(str(tmp_path / "part.nc"))
    assert complete(part).pulls_mean.identical(complete(dataset.sel(angle=0.8)).pulls_mean)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.nc", None, "none.nc does not hold the results of a sweep"),
        ("bad.nc", b"garbage" * 99, "bad.nc does not hold the results of a sweep"),
        ("other.nc", xarray.Dataset({"x": 1}), "other.nc does not hold the results of a sweep"),
        ("figure.png", b"PNG" * 99, "does not hold saved runs .*; files .* end in .npz or .nc"),
        ("cells.csv", None, "does not hold saved runs .*; files .* end in .npz or .nc"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        content.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match=message) as error:
        jb.load(path)
    assert "\n" not in str(error.value)


def test_answers_and_flags_of_single_replications_are_kept():
    top = jb.instances.classic_top_m(3, 1, angle=1.2)
    both = {
        "set": partial(jb.m_lingape, m=1, delta=0.3),
        "one": partial(jb.sequential_halving, budget=12),
    }
    kept = jb.sweep({"top": top}, both, replications=6, progress=False)
    for name, build in both.items():
        runs = jb.simulate(top, build, replications=6)
        masks = kept.answers.sel(instance="top", algorithm=name).values
        expected = runs.answer if runs.answer.ndim > 1 else runs.answer[:, None] == np.arange(3)
        np.testing.assert_array_equal(masks, expected)
        for flag, values in runs.facts.items():
            np.testing.assert_array_equal(kept[f"facts_{flag}"].sel(algorithm=name)[0], values)


def test_quantities_may_be_listed_in_any_way(dataset):
    for quantities in (
        ("pulls",),
        np.array(["pulls"]),
        dataset.indexes["algorithm"][:0].insert(0, "pulls"),
    ):
        (ax,) = jb.plot.sweep(dataset, quantities=quantities).axes[:1]
        assert ax.get_ylabel().startswith("pulls")


@pytest.mark.parametrize("title", [3, b"x", np.nan, ["a"], np.array([1, 2])])
def test_a_title_is_text(dataset, title):
    with pytest.raises(ValueError, match=r"^title must be text or None, got "):
        jb.plot.sweep(dataset, title=title)


def test_arms_are_drawn_by_number(dataset):
    named = dataset.assign_coords(arm=[f"arm {i}" for i in dataset.arm.values])
    table.rows(named)
    with pytest.raises(
        ValueError, match=r"^quantities: 'arms' needs arms whose labels are numbers"
    ):
        jb.plot.sweep(named, quantities=["arms"])


def test_curves_without_rounds_are_refused():
    part = example(instances=("one",))
    regret = ((*part.pulls.dims, "round"), np.zeros((*part.pulls.shape, 0)))
    with pytest.raises(ValueError, match=r"^dataset holds no round: the selection is empty"):
        table.rows(part.assign(regret=regret))


def test_the_last_round_is_the_largest_in_any_order():
    dataset = example(instances=("one",), regret=True)
    assert jb.Comparison(dataset).to_dataframe().regret.notna().all()
    order = np.random.default_rng(0).permutation(dataset.sizes["round"])
    for other in (dataset.isel(round=slice(None, None, -1)), dataset.isel(round=order)):
        assert frame(other).equals(frame(dataset))
        assert table.rows(other, pairs.differences(other)) == table.rows(
            dataset, pairs.differences(dataset)
        )
        frames = [jb.Comparison(each).to_dataframe() for each in (other, dataset)]
        assert frames[0].equals(frames[1])


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (lambda d: d.isel(round=[0, 1, 1]), "^dataset: the round 2 stands twice"),
        (
            lambda d: d.assign_coords(round=[np.nan, *d["round"].values[1:]]),
            "^dataset: labels of round must be numbers, got NaN",
        ),
        (
            lambda d: d.assign(regret=d.regret.mean("replication")),
            "^dataset: 'regret' has no replication, which 'pulls' has",
        ),
    ],
)
def test_curves_that_are_none_are_refused(select, message):
    with pytest.raises(ValueError, match=message):
        frame(select(example(instances=("one",), regret=True)))


def test_names_of_columns_are_taken(dataset):
    """Those of all frames; an axis of `at_budget` may be called answer."""
    with_regret = example(instances=("one",), regret=True)
    bounded = dataset.assign(pull_lower_bound=0 * complete(dataset).pulls_mean + 9.0)
    single = jb.Comparison(dataset).to_dataframe()
    names = {*frame(with_regret), *frame(bounded), *single} - {"answer"}
    assert {name for name in names if not name.startswith(("info_", "facts_"))} <= TAKEN
    answered = jb.Comparison(dataset.rename(angle="answer").assign_attrs(axes='["answer"]'))
    assert answered.to_dataframe().index.names == ["algorithm", "answer", "replication"]


def test_an_axis_without_a_value_is_refused():
    with pytest.raises(
        ValueError, match=r"^\[axes\] angle must be without None, got \[None, 0.8\]"
    ):
        jb.sweep(
            {"soare": partial(jb.instances.soare, 2)},
            LINGAPE,
            axes={"angle": [None, 0.8]},
            replications=2,
        )


def test_a_dataset_is_none_of_runs(dataset):
    message = "^runs must be Runs, a dict of Runs by name, or a Comparison, got an xarray.Dataset"
    with pytest.raises(ValueError, match=message):
        jb.plot.stopping_times(dataset)
