"""What no algorithm can beat, with a certificate, and what some algorithms do not exceed."""

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
from .complexity import lucb_complexity, m_lingape_complexity, ugape_complexity

__all__ = [
    "CONFIDENCE",
    "ROUNDING",
    "TOLERANCE",
    "Bound",
    "PullBound",
    "characteristic_time",
    "confidence",
    "lucb_complexity",
    "m_lingape_complexity",
    "pull_lower_bound",
    "pull_time",
    "rage_pull_bound",
    "ugape_complexity",
    "why_not",
]
