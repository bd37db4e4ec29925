"""One self-contained page about the results in a folder."""

from .html.page import write

__all__ = ["write"]
