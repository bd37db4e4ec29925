from . import algorithms as algorithms
from . import design, instances, plot, rounding, theory
from .algorithms import *  # noqa: F403
from .core import Algorithm, Env, Move, Run
from .engine.api import simulate
from .glm import fit_glm
from .instances import Instance
from .live import Live
from .report.comparison import Comparison, compare
from .results import Runs, load
from .sweeps import sweep

__version__: str

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
