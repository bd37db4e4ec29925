"""Figures of large sweeps: words that do not overlap, panels that do not run off."""

import itertools
import tomllib

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from worlds import HALVING

from jaxbandits import plot
from jaxbandits.sweeps import parse, run


def drawn(axes):
    figure = plot.figure(run(parse(tomllib.loads(HALVING) | {"replications": 4, "axes": axes})))
    FigureCanvasAgg(figure).draw()  # sets every word in its place
    return figure


def boxes(figure, place):
    renderer = figure.canvas.get_renderer()
    labels = [label for label in place.get_xticklabels() if label.get_text()]
    return [label.get_text() for label in labels], [
        label.get_window_extent(renderer) for label in labels
    ]


GAPS = [np.linspace(0.3, 1.06, 20), np.geomspace(0.001, 1.234, 25), [0.5, 1.0]]


@pytest.mark.parametrize(
    "gaps", [GAPS[0], *(pytest.param(g, marks=pytest.mark.slow) for g in GAPS[1:])], ids=len
)
def test_values_along_an_axis_do_not_overlap(gaps):
    gaps = [float(f"{gap:.4g}") for gap in gaps]
    figure = drawn({"gap": gaps})
    for place in figure.axes[-1:]:
        words, where = boxes(figure, place)
        assert {words[0], words[-1]} == {f"{gaps[0]:g}", f"{gaps[-1]:g}"}
        assert len(place.get_xticks()) == len(gaps)
        assert not any(a.overlaps(b) for a, b in itertools.combinations(where, 2))


def test_many_panels_go_below_one_another():
    figure = drawn({"gap": [*range(1, 9)], "noise_var": [*range(1, 8)]})
    titles = [place.get_title() for place in figure.axes if place.get_title()]
    assert len(titles) == 7
    columns = {round(place.get_position().x0, 2) for place in figure.axes}
    assert 1 < len(columns) <= plot.MOST_COLUMNS
    assert {place.get_ylim() for place in figure.axes} == {figure.axes[0].get_ylim()}


def test_the_pulls_of_each_arm():
    """A point for each arm and algorithm, with an interval, on a logarithmic scale."""
    some = {"replications": 6, "axes": {"gap": [0.5]}}
    dataset = run(parse(tomllib.loads(HALVING) | some)).squeeze("gap", drop=True)
    dataset.attrs["axes"] = "[]"
    figure = plot.figure(dataset, quantities=["arms"])
    FigureCanvasAgg(figure).draw()
    place = figure.axes[0]
    first = dataset.isel(instance=0, algorithm=0)
    points = place.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(points, first.arm_pulls.mean("replication"))
    assert len(place.containers) == dataset.sizes["algorithm"]
    assert [label.get_text() for label in place.get_xticklabels()] == [
        str(arm + 1) for arm in range(len(points))
    ]
    assert place.get_yscale() == "log"
