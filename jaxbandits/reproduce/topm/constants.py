"""Complexity constants of the Top-m paper: Tables 2, 4 and 5, and Theorem 2 against runs.

Tables 4 and 5 have variance 1. In Table 4 the published program divides the matrix of features by
its spectral norm; its text says that columns are normalized, and its Section 5 that the variance
is 1/4 in all experiments. Rows of both kinds are calculated too.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from ... import algorithms, instances, theory
from ...instances import Instance
from ...instances.data.local_files import find_file
from ...instances.options import checked as checked_options
from ...intervals import binomial_interval
from ...parameters import Normal
from ...types import Scalar
from ..calculation import ROW, Calculation, Numbers, is_recorded
from ..claims import DELTA, Claim, Finding, checked, claim
from ..measures import ErrorRate, Verdict, all_hold, not_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from ...sweeps import Sweep

Norm: TypeAlias = Literal["matrix", "columns"]

SEED = 0
VARIANCE = 0.25  # of the rewards, in Section 5
SCALES = (0.25, 0.5)  # D
# Table 4: by K and N, percentages for each D; one is not printed.
PRINTED: dict[tuple[int, int], tuple[float | None, ...]] = {
    (10, 5): (29.1, 30.8),
    (10, 10): (0.0, 0.0),
    (10, 20): (0.0, 0.0),
    (20, 10): (0.6, None),
    (20, 20): (0.0, 0.0),
    (20, 40): (0.0, 0.0),
    (30, 15): (0.1, 0.1),
    (30, 30): (0.0, 0.0),
}
TABLE_5 = {3: (4545.97, 5047.77), 8: (32124.01, 27622.18)}  # by m: m-LinGapE, UGapE
GAPS = {3: 0.075, 8: 0.029}  # by m, in Table 5
SOURCE = "it is part of the data of Reda, Kaufmann and Delahaye-Duriez (2021)"
FOLDER = "top_m_random_instance"
ALIKE = 139  # the draw whose gaps and constants are nearest to those of Table 5
BY_COLUMNS, QUARTER = "columns of norm 1", "variance 1/4"
FREQUENT = "K = 10, N = 5, D = "  # the rows where the condition is met often
POINTS = 5.0  # of percent
LAST_DIGIT = 0.0051  # half of it, and rounding


# Random instances.


def features_of(
    num_arms: int, dim: int, scale: float, number: int, norm: Norm = "matrix"
) -> Float[np.ndarray, "K N"]:
    """Normal features with standard deviation `scale`, over a norm.

    Args:
      num_arms, dim: K and N.
      scale: D. The norm removes it, so that other values give other draws alone.
      number: of the draw.
      norm: what is divided by its norm: the whole matrix by its spectral norm, or each column (an
        arm) by its length.
    """
    random = np.random.default_rng([SEED, num_arms, dim, round(100 * scale), number])
    features = random.normal(scale=scale, size=(num_arms, dim))
    if norm == "matrix":
        return features / np.linalg.norm(features, 2)
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def first_feature(features: Float[np.ndarray, "K N"], noise_var: Scalar = 1.0) -> Instance:
    """The instance with theta = e_1."""
    return instances.linear(features, np.eye(features.shape[1])[0], noise_var=noise_var)


def drawn(num_arms: int, dim: int, scale: float, number: int, norm: Norm = "matrix") -> Instance:
    """The instance with theta = e_1 and `features_of` the same arguments."""
    return first_feature(features_of(num_arms, dim, scale, number, norm))


def members(num_arms: int) -> int:
    """The m of Table 4."""
    return num_arms // 3 + 1


def pays(instance: Instance, m: int, rho_power: Literal[1, 2] = 1, noise_var: float = 1.0) -> bool:
    """Whether the constant of m-LinGapE with optimal ratios is at most that of UGapE.

    Args:
      instance, m, rho_power: see `theory.m_lingape_complexity`; the variance is 1.
      noise_var: factor of the constant of m-LinGapE alone, as the paper prints them.
    """
    limit = theory.ugape_complexity(instance, m) / noise_var
    found = theory.m_lingape_complexity(
        instance, m, selection="ratio", rho_power=rho_power, enough=limit
    )
    return found <= limit


# Table 4.


def share(
    num_arms: int,
    dim: int,
    scale: float,
    *,
    norm: Norm = "matrix",
    noise_var: float = 1.0,
    replications: int,
) -> Numbers:
    """A row of Table 4: in how many of so many instances the condition is met."""
    m = members(num_arms)
    draws = (drawn(num_arms, dim, scale, number, norm) for number in range(replications))
    count = sum(pays(instance, m, noise_var=noise_var) for instance in draws)
    low, high = binomial_interval(count, replications)
    percent = {"percent": count / replications, "low": low, "high": high}
    shown = {name: 100.0 * float(value) for name, value in percent.items()}
    return {"m": m, "instances": replications, "count": count, **shown}


def _row(num_arms: int, dim: int, scale: float) -> str:
    return f"K = {num_arms}, N = {dim}, D = {scale}"


AS_TOLD = {  # by name, how the text draws the last instances of the first column
    BY_COLUMNS: partial(share, 10, 5, SCALES[1], norm="columns"),
    QUARTER: partial(share, 10, 5, SCALES[1], noise_var=0.25),
}
SHARES: dict[str, float | None] = {
    _row(*size, scale): percent
    for size, percents in PRINTED.items()
    for scale, percent in zip(SCALES, percents, strict=True)
}


def _within(dataset: "Dataset", row: str, low: float, high: float) -> Verdict:
    """Whether the interval of a row lies between two percentages."""
    one = dataset.sel(row=row)
    found = ErrorRate(int(one["count"]), int(one.instances), float(one.low), float(one.high))
    return found.within(low, high)


def _shown(dataset: "Dataset", rows: list[str]) -> dict[str, list[float]]:
    """Percentages with the ends of their intervals."""
    parts = ("percent", "low", "high")
    return {row: [float(dataset[part].sel(row=row)) for part in parts] for row in rows}


def _of_rows(
    text: str, limits: Callable[[str], tuple[float, float]], rows: list[str], paper: str
) -> Claim:
    """The percentage of each row lies between the limits that it has."""

    def find(dataset: "Dataset") -> Finding:
        run = [row for row in rows if row in dataset.row.values]
        missing = [row for row in rows if row not in run]
        verdict = all_hold(_within(dataset, row, *limits(row)) for row in run)
        largest = max(run, key=lambda row: float(dataset.percent.sel(row=row)), default="")
        ours = f"{float(dataset.percent.sel(row=largest)):.1f}%, {largest}" if largest else ""
        open_ = missing and verdict is not False
        return Finding(_shown(dataset, run), None if open_ else verdict, missing, ours)

    return Claim(text, find, paper)


def _near(printed: float) -> tuple[float, float]:
    return max(0.0, printed - POINTS), printed + POINTS


def _bars(dataset: "Dataset", ax: "Axes") -> None:
    """Percentages with intervals, and the paper's."""
    places = np.arange(dataset.sizes[ROW])
    middle = dataset.percent.values
    ends = np.array([middle - dataset.low.values, dataset.high.values - middle])
    ax.errorbar(middle, places, xerr=ends, fmt="o", capsize=3, label="here, 95%")
    last = SHARES[_row(10, 5, SCALES[1])]
    printed = [SHARES.get(name, last) for name in dataset.row.values.tolist()]
    ax.plot([np.nan if x is None else x for x in printed], places, "kx", label="Table 4")
    ax.set_yticks(places, dataset.row.values.tolist())
    ax.invert_yaxis()
    ax.set_xlabel("% of instances")


TABLE_4 = Calculation(
    title="How often m-LinGapE's constant is at most UGapE's, Réda et al. (2021), Table 4",
    rows={
        **{
            _row(*size, scale): partial(share, *size, scale) for size in PRINTED for scale in SCALES
        },
        **AS_TOLD,
    },
    claims=checked(
        _of_rows(
            "As the published program draws instances, the share is the paper's in every column, "
            f"within {POINTS:g} points of percent.",
            lambda row: _near(SHARES[row] or 0.0),
            [row for row, percent in SHARES.items() if percent is not None],
            "Table 4: 29.1%, 30.8% for K = 10, N = 5; 0.6%, 0.1%, 0.1% for N = K / 2; else 0.0%",
        ),
        _of_rows(
            "The condition is seldom met: in less than half of the instances for K = 10 and N = 5, "
            "and in less than 2% of them elsewhere.",
            lambda row: (0.0, 50.0 if row.startswith(FREQUENT) else 2.0),
            list(SHARES),
            'Section 4.4: "is seldom verified"',
        ),
        _of_rows(
            "With columns of norm 1 the share for K = 10, N = 5 and D = 0.5 is the paper's.",
            lambda _: _near(30.8),
            [BY_COLUMNS],
            'Section 4.4: "which is then column-normalized"; Table 4: 30.8%',
        ),
        _of_rows(
            "With variance 1/4 the share for K = 10, N = 5 and D = 0.5 is the paper's.",
            lambda _: _near(30.8),
            [QUARTER],
            'Section 5: "In all experiments, we use sigma = 1/2"; Table 4: 30.8%',
        ),
    ),
    draw=_bars,
    replications=1000,
    quick={"rows": [_row(10, 5, 0.5), _row(10, 10, 0.5), *AS_TOLD], "replications": 50},
)


# Table 5, and the instance of it.


def matrix_of(folder: Path) -> Float[np.ndarray, "K N"]:
    """The features of the authors' random instance: ten arms in five dimensions."""
    inner = folder / FOLDER
    file = find_file(inner if inner.is_dir() else folder, "features_5x10.csv", SOURCE)
    return np.loadtxt(file).T


@checked_options
def authors_instance(path: Path | str, *, noise_var: Normal = 1.0) -> Instance:
    """The authors' random instance, ten arms in five dimensions; theta is e_1.

    Args:
      path: the folder with `features_5x10.csv`, or the one above.
      noise_var: variance of the rewards.
    Raises:
      ValueError: a missing file.
    """
    return first_feature(matrix_of(Path(path)), noise_var)


# What stands in for it.
MADE_UP: Float[np.ndarray, "K N"] = features_of(10, 5, SCALES[1], ALIKE)


def constants(features: Float[np.ndarray, "K N"], m: int) -> Numbers:
    """A column of Table 5."""
    instance = first_feature(features)
    after, least = np.sort(instance.values)[[-m - 1, -m]]
    return {
        "m_lingape": theory.m_lingape_complexity(instance, m, selection="ratio"),
        "ugape": theory.ugape_complexity(instance, m),
        "gap": float(least - after),
        "m": m,
    }


def _columns(features: Float[np.ndarray, "K N"]) -> dict[str, partial[Numbers]]:
    return {f"m = {m}": partial(constants, features, m) for m in TABLE_5}


def _column(dataset: "Dataset", name: str) -> dict[int, float]:
    """A number of every column of Table 5, by m."""
    return dict(zip(dataset.m.values.tolist(), dataset[name].values.tolist(), strict=True))


@claim(
    "The constants and gaps are those that are printed, to the last digit.",
    "Table 5: 4,545.97 and 5,047.77 for m = 3, 32,124.01 and 27,622.18 for m = 8; gaps 0.075 and "
    "0.029",
)
def digits_of_table_5(dataset: "Dataset") -> Finding:
    """Known of the authors' matrix alone."""
    ours, theirs, gaps = (_column(dataset, name) for name in ("m_lingape", "ugape", "gap"))
    measured = {f"m = {m}": [ours[m], theirs[m], gaps[m]] for m in TABLE_5}
    if not is_recorded(dataset):
        return Finding(measured, None, ["the authors' matrix"])
    alike = [
        abs(ours[m] - first) < LAST_DIGIT
        and abs(theirs[m] - second) < LAST_DIGIT
        and round(gaps[m], 3) == GAPS[m]
        for m, (first, second) in TABLE_5.items()
    ]
    return Finding(measured, all(alike))


@claim(
    "m-LinGapE's constant is at most UGapE's for m = 3, and not for m = 8.",
    'Table 5: "True", "False"',
)
def condition_of_table_5(dataset: "Dataset") -> Finding:
    """On either matrix."""
    ours, theirs = (_column(dataset, name) for name in ("m_lingape", "ugape"))
    ratios = {f"m = {m}": ours[m] / theirs[m] for m in TABLE_5}
    return Finding({"m-LinGapE / UGapE": ratios}, ours[3] <= theirs[3] and ours[8] > theirs[8])


def _pairs(dataset: "Dataset", ax: "Axes") -> None:
    """Two bars for each m."""
    places = np.arange(dataset.sizes[ROW])
    for shift, name, label in (
        (-0.2, "m_lingape", "m-LinGapE (optimized)"),
        (0.2, "ugape", "UGapE"),
    ):
        ax.margins(y=0.1)
        bars = ax.bar(places + shift, dataset[name].values, 0.38, label=label)
        ax.bar_label(bars, fmt="{:,.2f}")
    ax.set_xticks(places, dataset.row.values.tolist())
    ax.set_ylabel("complexity constant")


NEAR = "on a random matrix like the authors', which is not ours to give"
TABLE_5_OF = Calculation(
    title="Complexity constants on one random instance, Réda et al. (2021), Table 5",
    rows=_columns(MADE_UP),
    claims=checked(digits_of_table_5, condition_of_table_5),
    draw=_pairs,
    from_folder=lambda folder: _columns(matrix_of(folder)),
    stand_in=NEAR,
)


# Table 2, and Theorem 2 against runs.


def complexity(build: Any, instance: Instance) -> float:
    """The constant of an algorithm by Table 2, its options bound."""
    options = build.keywords
    if build.func is algorithms.lucb:
        return theory.lucb_complexity(instance, options["m"])
    if build.func is algorithms.ugape:
        return theory.ugape_complexity(instance, options["m"])
    selection = options["selection"]
    return theory.m_lingape_complexity(instance, options["m"], selection=selection)


def with_bounds(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
    """The dataset with `complexity`, H, and `pull_bound`, Theorem 2's, of each algorithm."""
    (part,) = sweep.instances
    instance = part.build(**part.options)
    found = [(partial(one.build, **one.options)) for one in sweep.algorithms]
    rows = [
        (h, theory.top_m_pull_bound(instance, h, DELTA, threshold=build.keywords["threshold"]))
        for build in found
        for h in [complexity(build, instance)]
    ]
    constants_, bounds = np.array(rows).T
    return dataset.assign(complexity=("algorithm", constants_), pull_bound=("algorithm", bounds))


def ordered(lucb: str, m_lingape: str, ugape: str) -> Claim:
    """The order of the constants that Section 4.4 reads off Table 2, as they are printed."""

    def find(dataset: "Dataset") -> Finding:
        if missing := not_run(dataset, (lucb, m_lingape, ugape)):
            return Finding({}, None, missing)
        known = {n: float(dataset.complexity.sel(algorithm=n)) for n in (lucb, m_lingape, ugape)}
        # Those of LUCB and UGapE are printed without the variance, 1/4.
        printed = {n: h if n == m_lingape else h / VARIANCE for n, h in known.items()}
        holds = printed[lucb] >= printed[m_lingape] >= printed[ugape]
        return Finding({"as printed": printed, "with the variance": known}, holds)

    text = f"The constants are ordered, the largest first: {lucb}, {m_lingape}, {ugape}."
    return Claim(text, find, "Section 4.4: H(LUCB) >= H(m-LinGapE(1)) >= H(UGapE)")


def features_help(m_lingape: str, ugape: str) -> Claim:
    """The constant with features is below that without, both as printed."""

    def find(dataset: "Dataset") -> Finding:
        if missing := not_run(dataset, (m_lingape, ugape)):
            return Finding({}, None, missing)
        ours = float(dataset.complexity.sel(algorithm=m_lingape))
        theirs = float(dataset.complexity.sel(algorithm=ugape)) / VARIANCE
        return Finding({m_lingape: ours, f"{ugape}, as printed": theirs}, ours < theirs)

    text = f"On this instance the constant of {m_lingape} is below that of {ugape}."
    return Claim(text, find, 'Abstract: "the use of features might decrease the sample complexity"')


@claim(
    "On independent arms the constant of m-LinGapE with optimal ratios is at most 9/8 of UGapE's.",
    'Section 4.4: "in specific instances, H(m-LinGapE(2)) <= 9/8 H(UGapE)"',
)
def nine_eighths(dataset: "Dataset") -> Finding:
    """Of eight arms with random values, at every m."""
    values = np.random.default_rng(SEED).normal(size=8)
    instance = instances.linear(np.eye(8), values, noise_var=1.0)
    ratios = [
        theory.m_lingape_complexity(instance, m, selection="ratio")
        / theory.ugape_complexity(instance, m)
        for m in range(1, 8)
    ]
    return Finding({"ratios": ratios}, max(ratios) <= 9.0 / 8.0 * (1.0 + 1e-9))


EXPERIMENTS = {"topm/table4": TABLE_4, "topm/table5": TABLE_5_OF}
