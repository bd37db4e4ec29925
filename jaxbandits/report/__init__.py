"""One self-contained page about the results in a folder."""

from ..signatures import publish
from .html.page import write

__all__ = ["write"]

publish(globals())
