"""The command line: `jaxbandits` and `python -m jaxbandits`."""

from ..system.extras import needed_by

with needed_by("the command line"):
    from .main import main

__all__ = ["main"]
