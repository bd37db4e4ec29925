"""Errors that the code of a user has raised: one line with type, words and place."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from .plugins import in_words, is_ours
from .user_files import is_own_code

# What a function of a user may raise, an interrupt of the user aside.
RAISED: tuple[type[BaseException], ...] = (Exception, SystemExit, GeneratorExit)


def frames_of(error: BaseException, package: str = "") -> Iterator[tuple[FrameType, int]]:
    """The frames of a user's code through which an error came, each with its line.

    Args:
      package: an installed package whose code counts as the user's too, such as that of a plugin.
    """
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        of_package = module.partition(".")[0] == package and not is_ours(module)
        if of_package or is_own_code(frame.f_code, frame.f_globals):
            yield frame, line


def told(error: BaseException, package: str = "") -> str | None:
    """Type and words of an error that a user's code has raised, and where; None: it has not.

    Args:
      package: as in `frames_of`.
    """
    places = [(frame.f_code.co_filename, line) for frame, line in frames_of(error, package)]
    if not places:
        return None
    file, line = places[-1]
    return f"{in_words(error)} ({Path(file).name}, line {line})"
