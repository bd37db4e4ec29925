"""Optimal designs for import: compiled, checked, each with a certificate.

They compute in float64, or inside `jit`, `vmap` and the like in the precision of the traced arrays.
"""

from ..kernels.design.d_optimal import Design
from ..signatures import publish
from .optimal import (
    d_optimal,
    log_det,
    oracle,
    ratios,
    xy_frank_wolfe,
    xy_optimal,
)
from .steps import (
    fedorov,
    g_optimal_fw,
    greedy_allocation,
    wolfe_atwood,
    wynn,
)

__all__ = [
    "Design",
    "d_optimal",
    "fedorov",
    "g_optimal_fw",
    "greedy_allocation",
    "log_det",
    "oracle",
    "ratios",
    "wolfe_atwood",
    "wynn",
    "xy_frank_wolfe",
    "xy_optimal",
]

publish(globals())
