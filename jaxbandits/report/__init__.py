"""One self-contained page about the results in a folder."""

from .page import write

__all__ = ["write"]
