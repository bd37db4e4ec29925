"""Constructors `(arms, [targets], *, options) -> Algorithm`: a file for each algorithm, by setting.

The settings are `confidence`, `budget`, `top_m` and `regret`. `loops` has what several algorithms
share; `wrappers` are constructors that take another constructor.
"""

from ..signatures import publish
from .budget.bayes_gap import bayes_gap
from .budget.gse import gse
from .budget.od_linbai import od_linbai
from .budget.peace import peace
from .budget.sequential_halving import sequential_halving
from .confidence.alba import alba
from .confidence.frank_wolfe_sampling import frank_wolfe_sampling
from .confidence.lazy_track_and_stop import lazy_track_and_stop
from .confidence.lin_game import lin_game
from .confidence.lingape import lingape
from .confidence.rage import rage
from .confidence.rage_glm import rage_glm
from .confidence.top_two import top_two
from .confidence.xy_adaptive import xy_adaptive
from .confidence.xy_oracle import xy_oracle
from .confidence.xy_static import xy_static
from .regret.deep_fpl import deep_fl, deep_fpl
from .regret.epsilon_greedy import epsilon_greedy
from .regret.evill import evill
from .regret.glm_fpl import glm_fpl
from .regret.glm_tsl import glm_tsl
from .regret.glm_ucb import glm_ucb
from .regret.lin_ts import lin_ts
from .regret.lin_ucb import lin_ucb
from .regret.log_phe import log_phe
from .regret.ofu_ecolog import ofu_ecolog
from .regret.ofu_glb import ofu_glb
from .regret.rep_glm_fpl import rep_glm_fpl
from .regret.ucb_glm import ucb_glm
from .regret.uniform import uniform
from .top_m.lin_gifa import lin_gifa
from .top_m.lucb import lucb
from .top_m.m_lingape import m_lingape
from .top_m.ugape import ugape
from .wrappers.at_budget import at_budget
from .wrappers.watched import watched

__all__ = [
    "alba",
    "at_budget",
    "bayes_gap",
    "deep_fl",
    "deep_fpl",
    "epsilon_greedy",
    "evill",
    "frank_wolfe_sampling",
    "glm_fpl",
    "glm_tsl",
    "glm_ucb",
    "gse",
    "lazy_track_and_stop",
    "lin_game",
    "lin_gifa",
    "lin_ts",
    "lin_ucb",
    "lingape",
    "log_phe",
    "lucb",
    "m_lingape",
    "od_linbai",
    "ofu_ecolog",
    "ofu_glb",
    "peace",
    "rage",
    "rage_glm",
    "rep_glm_fpl",
    "sequential_halving",
    "top_two",
    "ucb_glm",
    "ugape",
    "uniform",
    "watched",
    "xy_adaptive",
    "xy_oracle",
    "xy_static",
]

publish(globals())
