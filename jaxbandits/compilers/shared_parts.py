"""What is costly in a function and does not depend on its arguments, computed apart from it.

A function of one lane may compute something costly from what it closes over alone, such as a design
for arms that all lanes share. As a program for many lanes it would compute that in each of them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import Jaxpr, JaxprEqn

from .jaxprs import bind, has_operation, is_literal, literal_value, name_of, shape_of

COSTLY: frozenset[str] = frozenset({"while", "scan", "sort", "dot_general"})
LARGE: int = 512  # entries of an array whose every use is costly


class Later(NamedTuple):
    """A result that is computed when the function is called."""

    number: int
    own: bool  # whether it depends on the arguments


class Step(NamedTuple):
    """An operation of the function."""

    eqn: JaxprEqn
    operands: list[Any]  # arrays, or `Later`
    results: list[Later]


def shared_parts(function: Callable, *shapes: Any) -> Callable:
    """The same function, whose costly operations that do not depend on its arguments are done now.

    Args:
      function: of pytrees of arrays.
      *shapes: of its arguments, as `jax.ShapeDtypeStruct`.
    Returns:
      A function of such arguments. It closes over results, so that in a trace they are computed
      where `shared_parts` was called.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes)
    split = _Split()
    inputs = [split.later(True) for _ in closed.jaxpr.invars]
    results = split.walk(closed.jaxpr, closed.consts, inputs)

    def rest(*arguments):
        values = dict(zip(inputs, jax.tree.leaves(arguments), strict=True))
        for step in split.steps:
            values |= zip(step.results, bind(step.eqn, _read(step.operands, values)), strict=True)
        return jax.tree.unflatten(jax.tree.structure(shape), _read(results, values))

    return rest


def _read(items, values):
    return [values[x] if isinstance(x, Later) else x for x in items]


class _Split:
    """The steps of a function that are left, and the results of the others."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._made: dict[Later, Any] = {}  # what is computed now
        self._makers: dict[Later, Step] = {}
        self._numbers = itertools.count()

    def later(self, own: bool) -> Later:
        """A new result."""
        return Later(next(self._numbers), own)

    def walk(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """Take over the operations of a jaxpr; its results, arrays or `Later`."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *operands], strict=True))

        def value(atom):
            return literal_value(atom) if is_literal(atom) else known[atom]

        for eqn in jaxpr.eqns:
            inputs = [value(x) for x in eqn.invars]
            if name_of(eqn) == "jit":
                inner = eqn.params["jaxpr"]
                results = self.walk(inner.jaxpr, inner.consts, inputs)
            else:
                results = self._operation(eqn, inputs)
            known |= zip(eqn.outvars, results, strict=True)
        return [value(x) for x in jaxpr.outvars]

    def _operation(self, eqn, operands):
        own = any(isinstance(x, Later) and x.own for x in operands)
        if not own and _is_costly(eqn):
            return bind(eqn, [self._now(x) for x in operands])
        step = Step(eqn, operands, [self.later(own) for _ in eqn.outvars])
        self._makers |= dict.fromkeys(step.results, step)
        self.steps.append(step)
        return step.results

    def _now(self, value):
        """A result that does not depend on the arguments, as an array."""
        if not isinstance(value, Later):
            return value
        if value not in self._made:
            step = self._makers[value]
            found = bind(step.eqn, [self._now(x) for x in step.operands])
            self._made |= zip(step.results, found, strict=True)
        return self._made[value]


def _is_costly(eqn):
    shapes = [shape_of(x) for x in (*eqn.invars, *eqn.outvars)]
    return has_operation(eqn, COSTLY) or max(map(math.prod, shapes)) > LARGE
