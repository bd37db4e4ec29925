"""Cells that do not depend on an axis: played once, repeated in the dataset, listed once."""

import json
from functools import partial

import numpy as np
import pytest
import xarray

import jaxbandits as jb
from jaxbandits.sweeps import grid
from jaxbandits.sweeps.dataset import ANY, listed_cells

INSTANCES = {
    "by gap": partial(jb.instances.canonical, dim=3),
    "fixed": jb.instances.canonical(3, gap=1.0),
}
HALVING = {"SH": partial(jb.sequential_halving, budget=30)}
AXES = {"gap": [0.5, 2.0], "noise_var": [1.0, 3.0]}


def played(monkeypatch, **options):
    """The dataset of a sweep, and the title of each cell that was played."""
    lines, original = [], grid._line
    monkeypatch.setattr(
        grid,
        "_line",
        lambda cell, *rest, **how: lines.append(cell.title) or original(cell, *rest, **how),
    )
    given = {"axes": AXES, "replications": 4, "progress": False} | options
    return jb.sweep(INSTANCES, HALVING, **given), lines


def test_a_cell_that_no_axis_reaches_is_played_once_and_repeated(monkeypatch):
    found, titles = played(monkeypatch)
    assert len(titles) == 5
    assert "SH on fixed" in titles
    fixed = found.sel(instance="fixed").arm_pulls.values.reshape(4, -1)
    assert (fixed == fixed[0]).all()
    assert json.loads(found.attrs["independent"]) == {axis: [["fixed", "SH"]] for axis in AXES}
    distinct = [
        *found.seconds.sel(instance="by gap").values.ravel(),
        found.seconds.sel(instance="fixed").values[0, 0, 0],
    ]
    assert found.attrs["seconds"] == pytest.approx(sum(distinct), abs=2e-3)


def test_a_table_lists_it_once(monkeypatch):
    found, _ = played(monkeypatch)
    listed = [tuple(shown.values()) for _, shown in listed_cells(found)]
    own = [("by gap", "SH", gap, var) for gap in (0.5, 2.0) for var in (1.0, 3.0)]
    assert listed == [*own, ("fixed", "SH", ANY, ANY)]
    points = [point for point, _ in listed_cells(found)]
    assert points[-1] == {"instance": "fixed", "algorithm": "SH", "gap": 0.5, "noise_var": 1.0}
    assert all(found.pulls.sel(point).ndim == 1 for point in points)


def test_it_is_listed_at_a_point_where_it_was_played(monkeypatch):
    found, _ = played(monkeypatch, only={"fixed": {"gap": [2.0]}})
    *_, (point, shown) = listed_cells(found)
    assert (point["gap"], shown["gap"]) == (2.0, ANY)
    assert np.isfinite(found.pulls.sel(point)).all()


def test_datasets_of_earlier_versions_list_every_point(monkeypatch):
    found, _ = played(monkeypatch)
    del found.attrs["independent"]
    assert len(list(listed_cells(found))) == 8


def test_an_axis_that_reaches_the_algorithm_multiplies_all_cells(monkeypatch):
    found, titles = played(monkeypatch, axes={"gap": [0.5, 2.0], "budget": [20, 30]})
    assert len(titles) == 6
    assert json.loads(found.attrs["independent"]) == {"gap": [["fixed", "SH"]], "budget": []}
    assert [tuple(shown.values())[2:] for _, shown in listed_cells(found)][-1] == (ANY, 30)


def words_of(found, **how):
    """The labels of the legend, and the titles of the panels."""
    figure = jb.plot.sweep(found, quantities=["accuracy"], **how)
    legend = [entry.get_text() for entry in figure.legends[0].get_texts()]
    return legend[: found.sizes["algorithm"]], [ax.get_title() for ax in figure.axes]


def test_a_figure_says_which_instance_does_not_depend_on_the_axis(monkeypatch):
    found, _ = played(monkeypatch, axes={"gap": [0.5, 2.0]})
    said = "fixed\ndoes not depend on gap"
    assert words_of(found) == (["SH"], ["by gap", said])
    assert words_of(found.sel(instance=["fixed"])) == (["SH"], [said])
    assert words_of(found.sel(instance="by gap")) == (["SH"], ["by gap"])


def test_a_figure_says_which_algorithm_does_not_depend_on_the_axis(monkeypatch):
    found, _ = played(monkeypatch, axes={"gap": [0.5, 2.0]})
    found = xarray.concat([found, found.assign_coords(algorithm=["B"])], "algorithm")

    def with_pairs(*pairs):
        return found.assign_attrs(independent=json.dumps({"gap": pairs}))

    everywhere = with_pairs(("fixed", "B"), ("by gap", "B"))
    assert words_of(everywhere) == (["SH", "B (does not depend on gap)"], ["by gap", "fixed"])
    title = "fixed\nB does not depend on gap"
    assert words_of(with_pairs(("fixed", "B"))) == (["SH", "B"], ["by gap", title])
    also = with_pairs(("fixed", "B"), ("fixed", "SH"), ("by gap", "B"))
    labels = ["SH", "B (does not depend on gap)"]
    assert words_of(also) == (labels, ["by gap", "fixed\ndoes not depend on gap"])
