"""What a panel of a figure shows of a sweep: pulls, errors, regret, the pulls of each arm."""

import itertools

import numpy as np

from .labels import dress, name_groups, positions_of, side_by_side, text

NORMAL = 1.96  # two-sided 95%
LOG_FROM = 20  # a range of this ratio is drawn on a logarithmic scale
APART = 10  # curves that end so far apart, too: the lower ones could not be told
BOUND = "lower bound"
BEST = "best choice"
CUT_SHORT = "some cut short: at least this"
MARKERS = "osD^vPX*"
VOID = 30.0  # bounds of a probability are shown up to here, though above 1 they say nothing
HATCHES = (None, "///", "xxx")
STROKES = ("-", "--", "-.", ":")
# Told apart by readers who are colour-blind: Petroff, "Accessible color sequences for data
# visualization" (2021), ten colours.
COLOURS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)


def _colour(i):
    return COLOURS[i % len(COLOURS)]


def _hatch(i):
    """What tells boxes apart once the colours come round again."""
    return HATCHES[i // len(COLOURS) % len(HATCHES)]


def _lines(place, data, along, mean, low, high):
    """A line with intervals for each algorithm."""
    names = data.algorithm.values
    for i, (name, positions) in enumerate(zip(names, side_by_side(data, along), strict=True)):
        one = {"algorithm": name}
        middle, bottom, top = (x.sel(one).values for x in (mean, low, high))
        errors = np.maximum(0, [middle - bottom, top - middle])
        place.errorbar(
            positions,
            middle,
            errors,
            label=text(name),
            color=_colour(i),
            linestyle=STROKES[i // len(COLOURS) % len(STROKES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
            capsize=3,
            lw=1.3,
        )
    dress(place, data, along)


def _pulls(place, data, along):
    place.set_ylabel("pulls")
    if along is None:
        _boxes(place, data)
        return
    width = NORMAL * data.pulls_se.fillna(0)
    _lines(place, data, along, data.pulls_mean, data.pulls_mean - width, data.pulls_mean + width)
    place.set_ylabel("pulls, mean (95%)")
    bounds = _bound(place, data, along)
    cut = data.cut_short.values > 0
    if cut.any():
        rows = side_by_side(data, along)
        for row, some, means in zip(rows, cut, data.pulls_mean.values, strict=True):
            if some.any():
                _cut_short(place, row[some], means[some])
    _scale(place, np.append(bounds, data.pulls_mean.values))


def _bound(place, data, along):
    """Draw what no algorithm can beat, where that is known, and return it."""
    if "pull_lower_bound" not in data:
        return []
    bounds = data.pull_lower_bound.min("algorithm").values
    place.plot(positions_of(data, along)[0], bounds, ":", color="k", lw=1.3, label=BOUND)
    return bounds


def _cut_short(place, where, pulls):
    place.plot(where, pulls, "k^", ms=9, mfc="none", label=CUT_SHORT)


def _errors(place, data, along):
    _rates(place, data, along, data.error_rate, data.error_low, data.error_high)
    place.set_ylabel("error rate (95%)")
    if along is not None and "error_bound" in data:
        _error_bounds(place, data, along)


def _error_bounds(place, data, along):
    """What is proved, down to what so many replications can show."""
    least = 0.3 / max(1.0, float(data.replications.max()))
    where = positions_of(data, along)[0]
    for i, name in enumerate(data.bound.values):
        values = data.error_bound.sel(bound=name).values
        place.plot(where, values, STROKES[1 + i % 3], color="k", lw=1.3, alpha=1 - 0.2 * i)
        place.lines[-1].set_label(text(name))
    place.set_yscale("log")
    place.set_ylim(least, VOID)


def _accuracy(place, data, along):
    _rates(place, data, along, 1 - data.error_rate, 1 - data.error_high, 1 - data.error_low)
    place.set_ylabel("correct (95%)")


def _rates(place, data, along, rate, low, high):
    if along is not None:
        _lines(place, data, along, rate, low, high)
        return
    for i, where, cell in _groups(place, data):
        middle, bottom, top = (float(x.sel(cell)) for x in (rate, low, high))
        errors = np.maximum(0, [[middle - bottom], [top - middle]])
        label = text(cell["algorithm"]) if where < 0.5 else None
        place.errorbar(where, middle, errors, fmt="o", color=_colour(i), capsize=4, label=label)


def _boxes(place, data):
    for i, where, cell in _groups(place, data):
        pulls = data.pulls.sel(cell).dropna("replication").values
        label = text(cell["algorithm"]) if where < 0.5 else None
        look = {"facecolor": _colour(i), "alpha": 0.5, "hatch": _hatch(i)}
        place.boxplot(
            pulls,
            positions=[where],
            widths=0.6 / data.sizes["algorithm"],
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops=look,
            medianprops={"color": _colour(i), "lw": 2},
        )
        if label:
            place.fill_between([], [], label=label, **look)
        if int(data.cut_short.sel(cell)):
            _cut_short(place, where, pulls.max())
    place.set_ylabel("pulls\n(5, 25, 50, 75, 95%)")
    _scale(place, data.pulls.quantile([0.05, 0.95], "replication").values)


def _groups(place, data):
    """`(colour, position, cell)` of every algorithm on every instance, side by side."""
    instances, algorithms = data.instance.values, data.algorithm.values
    name_groups(place, instances)
    place.set_xlim(-0.6, len(instances) - 0.4)
    offsets = (np.arange(len(algorithms)) - (len(algorithms) - 1) / 2) * 0.8 / len(algorithms)
    for (group, instance), (i, name) in itertools.product(
        enumerate(instances), enumerate(algorithms)
    ):
        yield i, group + offsets[i], {"instance": instance, "algorithm": name}


def _regret(place, data, along):
    _curves(place, data, data.regret)
    place.set_ylabel("regret, mean (95%)")
    last = data.regret.isel(round=-1).mean("replication").values
    last = last[last > 0]
    if last.size and last.max() / last.min() > APART:
        place.set_yscale("log")
        place.set_ylim(last.min() / APART, 2.0 * last.max())


def _reward(place, data, along):
    """Average expected reward a round, and that of who knows the answer."""
    _curves(place, data, data.average_reward)
    place.axhline(float(data.best_average.mean()), ls=":", color="k", lw=1.3, label=BEST)
    place.set_ylabel("average reward (95%)")


def _curves(place, data, table):
    """A curve with its interval for each algorithm."""
    rounds = data["round"].values
    for i, name in enumerate(data.algorithm.values):
        curves = table.sel(algorithm=name)
        mean, count = curves.mean("replication").values, curves.count("replication").values
        width = NORMAL * curves.std("replication").values / np.sqrt(count)
        stroke = STROKES[i % len(STROKES)]
        place.plot(rounds, mean, stroke, color=_colour(i), label=text(name))
        place.fill_between(rounds, mean - width, mean + width, color=_colour(i), alpha=0.2, lw=0)
    place.set_xlabel("round")


def _arms(place, data, along):
    """Mean pulls of each arm."""
    pulls = data.arm_pulls
    names = data.algorithm.values
    for i, name in enumerate(names):
        one = pulls.sel(algorithm=name).dropna("replication", how="all")
        mean = one.mean("replication").values
        width = NORMAL * one.std("replication", ddof=1).values / np.sqrt(one.sizes["replication"])
        where = np.arange(mean.size) + 1 + (i - (len(names) - 1) / 2) * 0.12
        style = {"color": _colour(i), "marker": MARKERS[i % len(MARKERS)], "label": text(name)}
        # Down to a tenth of the mean at most: the scale is logarithmic.
        errors = [np.minimum(width, 0.9 * mean), width]
        place.errorbar(where, mean, np.nan_to_num(errors), ls="none", capsize=3, **style)
    place.set_xticks(np.arange(mean.size) + 1)
    place.set_yscale("log")
    place.set_xlabel("arm")
    place.set_ylabel("pulls, mean (95%)")


def _scale(place, values):
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() / values.min() > LOG_FROM:
        place.set_yscale("log")


DRAWN = {
    "pulls": _pulls,
    "errors": _errors,
    "accuracy": _accuracy,
    "regret": _regret,
    "reward": _reward,
    "arms": _arms,
}
