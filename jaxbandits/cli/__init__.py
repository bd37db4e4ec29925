"""The command line: `jaxbandits` and `python -m jaxbandits`."""

from ..signatures import publish
from ..system.extras import needed_by

with needed_by("the command line"):
    from .main import main

__all__ = ["main"]

publish(globals())
