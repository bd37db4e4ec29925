"""Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020.

The sweep files of this folder say what is run, and `jaxbandits run` takes them as well; this module
holds the claims of the paper. The paper prints theta from `N(0, 3 d^-2 I)`, so that its predictors
have variance 1. They have it for `3 / d`, which `glm/fig1` runs; `glm/fig1_printed` runs what is
printed.
"""

from functools import partial
from typing import Any

from ... import instances
from ..claims import checked, compare, final_regret, in_the_end, late_rate
from ..experiment import Experiment, from_files
from .images import IMAGES

PAPER = "Kveton et al. (2020), Figure"
TSL, FPL, GLM_UCB, UCB_GLM = (
    f"{name} theory" for name in ("GLM-TSL", "GLM-FPL", "GLM-UCB", "UCB-GLM")
)
TSL_USED, FPL_USED, GLM_UCB_USED, UCB_GLM_USED = (
    f"{name} informal" for name in ("GLM-TSL", "GLM-FPL", "GLM-UCB", "UCB-GLM")
)
DIMS = (5, 10, 20)

CLAIMS = (
    compare(
        "With theory constants GLM-TSL and GLM-FPL are ahead of GLM-UCB.",
        final_regret,
        (TSL, FPL),
        GLM_UCB,
        most=1.0,
    ),
    compare(
        "With theory constants UCB-GLM is ahead of GLM-TSL and GLM-FPL.",
        final_regret,
        UCB_GLM,
        (TSL, FPL),
        most=1.0,
    ),
    compare(
        "Informal GLM-UCB and UCB-GLM fail: their regret is linear.",
        late_rate,
        (GLM_UCB_USED, UCB_GLM_USED),
        least=0.85,
    ),
    compare(
        "Regret of informal GLM-TSL and GLM-FPL is sublinear.",
        late_rate,
        (TSL_USED, FPL_USED),
        most=0.8,
    ),
    compare(
        "Informal GLM-TSL and GLM-FPL are ahead of informal GLM-UCB and UCB-GLM.",
        final_regret,
        (TSL_USED, FPL_USED),
        (GLM_UCB_USED, UCB_GLM_USED),
        most=1.0,
    ),
    compare(
        "Informal GLM-TSL and GLM-FPL are ahead of all with theory constants.",
        final_regret,
        (TSL_USED, FPL_USED),
        (TSL, FPL, GLM_UCB, UCB_GLM),
        most=1.0,
    ),
    compare(
        "GLM-FPL is of the quality of GLM-TSL with theory constants (within 25%).",
        final_regret,
        FPL,
        TSL,
        most=1.25,
    ),
    compare(
        "GLM-FPL is of the quality of GLM-TSL, informal (within 25%).",
        final_regret,
        FPL_USED,
        TSL_USED,
        most=1.25,
    ),
)


def _figure(title: str, **changed: Any) -> Experiment:
    run = from_files("glm/fig1.toml")
    quick = {"axes": {"dim": (5,)}, "replications": 20, "horizon": 2000} | changed.pop("quick", {})
    claims = checked(*(in_the_end(claim, run["horizon"]) for claim in CLAIMS))
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

EXPERIMENTS: dict[str, Experiment] = {
    "glm/fig1": LOGISTIC,
    "glm/fig1_printed": AS_PRINTED,
    "glm/fig2": IMAGES,
}
