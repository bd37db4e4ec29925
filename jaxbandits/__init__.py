"""Structured bandits, simulated: pure functional algorithms, compiled and vectorised in JAX."""

from typing import TYPE_CHECKING

from . import algorithms, design, instances, plot, rounding, theory
from .algorithms import *  # noqa: F403  its `__all__` is part of that below
from .core import Algorithm, Env, Move, Run
from .engine.api import simulate
from .glm import fit_glm
from .instances import Instance
from .live import Live
from .report.comparison import Comparison, compare
from .results import Runs, load
from .signatures import suggesting
from .sweeps import sweep
from .version import VERSION

__version__ = VERSION

__all__ = [
    "Algorithm",
    "Comparison",
    "Env",
    "Instance",
    "Live",
    "Move",
    "Run",
    "Runs",
    "compare",
    "design",
    "fit_glm",
    "instances",
    "load",
    "plot",
    "rounding",
    "simulate",
    "sweep",
    "theory",
]
__all__ += algorithms.__all__

if not TYPE_CHECKING:  # else a type checker takes every name for an attribute
    __getattr__ = suggesting(__name__, __all__)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
