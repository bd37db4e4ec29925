"""Functions that a program calls while it runs, by `jax.pure_callback`, with all bits of numbers.

XLA calls them in threads of its own, in which float64 is not enabled: JAX would cut the arguments
to 32 bits, and refuse a float64 as the result. So both cross as words of 32 bits, and the function
is called under the options of this package.
"""

import contextlib
import functools
import itertools
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun
from jax.extend.source_info_util import user_context

from ..messages import brief, reason
from .jax_options import pinned

CALLBACK = "pure_callback"
WORD = np.dtype(np.uint32)
# Kinds of a number and of the type that it is to have, where a part of it would be lost.
LOSING = {(one, other) for one, others in {"f": "iub", "c": "iubf"}.items() for other in others}

MOST_RAISED = 32  # errors that are kept; each lane and device may raise one, and one is told
NAMED: re.Pattern[str] = re.compile(r"error (\d+) of a function called by jax\.pure_callback")

_raised: dict[int, "CallbackError"] = {}  # those of this process that nobody has told yet
_one_at_a_time = threading.Lock()
_errors: Iterator[int] = itertools.count(1)


class CallbackError(Exception):
    """An error of a callback, known by a number: XLA hands on its text alone, in any thread.

    Args:
      message: what went wrong, in one line.
    """

    def __init__(self, message: str) -> None:
        self.message: str = message
        self.number: int = next(_errors)
        super().__init__(f"error {self.number} of a function called by jax.pure_callback")
        with _one_at_a_time:
            _raised[self.number] = self
            while len(_raised) > MOST_RAISED:
                del _raised[next(iter(_raised))]


def in_words(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A trace whose callbacks get and return words; the one given where it has none."""
    if not _calls(closed.jaxpr):
        return closed
    shapes = map(_shape_of, closed.jaxpr.invars)
    return jax.make_jaxpr(lambda *args: _evaluated(closed, args))(*shapes)


def _calls(jaxpr: Jaxpr) -> bool:
    return any(
        eqn.primitive.name == CALLBACK or any(_calls(_open(x)) for x in _inside(eqn))
        for eqn in jaxpr.eqns
    )


def _open(jaxpr: Any) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _inside(eqn: JaxprEqn) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    values = [x for y in eqn.params.values() for x in (y if isinstance(y, list | tuple) else [y])]
    return [x for x in values if isinstance(x, ClosedJaxpr | Jaxpr)]


def _evaluated(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr, operation by operation."""
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values |= zip(jaxpr.invars, args, strict=True)

    used = {x for eqn in jaxpr.eqns for x in eqn.invars if not isinstance(x, Literal)}
    used |= {x for x in jaxpr.outvars if not isinstance(x, Literal)}

    def read(x: Any) -> Any:
        return x.val if isinstance(x, Literal) else values[x]

    for eqn in jaxpr.eqns:
        if eqn.primitive.name == CALLBACK:
            source = eqn.source_info  # the line of the user stays known
            with user_context(source.traceback, name_stack=source.name_stack):
                called = _called(eqn, [read(x) for x in eqn.invars])
            values |= zip(eqn.outvars, called, strict=True)
        else:
            inputs = list(dict.fromkeys(x for x in eqn.invars if not isinstance(x, Literal)))
            outputs = [x for x in eqn.outvars if x in used]
            one = _alone(jaxpr, eqn, inputs, outputs)
            values |= zip(outputs, one(*map(read, inputs)), strict=True)
    return [read(x) for x in jaxpr.outvars]


def _alone(jaxpr: Jaxpr, eqn: JaxprEqn, inputs: list[Any], outputs: list[Any]) -> Any:
    """An operation of a jaxpr as a function of its variables."""
    eqns = [eqn.replace(params={name: _rewritten(value) for name, value in eqn.params.items()})]
    parts = {"constvars": (), "invars": inputs, "outvars": outputs, "eqns": eqns}
    return jaxpr_as_fun(ClosedJaxpr(jaxpr.replace(**parts, effects=eqn.effects), ()))


def _rewritten(value: Any) -> Any:
    if isinstance(value, list | tuple) and any(isinstance(x, ClosedJaxpr | Jaxpr) for x in value):
        return type(value)(map(_rewritten, value))
    if isinstance(value, ClosedJaxpr):
        return in_words(value)
    if isinstance(value, Jaxpr) and _calls(value):
        return in_words(ClosedJaxpr(value, ())).jaxpr
    return value


def _called(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    """The results of a callback."""
    avals = eqn.params["result_avals"]
    wanted = tuple(np.dtype(x.dtype) for x in avals)
    shapes = [
        jax.ShapeDtypeStruct(aval.shape, dtype)
        for aval, wide in zip(avals, wanted, strict=True)
        for dtype in ([WORD, WORD] if _is_wide(wide) else [wide])
    ]
    inputs = tuple(map(_shape_of, eqn.invars))
    function = functools.partial(_from_words, eqn.params["callback"], inputs, tuple(avals))
    options = {name: eqn.params[name] for name in ("vmap_method", "sharding") if name in eqn.params}
    words = [word for x in args for word in _words(x)]
    return _numbers(jax.pure_callback(function, shapes, *words, **options), wanted)


def _shape_of(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype)


def _is_wide(dtype: np.dtype) -> bool:
    return dtype.itemsize == 2 * WORD.itemsize and dtype.kind in "iuf"


def _words(x: Any) -> list[Any]:
    """The lower and the upper word of numbers of 64 bits; any others as they are."""
    x = jnp.asarray(x)
    if not _is_wide(np.dtype(x.dtype)):
        return [x]
    bits = jax.lax.bitcast_convert_type(x, jnp.uint64)
    return [bits.astype(jnp.uint32), (bits >> 32).astype(jnp.uint32)]


def _numbers(words: Sequence[Any], dtypes: Sequence[np.dtype]) -> list[Any]:
    """What `_words` has divided."""
    rest = iter(words)
    found = []
    for dtype in dtypes:
        low = next(rest)
        if _is_wide(dtype):
            bits = low.astype(jnp.uint64) | (next(rest).astype(jnp.uint64) << 32)
            low = jax.lax.bitcast_convert_type(bits, dtype)
        found.append(low)
    return found


def _from_words(
    function: Callable[..., Any], given: Sequence[Any], wanted: Sequence[Any], *words: Any
) -> list[np.ndarray]:
    """Call a function of a user with its own numbers; its results as words.

    Args:
      function: returns a list of its results.
      given, wanted: shapes and types of its arguments and of what it is to return, for one lane.
      *words: its arguments, with axes of lanes before their own.
    """
    rest = iter(words)
    numbers = [
        _joined(rest).view(x.dtype) if _is_wide(x.dtype) else np.asarray(next(rest)) for x in given
    ]
    try:
        with pinned():
            found = _checked(function(*numbers), wanted, _lanes(numbers, given))
    except CallbackError:  # of one that was in words before
        raise
    except _WrongResult as error:
        raise CallbackError(f"{_name(function)}, called by jax.pure_callback, {error}") from None
    except BaseException as error:
        kind = f"{type(error).__name__}: {reason(error)}"
        message = f"{_name(function)}, called by jax.pure_callback, raised {kind}"
        raise CallbackError(message) from error
    return [word for x in found for word in (_divided(x) if _is_wide(x.dtype) else [x])]


class _WrongResult(ValueError):
    """What a function has returned is not what was declared; the text begins with a verb."""


def _name(function):
    """What messages call a function that JAX has wrapped, or a user in a partial."""
    function = getattr(function, "callback_func", function)
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__qualname__)


def _lanes(numbers, given):
    """The axes that `vmap` has put before those of the arguments."""
    before = [x.shape[: x.ndim - len(y.shape)] for x, y in zip(numbers, given, strict=True)]
    return np.broadcast_shapes(*before)


def _checked(found, wanted, lanes):
    """The results, each as it was declared; raises where one is something else."""
    shapes = [(*lanes, *x.shape) for x in wanted]
    if len(found) != len(wanted):
        got = f"{len(found)} results" if found else "None"
        hint = ": a list or tuple counts as several, np.asarray makes it one" if found else ""
        declared = ", ".join(map(_brief, wanted, shapes)) or "nothing"
        raise _WrongResult(f"returned {got}, and {declared} is declared{hint}")
    return list(map(_of, wanted, shapes, found))


def _brief(x, shape):
    """Type and shape, `float64[2]` say."""
    return f"{np.dtype(x.dtype)}[{','.join(map(str, shape))}]"


def _of(wanted, shape, x):
    """A result in its type; raises where that would drop a part of it."""
    found, dtype = np.asarray(x), np.dtype(wanted.dtype)
    declared = f"and {_brief(wanted, shape)} is declared"
    if not (np.can_cast(found.dtype, complex) or jnp.issubdtype(found.dtype, jnp.number)):
        raise _WrongResult(f"returned {brief(x)}, {declared}")
    if found.shape != shape:
        raise _WrongResult(f"returned {_brief(found, found.shape)}, {declared}")
    whole = {found.dtype.kind, dtype.kind} <= {"i", "u"}
    loses = (found.dtype.kind, dtype.kind) in LOSING
    if loses or (whole and (found.astype(dtype) != found).any()):
        raise _WrongResult(f"returned {brief(x)}, {declared}: a part of it would be lost")
    return found.astype(dtype, copy=False)


@contextlib.contextmanager
def errors_named() -> Generator[None]:
    """A block that plays programs: what a function of a user raises in a callback is one line.

    Raises:
      ValueError: it has raised an exception, which is the cause of this one, or has returned
        something else than declared.
      KeyboardInterrupt: as it was interrupted.
    """
    try:
        yield
    except RuntimeError as error:  # of JAX, with lines of a traceback
        found = NAMED.search(str(error))
        with _one_at_a_time:
            known = _raised.pop(int(found[1]), None) if found else None
        if known is None:
            raise
        cause = known.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise ValueError(known.message) from (cause if isinstance(cause, Exception) else error)


def _joined(words):
    low, high = (np.asarray(next(words), np.uint64) for _ in range(2))
    return low | (high << np.uint64(32))


def _divided(x):
    bits = x.view(np.uint64)
    return bits.astype(WORD), (bits >> np.uint64(32)).astype(WORD)
