"""Functions that a program calls while it runs, by `jax.pure_callback`, with all bits of numbers.

XLA calls them in threads of its own, in which float64 is not enabled: JAX would cut the arguments
to 32 bits, and refuse a float64 as the result. So both cross as words of 32 bits, and the function
is called under the options of this package.
"""

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun

from ..messages import reason
from .jax_options import pinned

CALLBACK = "pure_callback"
WORD = np.dtype(np.uint32)
# Kinds of a number and of the type that it is to have, where a part of it would be lost.
LOSING = {(one, other) for one, others in {"f": "iub", "c": "iubf"}.items() for other in others}

_raised: deque[BaseException] = deque(maxlen=1)  # the last error of a callback in this process


def in_words(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A trace whose callbacks get and return words; the one given where it has none."""
    if not _calls(closed.jaxpr):
        return closed
    shapes = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in closed.jaxpr.invars]
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
            values |= zip(eqn.outvars, _called(eqn, [read(x) for x in eqn.invars]), strict=True)
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
    given, wanted = (tuple(np.dtype(x.dtype) for x in values) for values in (args, avals))
    shapes = [
        jax.ShapeDtypeStruct(aval.shape, dtype)
        for aval, wide in zip(avals, wanted, strict=True)
        for dtype in ([WORD, WORD] if _is_wide(wide) else [wide])
    ]
    function = functools.partial(_from_words, eqn.params["callback"], given, wanted)
    options = {name: eqn.params[name] for name in ("vmap_method", "sharding") if name in eqn.params}
    words = [word for x in args for word in _words(x)]
    return _numbers(jax.pure_callback(function, shapes, *words, **options), wanted)


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
    function: Callable[..., Any],
    given: tuple[np.dtype, ...],
    wanted: tuple[np.dtype, ...],
    *words: Any,
) -> list[np.ndarray]:
    """Call a function of a user with its own numbers; its results as words."""
    rest = iter(words)
    numbers = [
        _joined(rest).view(dtype) if _is_wide(dtype) else np.asarray(next(rest)) for dtype in given
    ]
    try:
        with pinned():
            found = [_of(dtype, x) for x, dtype in zip(function(*numbers), wanted, strict=True)]
    except BaseException as error:
        _raised.append(error)
        raise
    return [word for x in found for word in (_divided(x) if _is_wide(x.dtype) else [x])]


def _of(dtype, x):
    """A result in its type; raises where that would drop a fraction or an imaginary part."""
    found = np.asarray(x)
    kinds = found.dtype.kind, dtype.kind
    if kinds in LOSING:
        raise TypeError(f"a result must be {dtype}, got {found.dtype}")
    return found.astype(dtype, copy=False)


@contextlib.contextmanager
def errors_named() -> Generator[None]:
    """A block that plays programs: what a function of a user raises in a callback is one line.

    Raises:
      ValueError: it has raised an exception, which is the cause of this one.
      KeyboardInterrupt: as it was interrupted.
    """
    _raised.clear()
    try:
        yield
    except RuntimeError as error:  # of JAX, with lines of a traceback
        if not _raised:
            raise
        cause = _raised.popleft()
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        kind = type(cause).__name__
        message = f"a function called by jax.pure_callback raised {kind}: {reason(cause)}"
        raise ValueError(message) from (cause if isinstance(cause, Exception) else error)


def _joined(words):
    low, high = (np.asarray(next(words), np.uint64) for _ in range(2))
    return low | (high << np.uint64(32))


def _divided(x):
    bits = x.view(np.uint64)
    return bits.astype(WORD), (bits >> np.uint64(32)).astype(WORD)
