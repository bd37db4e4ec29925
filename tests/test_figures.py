"""Figures as a reader sees them: no words touch, nothing hides data, sizes and fonts are kept."""

import itertools
import json
import pickle
import threading
import zlib

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from pages import example
from params import params
from test_runs_plots import recorded

import jaxbandits as jb
from jaxbandits.report import plot
from jaxbandits.show import canvas, marks, picture
from jaxbandits.sweeps.selection import complete

LONG = ("Frank-Wolfe sampling with a long name", "LinGapE (ratio, delta = 0.05)", "RAGE")
MANY = tuple(f"algorithm {i}" for i in range(12))
LOW = 40  # dots per inch


def along(name, values, algorithms=LONG, instances=("soare",)):
    """A sweep along an axis with these values, with the lower bounds of its cells."""
    data = example(instances=instances, algorithms=algorithms)
    data = data.isel(gap=np.arange(len(values)) % 2).assign_coords(gap=values).rename(gap=name)
    data = complete(data.assign_attrs(axes=json.dumps([name])))
    return data.assign(pull_lower_bound=0 * data.pulls_mean + 200.0)


def flat(algorithms, instances=("soare",), **options):
    """A sweep without axes."""
    data = example(instances=instances, algorithms=algorithms, **options)
    return data.isel(gap=0, drop=True).assign_attrs(axes="[]")


def faultless(data):
    return data.assign(correct=data.correct | True, stopped=data.stopped | True)


def of_two_axes():
    data = example(algorithms=LONG)
    found = xarray.concat([data] * 3, "noise_var").assign_coords(noise_var=[1.0, 2.0, 4.0])
    return found.assign_attrs(axes='["gap", "noise_var"]')


SWEEPS = {
    "long names": flat(LONG),
    "many algorithms": flat(MANY),
    "two instances": flat(LONG, ("soare", "a sphere of twenty arms")),
    "no error": faultless(flat(LONG)),
    "a line": along("angle", [0.1, 0.2, 0.3, 0.4, 0.5]),
    "many lines": along("angle", [0.1, 0.2], MANY),
    "a logarithmic axis": along("dim", [2, 4, 8, 16, 32, 64, 128, 256]),
    "an axis of names": along("selection", ["greedy", "ratio", "largest_variance"]),
    "one point": along("angle", [0.3]),
    "regret": example(algorithms=LONG, regret=True),
    "two axes": of_two_axes(),
}
DRAWN = {
    "stopping times": lambda how: jb.plot.stopping_times(dict.fromkeys(LONG, recorded(9)), **how),
    "error rates": lambda how: jb.plot.error_rates(
        dict.fromkeys(MANY, recorded(9)), delta=0.1, **how
    ),
    "pulls of many arms": lambda how: jb.plot.arm_pulls(
        dict.fromkeys(LONG, recorded(9, num_arms=60)), allocation=np.ones(60), width=how["width"]
    ),
    "curves of regret": lambda how: jb.plot.regret(
        dict.fromkeys(LONG, recorded(9, horizon=50)), **how
    ),
} | {name: lambda how, data=data: jb.plot.sweep(data, **how) for name, data in SWEEPS.items()}


def laid_out(figure):
    figure.set_dpi(LOW)
    figure.draw_without_rendering()
    return figure.canvas.get_renderer()


def corners(label, renderer):
    """The outline of a word, which may be turned, as `[4, 2]`."""
    angle = np.deg2rad(label.get_rotation())
    box = label.get_window_extent(renderer)
    if abs(np.sin(2 * angle)) < 1e-6:
        return np.array([[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]])
    high = label.get_fontsize() * LOW / 72 * len(label.get_text().splitlines())
    across = high * np.array([-np.sin(angle), np.cos(angle)])
    start, end = np.array([box.x0, box.y0]) - np.minimum(0, across), np.array([box.x1, box.y1])
    end = end - np.maximum(0, across)
    return np.array([start, end, end + across, start + across])


def apart(one, other):
    """Whether a line lies between two convex outlines."""
    for shape in (one, other):
        for side in np.roll(shape, -1, 0) - shape:
            normal = np.array([-side[1], side[0]])
            a, b = one @ normal, other @ normal
            if a.max() <= b.min() + 1e-6 or b.max() <= a.min() + 1e-6:
                return True
    return False


def words_of(ax, which):
    axis = ax.xaxis if which == "x" else ax.yaxis
    labels = axis.get_ticklabels() + axis.get_ticklabels(minor=True)
    inside = ax.get_xlim() if which == "x" else ax.get_ylim()
    where = [label.get_position()[which == "y"] for label in labels]
    low, high = min(inside), max(inside)
    return [
        label
        for label, at in zip(labels, where, strict=True)
        if label.get_text() and label.get_visible() and low <= at <= high
    ]


def every_word(figure):
    """All words that are drawn: at ticks, along axes, above panels, in legends."""
    ticks = [words_of(ax, side) for ax in figure.axes for side in "xy"]
    names = [[ax.xaxis.label, ax.yaxis.label, ax.title] for ax in figure.axes]
    legends = [legend.get_texts() for legend in figure.legends]
    above = [figure._suptitle] if figure._suptitle else []
    return [word for word in itertools.chain(*ticks, *names, *legends, above) if word.get_text()]


LAYOUTS = {
    "column": {"width": "column"},
    "screen": {"width": None},
    "logarithmic screen": {"width": None, "scale": "log"},
}


@pytest.mark.parametrize("layout", params(LAYOUTS, always=("column",)))
@pytest.mark.parametrize("name", DRAWN)
def test_words_do_not_touch_and_nothing_hides_data(name, layout):
    judge(DRAWN[name](LAYOUTS[layout]))


@pytest.mark.parametrize("name", params(DRAWN, always=("stopping times", "two axes")))
def test_words_do_not_touch_on_logarithmic_scales(name):
    judge(DRAWN[name]({"width": "column", "scale": "log"}))


def test_a_figure_with_names_that_touch_or_are_cut_off_is_found():
    figure = DRAWN["stopping times"]({"width": "column"})
    figure.axes[0].set_xticks([100, 101], ["a long name", "another one"])
    with pytest.raises(AssertionError):
        judge(figure)
    figure = DRAWN["stopping times"]({"width": "column"})
    figure.axes[0].set_ylabel(100 * "x")
    with pytest.raises(AssertionError):
        judge(figure)


def judge(figure):
    """Whether a reader sees all that is in a figure."""
    renderer = laid_out(figure)
    words = every_word(figure)
    outlines = [corners(word, renderer) for word in words]
    for (word, a), (other, b) in itertools.combinations(zip(words, outlines, strict=True), 2):
        assert apart(a, b), (word, other)
    for word, outline in zip(words, outlines, strict=True):
        assert (outline >= -1).all(), word
        assert (outline <= figure.bbox.max + 1).all(), word
    for ax in figure.axes:
        assert "\n" not in ax.get_ylabel()
        assert ax.get_legend() is None
        assert not ax.texts
    assert any(ax.get_ylabel() for ax in figure.axes)
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert box.x0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1
        assert not any(box.overlaps(ax.get_tightbbox(renderer)) for ax in figure.axes)
    panels = Bbox.union([ax.bbox for ax in figure.axes])
    assert panels.width > 0.5 * figure.bbox.width  # names leave room for what they name


def test_no_panel_is_empty():
    """Where nobody erred there is no panel of errors, and the title says so."""
    data = SWEEPS["no error"]
    assert [ax.get_ylabel() for ax in jb.plot.sweep(data).axes] == ["pulls"]
    assert plot.title_of(data).endswith("20 replications, no error (95%: below 0.17)")
    some = jb.plot.sweep(SWEEPS["long names"])
    assert [ax.get_ylabel() for ax in some.axes] == ["pulls", "error rate (95%)"]
    asked = jb.plot.sweep(data, quantities=["errors"])
    assert [ax.get_ylabel() for ax in asked.axes] == ["error rate (95%)"]


def test_algorithms_stand_on_the_axis_of_a_single_instance():
    figure = jb.plot.sweep(SWEEPS["many algorithms"])
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == list(MANY)
    shown = {text.get_text() for text in figure.legends[0].get_texts()}
    assert not shown & set(MANY)


def test_glyphs_of_a_legend_are_what_is_drawn():
    data = faultless(flat(LONG))
    (ax,) = jb.plot.sweep(data, quantities=["errors"]).axes
    drawn = [line for line in ax.get_lines() if line.get_markersize() == marks.ARROW]
    (shown,) = [line for line in ax.get_lines() if line.get_label() == marks.NO_ERROR]
    sizes = [
        np.ptp(line.get_marker().vertices, axis=0)
        / abs(line.get_marker().vertices).max()
        * line.get_markersize()
        for line in (drawn[0], shown)
    ]
    np.testing.assert_allclose(*sizes)
    curves = jb.plot.sweep(SWEEPS["regret"]).axes
    handles = canvas.handles(curves)
    assert list(handles) == list(LONG)
    for band, line in handles.values():
        assert tuple(band.get_facecolor()[0][:3]) == matplotlib.colors.to_rgb(line.get_color())


def test_curves_differ_without_their_colours():
    (ax,) = jb.plot.stopping_times(dict.fromkeys(LONG, recorded(9))).axes
    assert len({line.get_linestyle() for line in ax.get_lines()}) == len(LONG)


EVERY = {
    "runs": lambda how: recorded(9).plot(**how),
    "regret": lambda how: jb.plot.regret(recorded(9, horizon=5), **how),
    "sweep": lambda how: jb.plot.sweep(SWEEPS["no error"], **how),
    "comparison": lambda how: compared(SWEEPS["no error"]).plot(**how),
}


def compared(data):
    options = json.dumps({"[instances.instance]": {"constructor": "soare"}})
    return jb.Comparison(data.assign_attrs(options=options))


@pytest.mark.parametrize("name", params(EVERY, always=("runs", "comparison")))
class TestEveryPlot:
    def test_pyplot_knows_a_new_figure(self, name):
        before = pyplot.get_fignums()
        figure = EVERY[name]({})
        assert isinstance(figure, Figure)
        assert pyplot.figure(figure.number) is figure
        assert len(pyplot.get_fignums()) == len(before) + 1
        copy = pickle.loads(pickle.dumps(figure))
        assert len(copy.axes) == len(figure.axes)

    def test_axes_are_drawn_on(self, name):
        figure, (left, right) = pyplot.subplots(1, 2)
        numbers = pyplot.get_fignums()
        assert EVERY[name]({"ax": right, "scale": "log"}) is figure
        assert pyplot.get_fignums() == numbers
        assert right.has_data()
        assert not left.has_data()
        assert "log" in (right.get_xscale(), right.get_yscale())
        part = pyplot.figure().subfigures(1, 2)[0]
        assert EVERY[name]({"ax": part.subplots()}) is part.figure

    def test_sizes_are_kept(self, name):
        assert EVERY[name]({"width": "column"}).get_figwidth() == 3.3
        assert EVERY[name]({"width": "page"}).get_figwidth() == 6.9
        assert EVERY[name]({"width": 4}).get_figwidth() == 4.0
        with matplotlib.rc_context({"figure.figsize": (4.5, 2.5)}):
            assert EVERY[name]({}).get_size_inches().tolist() == [4.5, 2.5]
            assert EVERY[name]({"width": 4}).get_figwidth() == 4.0

    def test_colours_and_letters_are_those_of_rcparams(self, name):
        cycle = matplotlib.cycler(color=["#123456", "#654321"])
        with matplotlib.rc_context({"axes.prop_cycle": cycle, "font.size": 13.0}):
            (ax,) = EVERY[name]({"width": "column"}).axes
            laid_out(ax.figure)
        found = {matplotlib.colors.to_hex(line.get_color()) for line in ax.get_lines()}
        assert "#123456" in found
        assert not found & set(marks.COLOURS)
        assert ax.yaxis.label.get_fontsize() == 13.0
        (small,) = EVERY[name]({"width": "column"}).axes
        assert {x.get_fontsize() for x in (small.yaxis.label, *small.get_yticklabels())} == {8.0}

    def test_what_is_wrong_is_named_and_leaves_no_figure(self, name):
        before = pyplot.get_fignums()
        for how, words in (
            ({"width": "wide"}, "width must be 'column', 'page' or 1 to 100 inches, got 'wide'"),
            ({"width": True}, "width must be .* got True"),
            ({"width": 0.1}, "width must be .* got 0.1"),
            ({"scale": "cubic"}, "scale must be 'linear', 'log' or None, got 'cubic'"),
            ({"ax": "x"}, "ax must be axes of matplotlib, got 'x'"),
            ({"ax": pyplot.subplots(1, 3)[1]}, "ax must be 1 axes, one for each of the panels"),
        ):
            with pytest.raises(ValueError, match=words):
                EVERY[name](how)
        assert len(pyplot.get_fignums()) == len(before) + 1  # that of the last case

    def test_files_hold_letters_as_text(self, name, tmp_path):
        figure = EVERY[name]({})
        figure.savefig(tmp_path / "a.pdf")
        text = (tmp_path / "a.pdf").read_bytes()
        streams = [text]
        for part in text.split(b"stream\n")[1:]:
            with_end = part.split(b"\nendstream")[0]
            try:
                streams.append(zlib.decompress(with_end))
            except zlib.error:
                continue
        content = b"".join(streams)
        assert b"/FontFile2" in content  # TrueType
        assert b"/Type3" not in content
        figure.savefig(tmp_path / "a.svg")
        assert (
            ">pulls</text>" in (tmp_path / "a.svg").read_text()
            or ">round</text>" in (tmp_path / "a.svg").read_text()
        )


def test_a_figure_is_closed_where_drawing_fails():
    with pytest.raises(KeyboardInterrupt), canvas.new_figure((2.0, 2.0)):
        raise KeyboardInterrupt
    assert pyplot.get_fignums() == []


def test_figures_of_commands_are_not_left_to_pyplot(tmp_path):
    plot.save(SWEEPS["no error"], tmp_path / "figure.png")
    assert pyplot.get_fignums() == []


def test_without_a_display_and_in_other_threads_there_is_a_figure(monkeypatch):
    found = []
    worker = threading.Thread(target=lambda: found.append(recorded(9).plot()))
    worker.start()
    worker.join()

    def headless(**options):
        raise ImportError("Cannot load backend 'TkAgg'")

    monkeypatch.setattr(pyplot, "figure", headless)
    found.append(recorded(9).plot())
    assert [type(one) for one in found] == [picture.Figure] * 2
    assert pyplot.get_fignums() == []


def test_a_notebook_shows_a_figure_once(monkeypatch):
    """What is displayed is not shown again at the end of the cell, as what pyplot knows is."""
    figure = recorded(9).plot()
    with pytest.raises(NotImplementedError):  # IPython goes on
        figure._ipython_display_()
    assert pyplot.fignum_exists(figure.number)  # on a screen it stays open
    inline = "module://matplotlib_inline.backend_inline"
    monkeypatch.setattr(matplotlib, "get_backend", lambda: inline)
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()
    assert not pyplot.fignum_exists(figure.number)


def test_regret_has_one_scale_everywhere():
    runs = {"one": recorded(9, horizon=5), "other": recorded(9, horizon=5, scale=1000.0)}
    data = example(instances=("one",), regret=True)
    steep = data.assign(regret=data.regret * xarray.DataArray([1, 1000], dims="algorithm"))
    for draw, given in ((jb.plot.regret, runs), (jb.plot.sweep, steep)):
        assert {ax.get_yscale() for ax in draw(given).axes} == {"linear"}
        assert {ax.get_yscale() for ax in draw(given, scale="log").axes} == {"log"}


def test_every_panel_can_be_drawn_on_axes_of_the_user():
    data = SWEEPS["long names"]
    figure, axes = pyplot.subplots(2, 1)
    assert jb.plot.sweep(data, ax=axes, title="both") is figure
    assert [ax.get_ylabel() for ax in axes] == ["pulls", "error rate (95%)"]
    assert axes[0].get_title() == "both"
    one = pyplot.subplots()[1]
    jb.plot.sweep(data, ax=one)
    assert one.get_ylabel() == "pulls"
    with pytest.raises(
        ValueError, match=r"ax must be 4 axes, one for each of the panels \(regret\)"
    ):
        jb.plot.sweep(example(regret=True), ax=one)
