"""Structured bandits, simulated: pure functional algorithms, compiled and vectorised in JAX."""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

from . import replaced as _replaced  # noqa: F401  notes each module as it is imported
from .system import forks as _forks  # noqa: F401  notices each fork, which JAX does not survive
from .system import interrupts as _interrupts
from .version import VERSION

__version__ = VERSION
_interrupts.raise_what_jax_drops()  # from here on, as JAX is imported later

# Names are imported when they are first used, so that what needs no JAX is quick. Type checkers
# read `__init__.pyi`.
_ROOMS = ("design", "instances", "plot", "rounding", "theory")
_HOMES = {
    "Algorithm": "core",
    "Comparison": "report.comparison",
    "Env": "core",
    "Instance": "instances",
    "Live": "live",
    "Move": "core",
    "Run": "core",
    "Runs": "results",
    "compare": "report.comparison",
    "fit_glm": "glm",
    "load": "results",
    "simulate": "engine.api",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(_module(_HOMES[name]), name)
    elif name == "__all__":
        found = [*sorted([*_HOMES, *_ROOMS]), *_module("algorithms").__all__]
    elif not name.startswith("_") and _find_spec(f"{__name__}.{name}"):
        found = _module(name)
    elif name in _public_names():
        found = getattr(_module("algorithms"), name)
    else:
        from .signatures import suggesting

        suggesting(__name__, _public_names())(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*_public_names(), "__version__"])


def _public_names() -> list[str]:
    return globals().get("__all__") or __getattr__("__all__")


def _module(name: str) -> Any:
    return _import_module(f"{__name__}.{name}")
