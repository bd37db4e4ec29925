"""Warnings that name the user's line, however deep in the package they are given."""

import sys
import warnings

PACKAGE: str = __name__.partition(".")[0]


def warn_caller(text: str) -> None:
    """Give a warning at the line that called the package; Python shows it once for that line."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _is_ours(module):
    return module.partition(".")[0] == PACKAGE
