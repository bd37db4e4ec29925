"""Costly functions that many lanes call with equal arguments, such as the design for arms alive."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .primitives import calling, primitive

P = ParamSpec("P")
R = TypeVar("R")

ONCE_FOR_EQUAL = primitive("once_for_equal")


def once_for_equal(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, computed once for all lanes of a batch whose arguments are equal bit by bit.

    Outside of lanes it is `function` itself.
    """
    return calling(ONCE_FOR_EQUAL, function)
