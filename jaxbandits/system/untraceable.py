"""What JAX cannot trace in a user's function: one line with the place and the way out."""

import contextlib
import linecache
import re
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import jax

from ..messages import LONGEST, reason
from .user_errors import frames_of

# What to write instead, by the error that JAX raises; the first that fits.
INSTEAD: tuple[tuple[type[Exception], str], ...] = (
    (jax.errors.NonConcreteBooleanIndexError, "write jnp.where(mask, x, 0) in place of x[mask]"),
    (jax.errors.TracerBoolConversionError, "write jnp.where in place of `if`, `and` and min"),
    (
        jax.errors.TracerIntegerConversionError,
        "write jnp.asarray(table)[i] in place of a list, jax.lax.fori_loop in place of range",
    ),
    (
        jax.errors.TracerArrayConversionError,
        "use jax.numpy in place of NumPy, jnp.asarray(table)[i] say",
    ),
    (
        jax.errors.ConcretizationTypeError,
        "use jax.numpy in place of float, int and math, jnp.asarray(x, float) say",
    ),
    (jax.errors.UnexpectedTracerError, "keep it in the state, not in an object or a global"),
    (IndexError, "write jnp.where(jnp.arange(n) < k, x, 0) in place of x[:k]"),
    (TypeError, "use arrays of jax.numpy, and their shapes as sizes"),
)
# What the operands of an operation make wrong, known numbers in their place too.
OF_OPERANDS: re.Pattern[str] = re.compile(
    r"unsupported operand|bad operand|not supported between|is not callable|item assignment"
)
OF_JAX: tuple[type[Exception], ...] = tuple(kind for kind, _ in INSTEAD[:-2])


@contextlib.contextmanager
def named() -> Generator[None]:
    """A block that traces functions of users.

    Raises:
      ValueError: one of them does what JAX cannot trace; its cause is the error of JAX.
    """
    try:
        yield
    except tuple(kind for kind, _ in INSTEAD) as error:
        text = fault(error)
        if text is None:
            raise
        raise ValueError(text) from error


def fault(error: Exception, what: str = "") -> str | None:
    """What a user's function did that cannot be traced, and what to write instead.

    Args:
      error: raised while functions were traced.
      what: names the function, which is named by its own name if this is "".
    Returns:
      One line; None for an error of another kind, or where no line of a user is at fault.
    """
    cause = reason(error)
    of_values = "Tracer" in cause and not OF_OPERANDS.search(cause)
    if not (isinstance(error, OF_JAX) or of_values):
        return None
    lines = [*frames_of(error)]
    if not lines:
        return None
    frame, line = lines[-1]
    instead = next(text for kind, text in INSTEAD if isinstance(error, kind))
    name = frame.f_code.co_qualname.replace(".<locals>", "")
    needs = "needs a value that is known only while the program runs"
    return f"{what or name} cannot be compiled: {_place(frame, line)} {needs}; {instead}"


def _place(frame: FrameType, line: int) -> str:
    """The text of a line, the file that it is in, and its number."""
    file = frame.f_code.co_filename
    text = linecache.getline(file, line, frame.f_globals).strip()
    where = f"{Path(file).name}, line {line}"
    return f"`{text[:LONGEST]}` ({where})" if text else f"what stands in {where}"
