"""Costly functions that many lanes ask the same, such as the design for the arms still alive."""

from .primitives import calling, primitive

ONCE_FOR_EQUAL = primitive("once_for_equal")


def once_for_equal(function):
    """`function`, computed once for all lanes of a batch whose arguments are equal, bit by bit.

    Outside of lanes it is the function itself.
    """
    return calling(ONCE_FOR_EQUAL, function)
