"""Figures of large sweeps: labels do not overlap, panels wrap to further rows."""

import itertools
import tomllib
from functools import partial

import numpy as np
import pytest
import xarray
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_settings import HALVING

import jaxbandits as jb
from jaxbandits.report import labels, panels, plot
from jaxbandits.sweeps import parse, run


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
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        str(arm + 1) for arm in range(len(points))
    ]
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
    lines = plot.figure(dataset, quantities=("accuracy",)).axes[0].get_legend_handles_labels()[0]
    styles = {(line[0].get_color(), line[0].get_linestyle()) for line in lines}
    assert len(styles) == 11


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1.0, 900.0], "log"), ([1.0, 2.0], "linear"), ([0.0, 900.0], "linear"), ([-1, 9], "linear")],
)
def test_a_scale_is_logarithmic_where_values_lie_far_apart_and_above_0(values, scale):
    ax = Figure().add_subplot()
    panels._scale(ax, np.array([*values, np.nan]))
    assert ax.get_yscale() == scale
