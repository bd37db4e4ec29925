"""Options of bounds: what is given, checked, as a number that Python computes with."""

from typing import Any

import numpy as np

from ..instances.options import check_given
from ..parameters import Option
from ..types import NUMBERS


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
    return plain(option.convert(number))


def plain(number: Any) -> Any:
    """A number of JAX or NumPy as one of Python, which neither rounds nor overflows; others stay.

    >>> import jax
    >>> plain(jax.numpy.array(40)), plain(np.int8(40)), plain(40.5)
    (40, 40, 40.5)
    """
    return number.item() if isinstance(number, NUMBERS) and np.ndim(number) == 0 else number
