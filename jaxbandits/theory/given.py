"""Options of bounds: what is given, checked, as a number that Python computes with."""

from typing import Any

import numpy as np

from ..feature_tables import is_concrete, require
from ..instances import Instance
from ..instances.fields import entered
from ..instances.options import check_given
from ..parameters import Option
from ..system.caller import warn_caller


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


def instance_of(instance: Any) -> Instance:
    """An `Instance` whose fields are checked, see `instances.fields`.

    Raises:
      ValueError: it is none, or a field of it is wrong.
    Warns:
      UserWarning: its means are estimates.
    """
    known = isinstance(instance, Instance)
    require(known, "instance must be an Instance", instance)
    warn_of_estimates(instance)
    return entered(instance)


def warn_of_estimates(instance: Instance) -> None:
    """Say that a bound follows from means that are estimates, where they are."""
    found = instance.estimated
    if found is not None and is_concrete(found.errors):
        warn_caller(
            "instance: its means are estimates with standard errors of up to "
            f"{np.max(found.errors):.2g}, and so is what follows from them here"
        )


def plain(number: Any) -> Any:
    """A number of JAX or NumPy as one of Python, which neither rounds nor overflows; others stay.

    >>> import jax
    >>> plain(jax.numpy.array(40)), plain(np.int8(40)), plain(40.5)
    (40, 40, 40.5)
    """
    return number.item() if hasattr(number, "item") and np.ndim(number) == 0 else number
