"""Grids of cells: every instance with every algorithm at every point of the axes."""

from ..signatures import publish
from .grid import check, run, sweep
from .spec import Part, Sweep, parse, planned, read

__all__ = ["Part", "Sweep", "check", "parse", "planned", "read", "run", "sweep"]

publish(globals())
