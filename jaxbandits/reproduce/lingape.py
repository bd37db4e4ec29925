"""LinGapE: Xu, Honda and Sugiyama, "A fully adaptive algorithm for pure exploration ..." (2018).

Everything is as in the paper's section 7: noise is N(0, 1), delta 0.05, v0 = 1, and LinGapE knows
that the norm of theta is at most 2; on the log of clicks it knows the norm itself. The
numbers of arms that Figure 3 plots are not in the text; we chose those here.
"""

from functools import partial
from pathlib import Path

from .. import algorithms, instances
from . import lingape_claims as claims
from .claims import DELTA, below_bound, checked, compare, few_errors, growth, pulls
from .experiment import Builders, Experiment
from .lingape_claims import ANGLE, RIDGE, THETA_NORM
from .lingape_claims import BY_RATIOS as RATIOS

SCALE = 2.0
MOST = 10**10  # pulls; XY-adaptive takes some 5e8 in ten dimensions

PROVED = "Theorem 1: right with probability 1 - delta"
FIVE_TIMES = (
    'Section 7.1.1, of "the subsequent two experiments": "at least five times worse than" XY-static'
)

LINGAPE = partial(algorithms.lingape, delta=DELTA, v0=RIDGE, theta_norm=THETA_NORM)
BY_RATIOS = partial(LINGAPE, selection="ratio")
STATIC = partial(algorithms.xy_static, delta=DELTA, variant="soare")
ADAPTIVE = partial(algorithms.xy_adaptive, delta=DELTA, variant="soare")
ORACLE = partial(algorithms.xy_oracle, delta=DELTA, variant="soare")

EITHER_RULE = compare(
    "Arms chosen greedily or by ratios: stopping times differ by less than a quarter.",
    pulls(),
    "LinGapE",
    RATIOS,
    least=1 / 1.25,
    most=1.25,
    paper='Section 7.1: "altering" the rule "has very little impact on the performance"',
)

FIGURE_1 = Experiment(
    title="Stopping time by dimension, Xu et al. (2018), Figure 1",
    instances={"soare": partial(instances.soare, angle=ANGLE, scale=SCALE)},
    algorithms={
        "LinGapE": LINGAPE,
        "XY-static": STATIC,
        "XY-adaptive": ADAPTIVE,
        "XY-oracle": ORACLE,
    },
    axes={"dim": range(2, 11)},
    replications=10,
    max_pulls=MOST,
    # Ten times the angle takes a hundredth of the pulls.
    quick={
        "instances": {"soare": partial(instances.soare, angle=10 * ANGLE, scale=SCALE)},
        "axes": {"dim": (2, 3, 5)},
        "replications": 10,
    },
    claims=checked(
        compare(
            "LinGapE takes fewer pulls than XY-oracle at every dim.",
            pulls(),
            "LinGapE",
            "XY-oracle",
            most=1.0,
            paper='Section 7.1.1: "LinGapE wins over" XY-oracle',
        ),
        compare(
            "LinGapE takes at most a tenth of the pulls of XY-static and XY-adaptive at every dim.",
            pulls(),
            "LinGapE",
            ("XY-static", "XY-adaptive"),
            most=0.1,
            paper='Section 1: "ten times less samples than existing methods"; 7.1.1: "superiority"',
        ),
        compare(
            "XY-oracle takes fewer pulls than XY-static at every dim.",
            pulls(),
            "XY-oracle",
            "XY-static",
            most=1.0,
            paper="Table 1, in five dimensions: 2,742,457 against 12,758,934",
        ),
        compare(
            "XY-adaptive takes at least twice the pulls of XY-static at every dim.",
            pulls(),
            "XY-static",
            "XY-adaptive",
            most=0.5,
            paper='Section 7.1.1: "much worse than" XY-static',
        ),
        compare(
            "XY-adaptive takes at least twice the pulls of XY-oracle at every dim.",
            pulls(),
            "XY-oracle",
            "XY-adaptive",
            most=0.5,
            paper='Section 1: "much worse than that of" XY-oracle',
        ),
        claims.forgets,
        compare(
            "The stopping time of LinGapE grows slower than dim.", growth(), "LinGapE", most=1.0
        ),
        compare(
            "That of XY-static grows about linearly in dim.",
            growth(),
            "XY-static",
            least=0.7,
            most=1.3,
        ),
        claims.exact,
        claims.theorem_3,
        claims.one_near_optimal_arm,
        few_errors(but=("XY-oracle",), paper=PROVED),
    ),
    extended=claims.with_complexities,
    scale="log",
    quantities=("pulls",),
)
TABLE_1 = Experiment(
    title="Pulls of each arm in five dimensions, Xu et al. (2018), Table 1",
    instances={"soare": partial(instances.soare, 5, angle=ANGLE, scale=SCALE)},
    algorithms={
        "XY-static": STATIC,
        "LinGapE": LINGAPE,
        RATIOS: BY_RATIOS,
        "XY-oracle": ORACLE,
    },
    replications=40,  # the paper prints one
    max_pulls=MOST,
    quick={
        "algorithms": ("LinGapE", "XY-oracle"),
        "replications": 10,
    },
    claims=checked(
        claims.second_arm,
        claims.ratio,
        claims.rest,
        claims.shares,
        claims.oracle_arms,
        EITHER_RULE,
        few_errors(but=("XY-oracle",), paper=PROVED),
    ),
    quantities=("arms",),
)
FIGURE_2 = Experiment(
    title="Stopping time by gap on the standard basis, Xu et al. (2018), Figure 2",
    instances={"canonical": partial(instances.canonical, 5)},
    algorithms={
        "LinGapE": LINGAPE,
        "XY-static": STATIC,
        RATIOS: BY_RATIOS,
        "XY-adaptive": ADAPTIVE,
    },
    axes={"gap": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)},
    replications=100,  # the paper has 10
    max_pulls=MOST,
    quick={
        "algorithms": ("LinGapE", "XY-static"),
        "axes": {"gap": (0.2, 0.5, 1.0, 2.0)},
        "replications": 40,
    },
    claims=checked(
        compare(
            "LinGapE takes fewer pulls than XY-static at every gap.",
            pulls(),
            "LinGapE",
            "XY-static",
            most=1.0,
            paper='Section 7.1.2: it "performs better than" XY-static',
        ),
        claims.difference,
        compare(
            "XY-adaptive takes at least five times the pulls of XY-static at every gap.",
            pulls(),
            "XY-static",
            "XY-adaptive",
            most=0.2,
            paper=FIVE_TIMES,
        ),
        EITHER_RULE,
        claims.uniform,
        claims.quarter,
        claims.nine_eighths,
        claims.theorem_3,
        below_bound(RATIOS, "Theorem 2, by its proof: the first u above 1 + H C_u^2 + K"),
        few_errors(paper=PROVED),
    ),
    quantities=("pulls",),
    extended=claims.with_pull_bounds,
    scale="linear",
    undrawn=(RATIOS, "XY-adaptive"),
)


def _log_of_clicks(folder: Path) -> Builders:
    return {"click log": partial(instances.yahoo_r6a, path=folder, protocol="lingape")}


FIGURE_3 = Experiment(
    title="Stopping time by number of arms on a log of clicks, Xu et al. (2018), Figure 3",
    instances={"clicks": partial(instances.clicks, protocol="lingape")},
    algorithms={
        "LinGapE": partial(algorithms.lingape, delta=DELTA, v0=1.0),
        "XY-static": partial(STATIC, v0=0.01),
    },
    axes={"num_arms": (4, 8, 12, 16)},
    replications=10,
    max_pulls=MOST,
    quick={"axes": {"num_arms": (3, 4)}, "replications": 4},
    claims=checked(
        compare(
            "LinGapE takes fewer pulls than XY-static at every number of arms.",
            pulls(),
            "LinGapE",
            "XY-static",
            most=1.0,
            paper='Section 7.2: LinGapE "performs roughly five times better"',
        ),
        claims.five_times,
        claims.saved,
        claims.widening,
        few_errors(paper=PROVED),
    ),
    quantities=("pulls",),
    scale="linear",
    from_folder=_log_of_clicks,
    stand_in="made-up clicks stand in for the licensed log",
)
EXPERIMENTS: dict[str, Experiment] = {
    "lingape/fig1": FIGURE_1,
    "lingape/table1": TABLE_1,
    "lingape/fig2": FIGURE_2,
    "lingape/fig3": FIGURE_3,
}
