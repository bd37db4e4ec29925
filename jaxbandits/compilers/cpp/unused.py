"""Leaves out of a jaxpr the operations on which no result depends.

JAX does so too, but not inside loops with a condition: their bodies keep what nobody reads, such as
the log-determinant of an inverse that is needed for its matrix alone.
"""

from collections.abc import Sequence
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.interpreters.partial_eval import dce_jaxpr

from ..jaxprs import is_literal, jaxprs_in, name_of, while_parts


def without_unused(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with the same arguments and results, and no operation that is not needed."""
    known: dict[Jaxpr, Jaxpr] = {}  # a function that is called twice remains one function

    def pruned(jaxpr):
        if jaxpr not in known:
            needed = _needed(jaxpr)
            read = {x for eqn in needed.eqns for x in eqn.invars if not is_literal(x)}
            read |= {x for x in needed.outvars if not is_literal(x)}
            eqns = [_with_shorter_loop(eqn, read) for eqn in needed.eqns]
            known[jaxpr] = _needed(needed.replace(eqns=[_with(eqn, pruned) for eqn in eqns]))
        return known[jaxpr]

    return pruned(jaxpr)


def _needed(jaxpr):
    """What JAX finds to be needed for the results."""
    return dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]


def _with(eqn, change):
    """An equation with another jaxpr for each among its parameters."""

    def changed(x: Any) -> Any:
        if isinstance(x, ClosedJaxpr):
            return x.replace(jaxpr=change(x.jaxpr))
        if isinstance(x, Jaxpr):
            return change(x)
        return type(x)(map(changed, x)) if type(x) in (list, tuple) else x

    if not any(jaxprs_in(eqn)):
        return eqn
    return eqn.replace(params={name: changed(x) for name, x in eqn.params.items()})


def _with_shorter_loop(eqn: JaxprEqn, read: set[Any]) -> JaxprEqn:
    """A `while` that carries only what is `read` after it, or what that depends on."""
    if name_of(eqn) != "while":
        return eqn
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    in_cond, in_body, carry = while_parts(eqn.params, eqn.invars)
    tested = _inputs_of(cond, [True])[len(in_cond) :]
    before, needed = [], _either([x in read for x in eqn.outvars], tested)
    while before != needed:
        before, needed = needed, _either(needed, _inputs_of(body, needed)[len(in_body) :])
    consts = [[True] * len(x) for x in (in_cond, in_body)]
    cond = cond.replace(jaxpr=dce_jaxpr(cond.jaxpr, [True], [*consts[0], *needed])[0])
    body = body.replace(jaxpr=dce_jaxpr(body.jaxpr, needed, [*consts[1], *needed])[0])
    return eqn.replace(
        invars=[*in_cond, *in_body, *_kept(carry, needed)],
        outvars=_kept(eqn.outvars, needed),
        params={**eqn.params, "cond_jaxpr": cond, "body_jaxpr": body},
    )


def _inputs_of(closed, results):
    """For each argument whether these of the results depend on it."""
    return dce_jaxpr(closed.jaxpr, results)[1]


def _either(some: Sequence[bool], others: Sequence[bool]) -> list[bool]:
    return [a or b for a, b in zip(some, others, strict=True)]


def _kept(items: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    return [x for x, is_needed in zip(items, needed, strict=True) if is_needed]
