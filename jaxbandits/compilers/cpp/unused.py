"""Leaves out of a jaxpr the operations on which no result depends.

JAX does so too, but not in `while` loops: their bodies keep what nobody reads, such as the
log-determinant of an inverse that is needed for its matrix alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.interpreters.partial_eval import dce_jaxpr

from ..jaxprs import fixed_point, is_literal, jaxprs_in, name_of, operations, while_parts


def without_unused(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with the same arguments and results, without operations that none of them needs."""
    shorter = _without_some(jaxpr)
    # A number that only an unread one depended on is unread from now on.
    while operations(shorter) < operations(jaxpr):
        jaxpr, shorter = shorter, _without_some(shorter)
    return shorter


def _without_some(jaxpr):
    """The jaxpr without what is unread in it, and in the jaxprs of its equations."""
    known: dict[Any, Any] = {}  # a function that is called twice remains one function

    def shorter(x: Any) -> Any:
        if isinstance(x, ClosedJaxpr | Jaxpr):
            if x not in known:
                inner = x.jaxpr if isinstance(x, ClosedJaxpr) else x
                # From jax 0.12 on both are one class, and what is closed is its own jaxpr.
                known[x] = of_jaxpr(x) if inner is x else x.replace(jaxpr=shorter(inner))
            return known[x]
        return type(x)(map(shorter, x)) if type(x) in (list, tuple) else x

    def of_jaxpr(jaxpr):
        needed = _needed(jaxpr)
        read = {x for eqn in needed.eqns for x in eqn.invars if not is_literal(x)}
        read |= {x for x in needed.outvars if not is_literal(x)}
        eqns = [_with_shorter_carry(eqn, read) for eqn in needed.eqns]
        return _needed(needed.replace(eqns=[_with_inner(eqn, shorter) for eqn in eqns]))

    return of_jaxpr(jaxpr)


def _needed(jaxpr):
    """What JAX finds to be needed for the results."""
    return dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]


def _with_inner(eqn: JaxprEqn, change: Callable[[Any], Any]) -> JaxprEqn:
    """An equation with its parameters changed, if there are jaxprs among them."""
    if not any(jaxprs_in(eqn)):
        return eqn
    return eqn.replace(params={name: change(x) for name, x in eqn.params.items()})


def _with_shorter_carry(eqn: JaxprEqn, read: set[Any]) -> JaxprEqn:
    """A `while` that carries only what is `read` after it, or what that depends on."""
    if name_of(eqn) != "while":
        return eqn
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    in_cond, in_body, carry = while_parts(eqn.params, eqn.invars)

    def before(needed):
        """What of the carry a step needs for these of its results."""
        return dce_jaxpr(body.jaxpr, needed)[1][len(in_body) :]

    tested = dce_jaxpr(cond.jaxpr, [True])[1][len(in_cond) :]
    after = [x in read for x in eqn.outvars]
    needed = fixed_point(before, [a or b for a, b in zip(after, tested, strict=True)])
    test, of_cond = dce_jaxpr(cond.jaxpr, [True], [*[False] * len(in_cond), *needed])
    step, of_body = dce_jaxpr(body.jaxpr, needed, [*[False] * len(in_body), *needed])
    in_cond, in_body = (
        _kept(x, used[: len(x)]) for x, used in ((in_cond, of_cond), (in_body, of_body))
    )
    return eqn.replace(
        invars=[*in_cond, *in_body, *_kept(carry, needed)],
        outvars=_kept(eqn.outvars, needed),
        params={
            **eqn.params,
            "cond_jaxpr": cond.replace(jaxpr=test),
            "body_jaxpr": body.replace(jaxpr=step),
            "cond_nconsts": len(in_cond),
            "body_nconsts": len(in_body),
        },
    )


def _kept(items: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    return [x for x, is_needed in zip(items, needed, strict=True) if is_needed]
