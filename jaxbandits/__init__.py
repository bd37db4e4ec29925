"""Structured bandits, simulated: pure functional algorithms, compiled and vectorised in JAX."""

from . import design, instances, rounding, theory
from .algorithms import (
    alba,
    at_budget,
    bayes_gap,
    frank_wolfe_sampling,
    glm_tsl,
    gse,
    lazy_track_and_stop,
    lin_game,
    lin_gifa,
    lin_ts,
    lin_ucb,
    lingape,
    lucb,
    m_lingape,
    od_linbai,
    peace,
    rage,
    rage_glm,
    sequential_halving,
    top_two,
    ucb_glm,
    ugape,
    xy_adaptive,
    xy_oracle,
    xy_static,
)
from .core import Algorithm, Env, Move, Run
from .fitting import fit_glm
from .instances import Instance
from .live import Live
from .results import Runs, load
from .simulation import simulate
from .sweeps import sweep
from .version import VERSION

__version__ = VERSION

__all__ = [
    "Algorithm",
    "Env",
    "Instance",
    "Live",
    "Move",
    "Run",
    "Runs",
    "alba",
    "at_budget",
    "bayes_gap",
    "design",
    "fit_glm",
    "frank_wolfe_sampling",
    "glm_tsl",
    "gse",
    "instances",
    "lazy_track_and_stop",
    "lin_game",
    "lin_gifa",
    "lin_ts",
    "lin_ucb",
    "lingape",
    "load",
    "lucb",
    "m_lingape",
    "od_linbai",
    "peace",
    "rage",
    "rage_glm",
    "rounding",
    "sequential_halving",
    "simulate",
    "sweep",
    "theory",
    "top_two",
    "ucb_glm",
    "ugape",
    "xy_adaptive",
    "xy_oracle",
    "xy_static",
]
