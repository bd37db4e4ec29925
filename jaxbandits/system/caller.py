"""Warnings that name the user's line, however deep in the package they are given."""

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Generator

PACKAGE: str = __name__.partition(".")[0]
_collected: contextvars.ContextVar[dict[str, None] | None] = contextvars.ContextVar(
    "collected", default=None
)


def warn_caller(text: str) -> None:
    """Give a warning at the line that called the package; Python shows it once for that line."""
    collected = _collected.get()
    if collected is not None:
        collected[text] = None
        return
    level, frame = 1, sys._getframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def _is_ours(module):
    return module.partition(".")[0] in (PACKAGE, "contextlib")


@contextlib.contextmanager
def each_once() -> Generator[None]:
    """A block in which `warn_caller` collects; in the end each text is given once."""
    if _collected.get() is not None:
        yield
        return
    collected: dict[str, None] = {}
    token = _collected.set(collected)
    try:
        yield
    finally:
        _collected.reset(token)
    for text in collected:
        warn_caller(text)
