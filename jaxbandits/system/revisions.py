"""Revisions: what has changed in numbers that may be stored, one line for each change.

A constructor, a law of rewards or a rule of `until` has an attribute `revisions`, a tuple of lines.
Its revision is how many there are; 0, without the attribute, is what version 0.2.0 wrote. Keys of
stored work hold the revisions that are not 0, and no version.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from .identity import Plain, described, stored_name

T = TypeVar("T")
Revisions: TypeAlias = dict[str, tuple[str, ...]]  # by the name of what has changed

ATTRIBUTE = "revisions"


def revised(*lines: str) -> Callable[[T], T]:
    """Decorate a function or class whose numbers have changed, for what `constructor` is not.

    Args:
      lines: one for each change, the oldest first: what changed in the numbers, and why.

    >>> @revised("drawn from the key of the round: two rounds in a row had equal noise")
    ... def law(): ...
    >>> len(law.revisions)
    1
    """

    def decorate(thing: T) -> T:
        setattr(thing, ATTRIBUTE, lines)
        return thing

    return decorate


def revisions_of_each(things: Mapping[str, object]) -> Revisions:
    """By name, the revisions of each; () of those that have none."""
    found = {name: getattr(thing, ATTRIBUTE, ()) for name, thing in things.items()}
    return {name: lines if isinstance(lines, tuple) else () for name, lines in found.items()}


def revised_ones(*revisions: Revisions) -> Revisions:
    """Those of several that are not of revision 0."""
    return {name: lines for each in revisions for name, lines in each.items() if lines}


def revisions_of(value: Any) -> Revisions:
    """Those of the constructors in a value: options bound, `at_budget` of another, lists of them.

    A constructor around another counts beside that one, each under its own name.
    """
    met: dict[str, object] = {}

    def note(function: Any) -> str:
        name = stored_name(function)
        if hasattr(function, "inner"):
            note(function.inner)
            name = function.outer
        met[name] = function
        return ""

    def nothing(_: Any) -> Plain:
        return None

    described(value, nothing, note, nothing)
    return revisions_of_each(met)


def counted(*revisions: Revisions) -> dict[str, int]:
    """The revision of each of several that is not of revision 0."""
    return {name: len(lines) for name, lines in revised_ones(*revisions).items()}


def changes(before: Revisions, now: Revisions) -> list[str]:
    """What has changed from some revisions to others: each name, and the lines in between.

    >>> changes({"rage": ("one",)}, {"rage": ("one", "two", "three")})
    ['rage has changed: two; three']
    """
    pairs = [(name, before.get(name, ()), now.get(name, ())) for name in sorted({*before, *now})]
    return [
        f"{name.rpartition('.')[2]} "
        + (f"has changed: {'; '.join(new)}" if new else f"is of a later revision, {len(old)}")
        for name, old, lines in pairs
        if len(old) != len(lines)
        for new in [lines[len(old) :]]
    ]
