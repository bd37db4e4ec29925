"""RAGE: Fiez, Jain, Jamieson and Ratliff, "Sequential experimental design ..." (2019).

The algorithms have this package's defaults, which correct the errors of the authors' program (see
each one's docstring). On the two problems that are not redrawn, the design of XY-oracle can have
weights of a ten-thousandth, so XY-oracle is run in other forms too. "Published" is that of the
program: a Frank-Wolfe design that ends early, whose error the stopping test profits from, batches
that grow by 1.21, and a test that takes a direction not yet measured for certain. "Rounded" draws
each arm of the design from the start. LinGapE follows the rule that its paper analyses ("ratio")
where all replications have the same arms, else the greedy one; measured means of the two agree.
Small versions leave out algorithms, because compiling each takes most of the time.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import algorithms, design, instances, theory
from .claims import (
    DELTA,
    Claim,
    Finding,
    checked,
    claim,
    compare,
    few_errors,
    growth,
    no_errors,
    pulls,
)
from .experiment import Builders, Experiment

if TYPE_CHECKING:
    from xarray import Dataset

    from ..sweeps import Sweep

ANGLE, SCALE, SPHERE_DIM, CLICK_ARMS = 0.01, 2.0, 9, 40
REPLICATIONS, MAX_PULLS = 20, 10**9
PAPER = "Fiez et al. (2019), Figure"
ZERO = 'Section 5: "The empirical failure probability of each of the algorithms ... is zero"'
AT_DELTA = "Section 5: each algorithm is run at a confidence level of 0.05"
ADAPTS = "Section 3.1: d + 1 / angle^2 up to logarithms, and d / angle^2 for XY-static"
PROPOSITION_1 = (
    'Section 2.1 and Proposition 1: a static allocation "can require a factor of d more samples '
    'than necessary"'
)

RAGE, ADAPTIVE, ALBA = "RAGE", "XY-adaptive", "ALBA"
RATIO, GREEDY = "LinGapE (ratio)", "LinGapE (greedy)"
STATIC, ORACLE = "XY-static", "XY-oracle"
ROUNDED, PUBLISHED = "XY-oracle (rounded)", "XY-oracle (published)"
ORACLES = (ORACLE, ROUNDED, PUBLISHED)

ALGORITHMS: Builders = {
    RAGE: partial(algorithms.rage, delta=DELTA),
    ADAPTIVE: partial(algorithms.xy_adaptive, delta=DELTA),
    RATIO: partial(algorithms.lingape, delta=DELTA, selection="ratio"),
    GREEDY: partial(algorithms.lingape, delta=DELTA, selection="greedy"),
    ALBA: partial(algorithms.alba, delta=DELTA),
    STATIC: partial(algorithms.xy_static, delta=DELTA),
    ORACLE: partial(algorithms.xy_oracle, delta=DELTA),
    ROUNDED: partial(algorithms.xy_oracle, delta=DELTA, allocation="rounded"),
    PUBLISHED: partial(
        algorithms.xy_oracle,
        delta=DELTA,
        powers="odd",
        singular="ignore",
        design="frank_wolfe",
    ),
}
TOLERANCE = 1e-3  # of the design whose rho Lemma 1 bounds
MANY = (RAGE, GREEDY, ALBA, STATIC, ORACLE)  # what is run where arms are redrawn


def _with_gauges(dataset: "Dataset", sweep: "Sweep") -> "Dataset":
    """The dataset with rho of all differences of arms, and its bounds of Lemma 1, by dim."""
    (part,), dims = sweep.instances, list(sweep.axes["dim"])
    rows = []
    for dim in dims:
        arms = part.build(**part.options | {"dim": dim}).arms
        proved = theory.design_value_bounds(arms, arms)
        rows.append(
            (proved.lower, float(design.xy_optimal(arms, arms, tol=TOLERANCE).value), proved.value)
        )
    columns = zip(("rho_lower", "rho", "rho_upper"), np.array(rows).T, strict=True)
    return dataset.assign({name: ("dim", column) for name, column in columns})


@claim(
    "rho of all differences of arms lies between the bounds by lengths and by the gauge.",
    paper="Lemma 1, (4), with the squares that its proof has",
)
def lemma_1(dataset: "Dataset") -> Finding:
    """No run: three numbers for each dim."""
    if "rho" not in dataset:
        return Finding({"rho": None}, None)
    names = ("rho_lower", "rho", "rho_upper")
    lower, rho, upper = (dataset[name].values for name in names)
    measured = {name: dataset[name].values.tolist() for name in names}
    ours = f"{lower[-1]:.3g}, {rho[-1]:.3g}, {upper[-1]:.3g} at dim {int(dataset.dim[-1])}"
    # The upper bound may be attained, and rho is that of a design.
    holds = (lower <= rho) & (rho <= upper * (1.0 + TOLERANCE))
    return Finding(measured, bool(holds.all()), ours=ours)


def _experiment(
    title: str,
    instance: Builders,
    names: Iterable[str],
    claims: Iterable[Claim],
    *,
    replications: int = REPLICATIONS,
    **rest: Any,
) -> Experiment:
    return Experiment(
        title=title,
        instances=instance,
        algorithms={name: ALGORITHMS[name] for name in names},
        replications=replications,
        claims=checked(
            *claims,
            no_errors(replications, paper=ZERO),
            few_errors(but=ORACLES, paper=AT_DELTA),
        ),
        quantities=("pulls",),
        max_pulls=MAX_PULLS,
        **rest,
    )


BENCHMARK = _experiment(
    f"Soare's benchmark, {PAPER} 1a",
    {"benchmark": partial(instances.soare, angle=ANGLE, scale=SCALE)},
    (RAGE, ADAPTIVE, RATIO, ALBA, STATIC, ORACLE, PUBLISHED),
    (
        compare(
            "XY-oracle takes fewer pulls than RAGE at every dim.", pulls(), ORACLE, RAGE, most=1.0
        ),
        compare(
            "As published, XY-oracle takes fewer pulls than RAGE at every dim.",
            pulls(),
            PUBLISHED,
            RAGE,
            most=1.0,
        ),
        compare(
            "RAGE is competitive with XY-adaptive and LinGapE: less than twice the pulls of each.",
            pulls(),
            RAGE,
            (ADAPTIVE, RATIO),
            most=2.0,
            paper='Section 5: "performs competitively with existing algorithms"',
        ),
        compare(
            "RAGE is competitive with XY-oracle in both forms: less than three times its pulls.",
            pulls(),
            RAGE,
            (ORACLE, PUBLISHED),
            most=3.0,
            paper='Section 5: "performs competitively with ... the oracle allocation"',
        ),
        compare(
            "RAGE and XY-adaptive are nearly equivalent: within 1.25 times at every dim.",
            pulls(),
            RAGE,
            ADAPTIVE,
            least=1 / 1.25,
            most=1.25,
            paper='Section 5: XY-adaptive "performs nearly equivalently"',
        ),
        compare(
            "RAGE takes less than half the pulls of XY-static at every dim.",
            pulls(),
            RAGE,
            STATIC,
            most=0.5,
            paper='Section 5: "clearly highlights the gains of adaptive sampling"',
        ),
        compare(
            "XY-static grows about linearly in dim.",
            growth(),
            STATIC,
            least=0.65,
            most=1.35,
            paper=ADAPTS,
        ),
        compare(
            "RAGE hardly grows: by less than the square root of dim.",
            growth(),
            RAGE,
            most=0.5,
            paper=ADAPTS,
        ),
        compare(
            "LinGapE takes fewer pulls than RAGE at the least dim.",
            pulls(at=slice(1)),
            RATIO,
            RAGE,
            most=1.0,
        ),
        compare(
            "LinGapE performs well at the least dim: at most 1.25 times the pulls of RAGE.",
            pulls(at=slice(1)),
            RATIO,
            RAGE,
            most=1.25,
            paper='Section 5: it "performs well when the number of dimensions and arms is small"',
        ),
        compare(
            "LinGapE takes more pulls than RAGE at the largest dim.",
            pulls(at=slice(-1, None)),
            RAGE,
            RATIO,
            most=1.0,
            paper='Section 5: it "suffers from a worse dimension dependency"',
        ),
        compare(
            "LinGapE over RAGE grows with dim.",
            growth(RAGE),
            RATIO,
            least=0.0,
            paper='Section 5: it "suffers from a worse dimension dependency"',
        ),
        compare(
            "ALBA is the worst adaptive algorithm at every dim.",
            pulls(),
            (RAGE, ADAPTIVE, RATIO),
            ALBA,
            most=1.0,
            paper='Section 5: "performs the worst of the recently proposed algorithms"',
        ),
        lemma_1,
    ),
    axes={"dim": range(5, 36, 5)},
    quick={"axes": {"dim": (3, 5)}, "algorithms": (RAGE, ADAPTIVE, RATIO), "replications": 10},
    extended=_with_gauges,
)

ORACLE_AHEAD = compare(
    "XY-oracle takes fewer pulls than RAGE at every number of arms.",
    pulls(),
    ORACLE,
    RAGE,
    most=1.0,
)
MANY_ARMS = _experiment(
    f"Moderate gaps, {PAPER} 1b",
    {"moderate gaps": instances.moderate_gaps},
    MANY,
    (
        compare(
            "LinGapE grows linearly in the number of arms.",
            growth(),
            GREEDY,
            least=0.9,
            most=1.1,
            paper='Section 5: it "suffers from a linear scaling in the number of arms"',
        ),
        compare(
            "RAGE grows as a logarithm would: by less than the square root of the number of arms.",
            growth(),
            RAGE,
            most=0.5,
            paper='Section 5: it "will gain information about the arms that are nearly duplicates"',
        ),
        compare(
            "RAGE takes fewer pulls than LinGapE at every number of arms.",
            pulls(),
            RAGE,
            GREEDY,
            most=1.0,
            paper='Section 5: LinGapE "must sample each arm as an initialization"',
        ),
        ORACLE_AHEAD,
    ),
    axes={"num_arms": range(10_000, 30_001, 5000)},
    quick={"axes": {"num_arms": (1000,)}, "algorithms": (RAGE, GREEDY), "replications": 10},
)

SPHERE = _experiment(
    f"Arms on a sphere, {PAPER} 1c",
    {f"sphere, d = {SPHERE_DIM}": partial(instances.sphere, dim=SPHERE_DIM, mix=0.0)},
    MANY,
    (
        compare(
            "RAGE takes less than a tenth of the pulls of ALBA at every number of arms.",
            pulls(),
            RAGE,
            ALBA,
            most=0.1,
            paper='Section 5: "significantly outperforms ALBA"',
        ),
        ORACLE_AHEAD,
    ),
    axes={"num_arms": (250, 500, 1000, 1500, 2000)},
    quick={"axes": {"num_arms": (50,)}, "algorithms": (RAGE, ALBA), "replications": 10},
)

TRANSDUCTIVE = _experiment(
    f"A transductive problem, {PAPER} 1d",
    {"transductive": instances.transductive},
    (RAGE, STATIC, *ORACLES),
    (
        compare(
            "RAGE takes less than a tenth of the pulls of XY-static.",
            pulls(),
            RAGE,
            STATIC,
            most=0.1,
            paper='Section 5: it "significantly outperforms the static allocation"',
        ),
        compare(
            "RAGE nearly matches XY-oracle as published: at most 1.5 times its pulls.",
            pulls(),
            RAGE,
            PUBLISHED,
            most=1.5,
            paper='Section 5: it "nearly matches the oracle allocation"',
        ),
        compare(
            "RAGE takes less than 3 times the pulls of each XY-oracle.",
            pulls(),
            RAGE,
            ORACLES,
            most=3.0,
        ),
        # psi* hardly depends on d, so this is Proposition 1 too.
        compare(
            "XY-static grows linearly in dim, as Proposition 1 says.",
            growth(),
            STATIC,
            least=0.7,
            most=1.3,
            paper=PROPOSITION_1,
        ),
        compare(
            "XY-static takes a factor of dim more than RAGE: their ratio grows about linearly.",
            growth(RAGE),
            STATIC,
            least=0.7,
            most=1.3,
            paper=PROPOSITION_1,
        ),
        compare(
            "RAGE hardly grows with dim: by less than its square root.",
            growth(),
            RAGE,
            most=0.5,
            paper=ADAPTS,
        ),
        compare("XY-oracle hardly grows with dim.", growth(), ORACLE, most=0.5),
        compare(
            "XY-oracle hardly grows with dim, rounded or as published.",
            growth(),
            ORACLES[1:],
            most=0.5,
            paper="Proposition 1: psi* is of the order d + 1 / gamma, gamma about angle^4 / 4",
        ),
    ),
    axes={"dim": (40, 80, 120, 160)},
    quick={"axes": {"dim": (4, 8)}, "algorithms": (RAGE, STATIC), "replications": 10},
)


def _multivariate(title: str, instance: Builders) -> Experiment:
    return _experiment(
        title,
        instance,
        MANY,
        (
            compare(
                "RAGE is close to XY-oracle: less than twice its pulls.",
                pulls(),
                RAGE,
                ORACLE,
                most=2.0,
                paper='Section 5: it "performs close to the oracle"',
            ),
            compare(
                "LinGapE, ALBA and XY-static rise with the number of factors, over XY-oracle.",
                growth(ORACLE),
                (GREEDY, ALBA, STATIC),
                least=0.0,
                paper='Section 5: the rest "grows as the number of arms and dimension ... goes up"',
            ),
            compare(
                "RAGE takes fewer pulls than the others.",
                pulls(),
                RAGE,
                (GREEDY, ALBA, STATIC),
                most=1.0,
            ),
        ),
        replications=50,
        axes={"factors": (3, 4, 5, 6)},
        quick={"axes": {"factors": (3,)}, "algorithms": (RAGE, ORACLE), "replications": 20},
    )


MULTIVARIATE = _multivariate(
    f"Multivariate testing, {PAPER} 2a", {"multivariate": instances.multivariate}
)
PRINTED = _multivariate(
    f"Multivariate testing with the printed weights, {PAPER} 2a",
    {"multivariate": partial(instances.multivariate, weights="paper")},
)


def _clicks_from(folder: Path) -> Builders:
    draw = partial(instances.yahoo_r6a, path=str(folder), num_arms=CLICK_ARMS)
    return {"clicks on news": draw}


CLICKS = _experiment(
    f"Clicks on news, {PAPER} 2b",
    {"clicks": partial(instances.clicks, num_arms=CLICK_ARMS)},
    MANY,
    (
        compare(
            "RAGE is competitive: less than twice the pulls of each other algorithm.",
            pulls(),
            RAGE,
            (GREEDY, ALBA, STATIC),
            most=2.0,
            paper='Section 5: it "has good performance on this example"',
        ),
        compare(
            "RAGE takes less than twice the pulls of XY-oracle.", pulls(), RAGE, ORACLE, most=2.0
        ),
    ),
    # With the variance of a click, not ten times as much, with which LinGapE takes minutes.
    quick={"axes": {"noise_var": (0.1,)}, "algorithms": (RAGE, GREEDY), "replications": 10},
    from_folder=_clicks_from,
    stand_in="on made-up clicks: the log is licensed",
)

EXPERIMENTS: dict[str, Experiment] = {
    "rage/fig1a": BENCHMARK,
    "rage/fig1b": MANY_ARMS,
    "rage/fig1c": SPHERE,
    "rage/fig1d": TRANSDUCTIVE,
    "rage/fig2a": MULTIVARIATE,
    "rage/fig2a_printed": PRINTED,
    "rage/fig2b": CLICKS,
}
