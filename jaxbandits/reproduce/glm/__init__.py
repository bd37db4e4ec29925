"""Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020.

The sweep files of this folder say what is run, and `jaxbandits run` takes them as well; this module
holds the claims of the paper. The paper prints theta from `N(0, 3 d^-2 I)`, so that its predictors
have variance 1. They have it for `3 / d`, which `glm/fig1` runs; `glm/fig1_printed` runs what is
printed. `glm/lin_ts` runs what the paper says of linear bandits, to which it has no figure.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import instances
from ..claims import Claim, checked, compare, final_regret, in_the_end, late_rate
from ..experiment import Experiment, from_files
from .images import IMAGES

if TYPE_CHECKING:
    from xarray import Dataset

    from ...report.reading import ClaimRow

PAPER = "Kveton et al. (2020), Figure"
TSL, FPL, GLM_UCB, UCB_GLM = (
    f"{name} theory" for name in ("GLM-TSL", "GLM-FPL", "GLM-UCB", "UCB-GLM")
)
TSL_USED, FPL_USED, GLM_UCB_USED, UCB_GLM_USED = (
    f"{name} informal" for name in ("GLM-TSL", "GLM-FPL", "GLM-UCB", "UCB-GLM")
)
LIN_TS, LIN_UCB, LIN_TS_USED = "LinTS theory", "LinUCB theory", "LinTS informal"
DIMS = (5, 10, 20)

# Regret per round in the last half over that in the quarter before: 2^(p - 1) where it grows as the
# p-th power, so 1 for a line and 0.71 for a square root. 0.85 lies halfway between the two.
LINEAR, SUBLINEAR, ROOT = 0.85, 0.8, 0.71

CLAIMS = (
    compare(
        "With theory constants GLM-TSL and GLM-FPL are ahead of GLM-UCB.",
        final_regret,
        (TSL, FPL),
        GLM_UCB,
        most=1.0,
        paper='Section 5.1: "theory GLM-TSL and GLM-FPL outperform theory GLM-UCB"',
    ),
    compare(
        "With theory constants UCB-GLM is ahead of GLM-TSL and GLM-FPL.",
        final_regret,
        UCB_GLM,
        (TSL, FPL),
        most=1.0,
        paper='Section 5.1: they outperform it, "but not theory UCB-GLM"',
    ),
    compare(
        "Informal GLM-UCB and UCB-GLM fail: their regret is linear. A round of the last half costs "
        f"at least {LINEAR} of one of the quarter before it (a line: 1, a square root: {ROOT}).",
        late_rate,
        (GLM_UCB_USED, UCB_GLM_USED),
        least=LINEAR,
        paper='Section 5.1: "fail, and have linear regret in n"',
    ),
    compare(
        "Regret of informal GLM-TSL and GLM-FPL is sublinear. A round of the last half costs "
        f"at most {SUBLINEAR} of one of the quarter before it (a line: 1, a square root: {ROOT}).",
        late_rate,
        (TSL_USED, FPL_USED),
        most=SUBLINEAR,
        paper='Section 5.1: "have low regret, sublinear in n"',
    ),
    compare(
        "Informal GLM-TSL and GLM-FPL are ahead of informal GLM-UCB and UCB-GLM.",
        final_regret,
        (TSL_USED, FPL_USED),
        (GLM_UCB_USED, UCB_GLM_USED),
        most=1.0,
        paper='Section 5.1: "Informal GLM-UCB and UCB-GLM fail"; the two others "have low regret"',
    ),
    compare(
        "Informal GLM-TSL and GLM-FPL are ahead of all with theory constants.",
        final_regret,
        (TSL_USED, FPL_USED),
        (TSL, FPL, GLM_UCB, UCB_GLM),
        most=1.0,
        paper='Section 5.1: "have state-of-the-art performance in logistic bandits"',
    ),
    compare(
        "The theory's scale of GLM-TSL is too conservative: informal GLM-TSL is ahead of it.",
        final_regret,
        TSL_USED,
        TSL,
        most=1.0,
        paper='Section 4.5, on a of the theorem: "This setting is too conservative in practice"',
    ),
    compare(
        "The theory's scale of GLM-FPL is too conservative: informal GLM-FPL is ahead of it.",
        final_regret,
        FPL_USED,
        FPL,
        most=1.0,
        paper='Section 4.5: "the suggested value of a [...] is too conservative in practice"',
    ),
    compare(
        "Regret of informal GLM-FPL grows no faster than the bound, which is for sparse features: "
        f"a round of the last half costs at most {ROOT} of one of the quarter before it.",
        late_rate,
        FPL_USED,
        most=ROOT,
        paper='Section 6: its performance "suggests that the regret bound should hold in general"',
    ),
    compare(
        "With theory constants the regret of GLM-FPL is at most 25% above that of GLM-TSL.",
        final_regret,
        FPL,
        TSL,
        most=1.25,
    ),
    compare(
        "The regret of informal GLM-FPL is at most 25% above that of informal GLM-TSL.",
        final_regret,
        FPL_USED,
        TSL_USED,
        most=1.25,
    ),
)
LINEAR_CLAIMS = (
    compare(
        "With the constants of their theorems LinTS is behind LinUCB.",
        final_regret,
        LIN_TS,
        LIN_UCB,
        least=1.0,
        paper='Section 5.1: "when LinTS is implemented as analyzed, it fails to outperform LinUCB"',
    ),
    compare(
        "LinTS with a smaller scale, that of the posterior, is ahead of LinUCB.",
        final_regret,
        LIN_TS_USED,
        LIN_UCB,
        most=1.0,
        paper='Section 5.1: "it does outperform it when the theory-suggested posterior scaling is '
        'relaxed"',
    ),
)


def _in_the_end(claims: Iterable[Claim], rounds: int) -> "Callable[[Dataset], list[ClaimRow]]":
    return checked(*(in_the_end(one, rounds) for one in claims))


def _figure(title: str, **changed: Any) -> Experiment:
    run = from_files("glm/fig1.toml")
    quick = {"axes": {"dim": (5,)}, "replications": 20, "horizon": 2000} | changed.pop("quick", {})
    claims = _in_the_end(CLAIMS, run["horizon"])
    return Experiment(
        title=title, claims=claims, quantities=("regret",), **run | changed, quick=quick
    )


LOGISTIC = _figure(f"Logistic bandits, a hundred arms in dim dimensions, {PAPER} 1")
CUBE = partial(instances.logistic_cube, num_arms=100, half_width=1.0)
PRINTED = {f"d = {d}": partial(CUBE, dim=d, theta_var=3.0 / d**2) for d in DIMS}
AS_PRINTED = _figure(
    f"Logistic bandits with theta as printed, variance 3 / d^2, {PAPER} 1",
    instances=PRINTED,
    axes={},
    quick={"axes": {}, "instances": {"d = 5": PRINTED["d = 5"]}},
)

_LINEAR = from_files("glm/lin_ts.toml")
LIN = Experiment(
    title="LinTS and LinUCB in linear bandits, Kveton et al. (2020), Section 5.1",
    claims=_in_the_end(LINEAR_CLAIMS, _LINEAR["horizon"]),
    quantities=("regret",),
    **_LINEAR,
    quick={"axes": {"dim": (5,)}, "replications": 20, "horizon": 2000},
)

EXPERIMENTS: dict[str, Experiment] = {
    "glm/fig1": LOGISTIC,
    "glm/fig1_printed": AS_PRINTED,
    "glm/fig2": IMAGES,
    "glm/lin_ts": LIN,
}
