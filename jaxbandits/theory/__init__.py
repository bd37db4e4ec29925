"""Lower bounds for all algorithms, with a certificate, and upper bounds of some algorithms.

`characteristic_time` and `pull_lower_bound` work inside `jit`, `vmap` and `grad`. All others are
computed on the host and refuse traced arguments with a `TypeError`.
"""

from ..signatures import publish
from .bounds import (
    CONFIDENCE,
    ROUNDING,
    TOLERANCE,
    Bound,
    PullBound,
    characteristic_time,
    confidence,
    pull_lower_bound,
    pull_time,
    rage_pull_bound,
    why_not,
)
from .budget import (
    ErrorBound,
    bayes_gap_error_bound,
    error_lower_bound,
    od_linbai_error_bound,
    sequential_halving_error_bound,
)
from .complexity import (
    lucb_complexity,
    m_lingape_complexity,
    top_m_pull_bound,
    ugape_complexity,
)
from .elimination import gse_error_bound
from .gauge import design_value_bounds
from .regret import RegretBound, glm_fpl_regret_bound, glm_tsl_regret_bound

__all__ = [
    "CONFIDENCE",
    "ROUNDING",
    "TOLERANCE",
    "Bound",
    "ErrorBound",
    "PullBound",
    "RegretBound",
    "bayes_gap_error_bound",
    "characteristic_time",
    "confidence",
    "design_value_bounds",
    "error_lower_bound",
    "glm_fpl_regret_bound",
    "glm_tsl_regret_bound",
    "gse_error_bound",
    "lucb_complexity",
    "m_lingape_complexity",
    "od_linbai_error_bound",
    "pull_lower_bound",
    "pull_time",
    "rage_pull_bound",
    "sequential_halving_error_bound",
    "top_m_pull_bound",
    "ugape_complexity",
    "why_not",
]

publish(globals())
