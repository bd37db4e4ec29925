"""Figures of large sweeps: labels do not overlap, panels wrap to further rows."""

import itertools
import tomllib
from functools import partial

import matplotlib.image
import numpy as np
import pytest
import xarray
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pages import example
from run_settings import HALVING

import jaxbandits as jb
from jaxbandits.report import limits, panels, plot
from jaxbandits.show import labels, marks
from jaxbandits.sweeps import parse, run
from jaxbandits.sweeps.selection import complete


def drawn(axes):
    figure = plot.figure(run(parse(tomllib.loads(HALVING) | {"replications": 4, "axes": axes})))
    FigureCanvasAgg(figure).draw()  # lays out every word
    return figure


def boxes(figure, ax):
    renderer = figure.canvas.get_renderer()
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    return [label.get_text() for label in labels], [
        label.get_window_extent(renderer) for label in labels
    ]


def flat(dataset):
    """The first point of the axis, as a sweep without axes."""
    return dataset.isel(gap=0, drop=True).assign_attrs(axes="[]")


GAPS = [np.linspace(0.3, 1.06, 20), np.geomspace(0.001, 1.234, 25), [0.5, 1.0]]


@pytest.mark.parametrize(
    "gaps", [GAPS[0], *(pytest.param(g, marks=pytest.mark.slow) for g in GAPS[1:])], ids=len
)
def test_tick_labels_do_not_overlap(gaps):
    gaps = [float(f"{gap:.4g}") for gap in gaps]
    figure = drawn({"gap": gaps})
    for ax in figure.axes[-1:]:
        words, where = boxes(figure, ax)
        assert {words[0], words[-1]} == {f"{gaps[0]:g}", f"{gaps[-1]:g}"}
        assert len(ax.get_xticks()) == len(gaps)
        assert not any(a.overlaps(b) for a, b in itertools.combinations(where, 2))


def test_an_axis_with_infinity_has_labels_at_equal_distances():
    data = example(instances=("one",)).assign_coords(gap=[np.inf, 0.5])
    figure = plot.figure(data)
    FigureCanvasAgg(figure).draw()
    ax = figure.axes[-1]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["inf", "0.5"]
    assert ax.get_xticks().tolist() == [0, 1]


def test_values_of_an_axis_have_as_many_digits_as_tell_them_apart():
    data = example(instances=("one",)).assign_coords(gap=[1e6, 1000000.5])
    ax = plot.figure(data).axes[-1]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1000000", "1000000.5"]
    usual = [0.1, 1 / 3, 1e6]
    assert list(map(labels.texts_of(usual), usual)) == ["0.1", "0.333333", "1e+06"]
    near = [0.1, np.nextafter(0.1, 1)]
    assert list(map(labels.texts_of(near), near)) == ["0.10000000000000001", "0.10000000000000002"]


@pytest.mark.slow
def test_many_panels_wrap_to_further_rows():
    figure = drawn({"gap": [*range(1, 9)], "noise_var": [*range(1, 8)]})
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert len(titles) == 7
    columns = {round(ax.get_position().x0, 2) for ax in figure.axes}
    assert 1 < len(columns) <= plot.MOST_COLUMNS
    assert {ax.get_ylim() for ax in figure.axes} == {figure.axes[0].get_ylim()}


def test_pulls_of_each_arm_are_drawn():
    """A point for each arm and algorithm, with an interval, on a logarithmic scale."""
    some = {"replications": 6, "axes": {"gap": [0.5]}}
    dataset = run(parse(tomllib.loads(HALVING) | some)).squeeze("gap", drop=True)
    dataset.attrs["axes"] = "[]"
    figure = plot.figure(dataset, quantities=["arms"])
    FigureCanvasAgg(figure).draw()
    ax = figure.axes[0]
    first = dataset.isel(instance=0, algorithm=0)
    points = ax.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(points, first.arm_pulls.mean("replication"))
    assert len(ax.containers) == dataset.sizes["algorithm"]
    arms = list(range(len(points)))
    assert [label.get_text() for label in ax.get_xticklabels()] == list(map(str, arms))
    at = [bars.lines[0].get_xdata() for bars in ax.containers]
    np.testing.assert_allclose(np.mean(at, axis=0), arms, atol=1e-12)
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize("values", [[0.01, 0.03, 0.05, 1.0], [1, 2, 4], [3]])
def test_marks_of_many_algorithms_stay_near_their_point(values):
    """No mark is nearer to the next point of the axis; a few algorithms keep the usual distance."""
    data = xarray.Dataset(coords={"algorithm": [str(i) for i in range(13)], "x": values})
    rows = labels.side_by_side(data, "x")
    middles = np.sqrt(np.multiply(values[1:], values[:-1]))
    if max(values) / min(values) < 8:
        middles = (np.array(values[1:]) + values[:-1]) / 2
    for point, column in enumerate(rows.T):
        assert (column > ([-np.inf, *middles])[point]).all()
        assert (column < ([*middles, np.inf])[point]).all()
        assert len(values) == 1 or len(set(column)) == 13
    few = labels.side_by_side(data.isel(algorithm=[0, 1]), "x")
    if len(values) == 3:
        np.testing.assert_allclose(few[1] - few[0], labels.OFFSET * 3)


def test_lines_of_many_algorithms_differ():
    names = [f"{i} arms" for i in range(11)]
    algorithms = {
        name: partial(jb.sequential_halving, budget=20 + i) for i, name in enumerate(names)
    }
    dataset = jb.sweep(
        {"basis": partial(jb.instances.canonical, dim=3)},
        algorithms,
        axes={"gap": [0.5, 1.0]},
        replications=4,
        progress=False,
    )
    lines = plot.figure(dataset, quantities=("accuracy",)).axes[0].containers
    styles = {(line[0].get_color(), line[0].get_linestyle()) for line in lines}
    assert len(styles) == 11


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1.0, 900.0], "log"), ([1.0, 2.0], "linear"), ([0.0, 900.0], "linear"), ([-1, 9], "linear")],
)
def test_a_scale_is_logarithmic_where_values_lie_far_apart_and_above_0(values, scale):
    assert limits.scale_of(np.array([*values, np.nan])) == scale


def promising(deltas, along=None):
    """A dataset of one instance whose algorithms promise these error rates; `[algorithm, gap]`."""
    dataset = example(instances=("soare",))
    dims = dataset.error_rate.dims
    dataset = dataset.assign(promised_error=(dims, np.array(deltas, float)[None]))
    if along:
        dataset = dataset.rename(gap=along)
        dataset.attrs["axes"] = f'["{along}"]'
    return dataset


def promises(dataset, quantity="errors"):
    """The lines of promised rates, as `(label, heights)`."""
    (ax,) = plot.figure(dataset, quantities=(quantity,)).axes
    lines = [line for line in ax.get_lines() if str(line.get_label()).startswith(panels.PROMISED)]
    return [(line.get_label(), list(line.get_ydata())) for line in lines]


def test_the_promised_error_rate_is_a_line_where_all_share_it():
    same = promising([[0.05, 0.05], [np.nan, np.nan]])  # the second has a budget
    assert promises(same) == [("promised: delta = 0.05", [0.05, 0.05])]
    assert promises(same, "accuracy") == [("promised: delta = 0.05", [0.95, 0.95])]
    assert promises(promising([[0.05, 0.05], [0.1, 0.1]])) == []
    assert promises(promising([[np.nan] * 2] * 2)) == []
    assert promises(same.drop_vars("promised_error")) == []


def test_the_promised_error_rate_is_the_diagonal_along_its_own_axis():
    dataset = promising([[0.5, 0.25], [0.5, 0.25]], along="delta")
    ((label, heights),) = promises(dataset)
    assert label == "promised: delta"
    (ax,) = plot.figure(dataset, quantities=("errors",)).axes
    (line,) = [line for line in ax.get_lines() if line.get_label() == label]
    np.testing.assert_array_equal(line.get_xdata(), line.get_ydata())
    assert (min(heights), max(heights)) == pytest.approx((0.25, 0.5))
    other = promising([[0.5, 0.25], [0.5, 0.25]])
    other = other.assign_coords(gap=[0.1, 0.2])
    assert promises(other) == [("promised: delta", [0.5, 0.25])]


def without_errors(dataset):
    """The dataset as if the first cell had no error in its 20 replications."""
    dataset.correct[0, 0, 0] = True
    return dataset


@pytest.mark.parametrize(("quantity", "end"), [("errors", 0.1684), ("accuracy", 0.8316)])
def test_a_cell_without_errors_is_drawn_as_a_bound_and_not_as_a_measurement(quantity, end):
    dataset = without_errors(example(instances=("soare",)))
    (ax,) = plot.figure(dataset, quantities=(quantity,)).axes
    first = ax.containers[0].lines[0].get_ydata()
    assert np.isnan(first[0])
    assert np.isfinite(first[1])
    (arrow,) = [line for line in ax.get_lines() if line.get_markersize() == marks.ARROW]
    assert arrow.get_ydata() == pytest.approx([end], abs=1e-4)
    tip = arrow.get_marker().vertices[:, 1].min()
    assert (tip < 0) == (quantity == "errors")  # towards 0 errors
    assert marks.NO_ERROR in ax.get_legend_handles_labels()[1]


def bounded(ratio):
    """Two panels, and a lower bound that is the mean pulls of each cell by `ratio`."""
    dataset = example()
    return dataset.assign(pull_lower_bound=dataset.pulls_mean / ratio)


@pytest.mark.parametrize("ratio", [1.2, 15.0, 1 / 15, 100.0])
def test_a_lower_bound_is_a_line_inside_also_where_it_is_far_away(ratio):
    for ax in plot.figure(bounded(ratio), quantities=("pulls",)).axes:
        (line,) = [line for line in ax.get_lines() if line.get_label() == "lower bound"]
        bottom, top = ax.get_ylim()
        assert bottom < min(line.get_ydata()) < max(line.get_ydata()) < top
        assert ax.get_yscale() == ("log" if ratio == 100.0 else "linear")
        assert not ax.texts


@pytest.mark.parametrize("names", [("soare",), ("soare", "other")])
def test_boxes_have_lower_bounds_too(names):
    """One line where it is the same for all, else one across the place of each cell."""
    dataset = complete(flat(example(instances=names)))
    bounds = np.arange(1.0, 1 + 2 * len(names)).reshape(len(names), 2) * 100
    same = dataset.assign(pull_lower_bound=(("instance", "algorithm"), 0 * bounds + 100))
    for ax in plot.figure(same, quantities=("pulls",)).axes:
        (line,) = [line for line in ax.get_lines() if line.get_label() == "lower bound"]
        assert list(line.get_ydata()) == [100.0, 100.0]
    differ = dataset.assign(pull_lower_bound=(("instance", "algorithm"), bounds))
    (ax,) = plot.figure(differ, quantities=("pulls",)).axes
    (lines,) = [found for found in ax.collections if found.get_label() == "lower bound"]
    assert [segment[0, 1] for segment in lines.get_segments()] == bounds.ravel().tolist()


def test_panels_that_share_a_scale_show_all_intervals():
    dataset = example()
    dataset["pulls"] = dataset.pulls * xarray.DataArray([1, 3], dims="instance")
    for ax in plot.figure(dataset, quantities=("pulls",)).axes:
        bottom, top = ax.get_ylim()
        whole = complete(dataset)
        assert bottom < whole.pulls_low.min()
        assert top > whole.pulls_high.max()


def test_boxes_have_means_with_intervals_beside_them():
    dataset = flat(example(instances=("soare",)))
    (ax,) = plot.figure(dataset, quantities=("pulls",)).axes
    ours = [bars for bars in ax.containers if bars.lines[0].get_xdata().size]
    middle = [bars.lines[0].get_ydata()[0] for bars in ours]
    np.testing.assert_allclose(middle, dataset.pulls_mean[0])
    widths = [np.ptp(bars.lines[2][0].get_segments()[0][:, 1]) / 2 for bars in ours]
    np.testing.assert_allclose(widths, 2.0930240544 * dataset.pulls_se[0])  # Student's, not 1.96


def test_titles_say_what_was_asked():
    dataset = example(instances=("soare",))
    assert plot.title_of(dataset) == "20 replications"
    named = dataset.assign_attrs(title="angles.toml")
    assert plot.title_of(named) == "angles.toml\n20 replications"
    flat = named.isel(gap=0, drop=True).assign_attrs(axes="[]")
    assert plot.title_of(flat) == "angles.toml: soare\n20 replications"  # no panel names it
    paper = named.assign_attrs(experiment="Figure 1")
    assert plot.title_of(paper) == "Figure 1\n20 replications"


def test_a_figure_is_saved_in_three_formats_that_depend_on_the_results_alone(tmp_path):
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        paths = plot.save(example(instances=("soare",)), folder / "figure.png")
        assert [path.name for path in paths] == ["figure.png", "figure.svg", "figure.pdf"]
    starts = {"figure.png": b"\x89PNG", "figure.svg": b"<?xml", "figure.pdf": b"%PDF"}
    for name, start in starts.items():
        one, other = ((folder / name).read_bytes() for folder in folders)
        assert one.startswith(start)
        assert one == other
    picture = matplotlib.image.imread(folders[0] / "figure.png")
    assert min(picture.shape[:2]) > 1000  # pixels
