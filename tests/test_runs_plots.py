"""Figures of `Runs` show their numbers, on the axes that they are given."""

import dataclasses
from fractions import Fraction
from functools import partial

import jax
import numpy as np
import pytest
import xarray
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_settings import SOARE, simulate

import jaxbandits as jb
from jaxbandits.engine.results import first_of
from jaxbandits.show import marks


def recorded(number, *, num_arms=4, horizon=None, scale=1.0):
    """`Runs` of so many replications that nothing was simulated for."""
    rng = np.random.default_rng(0)
    arm_pulls = rng.integers(1, 50, (number, num_arms))
    curves = {}
    if horizon is not None:
        arm_pulls = np.tile([horizon, *[0] * (num_arms - 1)], (number, 1))
        regret = scale * rng.random((number, horizon)).cumsum(1)
        curves = {"rounds": np.arange(1, horizon + 1), "regret": regret}
    return jb.Runs(
        replication=np.arange(number),
        pulls=arm_pulls.sum(1),
        answer=np.zeros(number, int),
        correct=np.ones(number, bool),
        stopped=np.ones(number, bool),
        arm_pulls=arm_pulls,
        **curves,
    )


@pytest.fixture(scope="module")
def runs():
    return simulate("sequential", 20)


@pytest.fixture(scope="module")
def regret_runs():
    return simulate("regret", 20)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_stopping_times_are_the_shares_still_under_way(runs, ax):
    assert jb.plot.stopping_times({"LinGapE": runs}, ax=ax) is ax.figure
    (line,) = ax.get_lines()
    x, y = line.get_xdata(), line.get_ydata()
    for pulls, share in zip(x, y, strict=True):
        assert share == pytest.approx((runs.pulls > pulls).mean())
    assert set(x) == {0, *runs.pulls}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["LinGapE"]


def test_replications_cut_short_never_stop(ax):
    algorithm = partial(jb.lingape, delta=0.1)
    most = int(np.median(simulate("sequential", 20).pulls))
    runs = jb.simulate(SOARE, algorithm, replications=20, seed=7, max_pulls=most)
    assert 0 < runs.stopped.sum() < 20
    jb.plot.stopping_times(runs, ax=ax)
    (line,) = ax.get_lines()
    assert line.get_ydata()[-1] == (~runs.stopped).mean()
    assert ax.get_legend() is None


def test_many_replications_are_drawn_by_few_steps(ax):
    pulls = np.random.default_rng(1).integers(1, 10**6, 50_000)
    arm_pulls = np.stack([pulls, 0 * pulls], axis=1)
    many = dataclasses.replace(recorded(len(pulls)), pulls=pulls, arm_pulls=arm_pulls)
    jb.plot.stopping_times(many, ax=ax)
    (line,) = ax.get_lines()
    x, y = line.get_xdata(), line.get_ydata()
    assert len(x) < 2100
    for pull, share in zip(x[::97], y[::97], strict=True):
        assert share == pytest.approx((pulls > pull).mean(), abs=1e-12)


def test_regret_is_its_mean_with_a_band(regret_runs, ax):
    assert regret_runs.plot(ax=ax) is ax.figure
    (line,), (band,) = ax.get_lines(), ax.collections
    assert line.get_color() == marks.COLOURS[0]  # as in figures of sweeps
    np.testing.assert_array_equal(line.get_xdata(), regret_runs.rounds)
    np.testing.assert_allclose(line.get_ydata(), regret_runs.regret.mean(0))
    last = band.get_paths()[0].vertices
    at_end = last[last[:, 0] == regret_runs.rounds[-1], 1]
    error = regret_runs.regret[:, -1].std(ddof=1) / np.sqrt(20)
    assert np.ptp(at_end) == pytest.approx(2 * 2.093 * error, rel=1e-3)  # Student's, not 1.96


def test_the_regret_of_one_replication_has_no_band(regret_runs, ax):
    jb.plot.regret(first_of(regret_runs, 1), ax=ax)
    assert ax.get_ylabel() == "regret, mean (1 replication: no interval)"
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), regret_runs.regret[0])
    assert not any(path.vertices.size for path in ax.collections[0].get_paths())


def test_errors_have_exact_intervals_and_none_is_an_upper_end(runs, ax):
    wrong = dataclasses.replace(runs, correct=np.arange(20) >= 4)
    jb.plot.error_rates({"right": runs, "wrong": wrong}, delta=0.1, ax=ax)
    none, bars = ax.containers
    assert np.isnan(none.lines[0].get_ydata()).all()  # no mark where nothing was observed
    (segment,) = bars.lines[2][0].get_segments()
    found = wrong.summary()
    assert segment[:, 1] == pytest.approx([found["error_low"], found["error_high"]])
    (arrow,) = [line for line in ax.get_lines() if line.get_markersize() == marks.ARROW]
    assert arrow.get_ydata() == pytest.approx([runs.summary()["error_high"]])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == [marks.NO_ERROR, "promised: delta = 0.1"]
    (promised,) = [line for line in ax.get_lines() if str(line.get_label()).startswith("promised")]
    assert promised.get_ydata() == [0.1, 0.1]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["right", "wrong"]


def test_pulls_of_arms_are_shares_beside_an_allocation(runs, ax):
    number = runs.arm_pulls.shape[1]
    jb.plot.arm_pulls(runs, allocation=np.arange(1.0, number + 1), ax=ax)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, runs.arm_pulls.sum(0) / runs.arm_pulls.sum())
    (lines,) = ax.collections
    ends = np.array(lines.get_segments())
    weights = np.arange(1.0, number + 1)
    np.testing.assert_allclose(ends[:, 0, 1], weights / weights.sum())
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(k) for k in range(number)]


def test_a_design_is_drawn_as_its_weights(runs, ax):
    design = jb.design.oracle(SOARE)
    jb.plot.arm_pulls(runs, allocation=design, ax=ax)
    (lines,) = ax.collections
    shares = np.array(lines.get_segments())[:, 0, 1]
    np.testing.assert_allclose(shares, design.weights, atol=1e-12)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_bound_where_there_is_no_error_lies_inside(ax, scale):
    one = recorded(30)
    jb.plot.error_rates({"one": one}, delta=0.1, ax=ax, scale=scale)
    bottom, top = ax.get_ylim()
    assert bottom < 0.1 < 1.05 * one.summary()["error_high"] < top


def test_errors_of_runs_without_an_answer_are_not_drawn(ax):
    algorithm = partial(jb.lingape, delta=0.1)
    cut = jb.simulate(SOARE, algorithm, replications=20, seed=7, max_pulls=20)
    jb.plot.error_rates({"cut": cut}, ax=ax)
    assert not ax.get_lines()
    assert not ax.containers


def test_what_cannot_be_drawn_is_named(runs, regret_runs):
    with pytest.raises(ValueError, match="LinGapE have no regret; simulate them with a horizon"):
        jb.plot.regret({"LinGapE": runs})
    with pytest.raises(ValueError, match="runs must not be empty: give Runs, or a dict"):
        jb.plot.stopping_times({})
    with pytest.raises(ValueError, match="other play to a horizon: draw their regret"):
        jb.plot.stopping_times({"one": runs, "other": regret_runs})
    with pytest.raises(
        ValueError, match=r"runs must be Runs, a dict .* or a Comparison, got \[1\]"
    ):
        jb.plot.arm_pulls([1])
    with pytest.raises(ValueError, match="ax must be axes of matplotlib, got 'x'"):
        runs.plot(ax="x")
    for delta in ("0.05", 5, 0):
        with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1\), "):
            jb.plot.error_rates(runs, delta=delta)
    for wrong in ("best", -np.ones(runs.arm_pulls.shape[1]), np.full(4, np.nan)):
        with pytest.raises(ValueError, match="allocation must"):
            jb.plot.arm_pulls(runs, allocation=wrong)
    with pytest.raises(ValueError, match="allocation must have shape"):
        jb.plot.arm_pulls(runs, allocation=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"all must have \d+ arms, other has"):
        jb.plot.arm_pulls({"one": runs, "other": regret_runs})


SOLID = "axes with straight x and y"
ODD_AXES = {
    "a dataset": (lambda: xarray.Dataset({"x": 1}), "axes of matplotlib"),
    "a class": (lambda: Axes, "axes of matplotlib"),
    "three dimensions": (lambda: Figure().add_subplot(projection="3d"), SOLID),
    "polar ones": (lambda: Figure().add_subplot(projection="polar"), SOLID),
}


@pytest.mark.parametrize("name", ODD_AXES)
def test_what_are_no_axes_is_refused(runs, name):
    build, message = ODD_AXES[name]
    with pytest.raises(ValueError, match=rf"^ax must be {message}, got .*$"):
        runs.plot(ax=build())


def test_axes_that_were_removed_are_refused(runs):
    axes = Figure().subplots()
    axes.remove()
    with pytest.raises(ValueError, match=r"^ax must be axes of a figure; these were removed"):
        runs.plot(ax=axes)


@pytest.mark.parametrize("width", [10**400, xarray.Dataset({"x": 1}), np.array([3.0]), True])
def test_a_width_is_one_number(runs, width):
    with pytest.raises(
        ValueError, match=r"^width must be 'column', 'page' or 1 to 100 inches, got"
    ):
        runs.plot(width=width)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1"] * 4, "must be real numbers, got text"),
        (np.ma.array(np.ones(4), mask=[0, 1, 0, 0]), "must have all entries"),
        (np.ones(4, "m8[s]"), "must be real numbers, got lengths of time"),
        (np.ones(4, complex), "must be real numbers, got complex ones"),
        ([10**400, 1, 1, 1], "must be a design or K numbers"),
        ([[1], [1, 2]], "must be a design or K numbers"),
    ],
)
def test_weights_to_compare_with_are_numbers(weights, message):
    with pytest.raises(ValueError, match=f"^allocation {message}"):
        jb.plot.arm_pulls(recorded(3), allocation=weights)


def test_a_traced_number_is_refused(runs):
    def drawn(delta):
        jb.plot.error_rates(runs, delta=delta)

    with pytest.raises(ValueError, match=r"^delta must be a number in \(0, 1\)"):
        jax.eval_shape(drawn, 0.1)
    jb.plot.error_rates(runs, delta=Fraction(1, 10))


@pytest.mark.parametrize("names", [("1", 1), ("", "b"), (" ", "b")])
def test_names_of_several_runs_can_be_told_apart(names):
    with pytest.raises(ValueError, match=r"^runs must have names that are not empty and differ"):
        jb.plot.arm_pulls(dict.fromkeys(names, recorded(3)))


@pytest.mark.parametrize("name", ["_hidden", "half \ud800"])
def test_every_name_is_in_the_legend(name):
    figure = jb.plot.stopping_times({name: recorded(3), "b": recorded(4)})
    shown = [entry.get_text() for entry in figure.legends[0].get_texts()]
    assert [text.strip() for text in shown] == [name.replace("\ud800", r"\ud800"), "b"]
    FigureCanvasAgg(figure).draw()
