"""The command line: `jaxbandits` and `python -m jaxbandits`."""

from .main import main

__all__ = ["main"]
