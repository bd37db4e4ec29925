"""Options of bounds: what is given, checked, as a number that Python computes with."""

from typing import Any

import jax

from ..instances.options import check_given
from ..parameters import Option


def given(option: Option, **value: Any) -> Any:
    """The value of the one keyword, which has to be one that `option` allows; see `plain`.

    Raises:
      ValueError: names the keyword, what it was and what is allowed; for None too.

    >>> from jaxbandits.parameters import whole
    >>> given(whole(), budget=40)
    40
    """
    check_given(option, **value)
    (number,) = value.values()
    return plain(number)


def plain(number: Any) -> Any:
    """A number of JAX as one of Python, whose arithmetic has double precision; others as they are.

    >>> plain(jax.numpy.array(40)), plain(40.5)
    (40, 40.5)
    """
    return number.item() if isinstance(number, jax.Array) and number.ndim == 0 else number
