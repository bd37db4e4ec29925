"""Costly functions of a few flags, such as the design for the arms still alive."""

import jax

NAME = "once_for_equal"


def once_for_equal(function):
    """`function`, computed once for all lanes of a batch whose flags are equal.

    Outside of lanes, and where an argument that differs by lane is not boolean, it is the
    function itself.
    """

    def once_for_equal(*args):
        return function(*args)

    return jax.jit(once_for_equal)
