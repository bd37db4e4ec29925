"""Solvers of designs with the derivatives of their optima, by the envelope theorem.

At an optimum `f(p) = min over w of max over m of g_m(w, p)`, a change of the weights changes f only
to second order: `df = sum of v_m dg_m` at fixed w, with the multipliers v of the maximum. The
weights themselves have no derivative here: where the support changes none exists, and often there
are several optima.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..kernels.design import d_optimal as kernels
from ..kernels.design import oracle as oracles
from ..kernels.design.d_optimal import Design
from ..kernels.design.directions import Pairs
from ..kernels.design.xy import interior_point
from ..kernels.design.xy.by_name import Solver, are_many, named
from ..kernels.estimate import least_squares
from ..kernels.linalg import subspace
from ..transforms import refused_tangent, ruled, tangents_like
from ..types import Scalar, Table

REFUSED: str = (
    "the weights of a design have no derivative; its `value` and `bound` have a first one, by "
    "`jax.grad` anywhere, and in forward mode inside of `jax.jit`"
)
TOO_MANY: str = "a design for so many arms, found by way of a few of them, has no derivative"


class Solved(NamedTuple):
    """A design and what its derivative needs."""

    design: Design
    multipliers: Float[Array, " P"] | None = None  # of the directions, up to a factor
    inverse: Float[Array, "d d"] | None = None  # of A(w) on the span of the arms


Arms: TypeAlias = Float[Table, "K d"]
Targets: TypeAlias = Float[Table, "M d"]
Mask: TypeAlias = Bool[Table, " n"]


def _solver(tol):
    """The designs for given directions, as `Solved`."""

    def solve(arms, number, listed, many):
        if are_many(arms, number):
            return Solved(many())
        directions, active = listed()
        design, multipliers = interior_point.saddle(arms, directions, active, tol=tol)
        space = subspace.of(arms, jnp.ones(arms.shape[0], bool))
        inverse = subspace.inverse(space, least_squares.gram(arms, design.weights)).matrix
        return Solved(design, multipliers, inverse)

    def between(arms, targets, active):
        pairs = Pairs(targets)

        def listed():  # a table of so many pairs would fill the memory
            first, second = pairs.indices
            return pairs, active[first] & active[second]

        return solve(arms, pairs.number, listed, lambda: exact.between(arms, targets, active))

    def along(arms, vectors, active):
        number, listed = vectors.shape[0], lambda: (vectors, active)
        return solve(arms, number, listed, lambda: exact.along(arms, vectors, active))

    exact = named("interior_point", tol)
    return Solver(between, along)


@jax.jit
def _for_pairs(arms, targets, active, tol):
    return _solver(tol).between(arms, targets, active)


@jax.jit
def _for_gaps(arms, targets, values, tol):
    solver, found = _solver(tol), []

    def along(arms, vectors, active):
        found.append(solver.along(arms, vectors, active))
        return found[-1].design

    design = oracles.oracle(arms, targets, values, Solver(solver.between, along))
    return found[-1]._replace(design=design)


def _differences(targets, active, tol):
    first, second = Pairs(targets).indices
    return targets[first] - targets[second]


def _scaled_differences(targets, values, tol):
    best = jnp.argmax(values)
    gaps = values[best] - values
    others = (jnp.arange(values.size) != best) & (gaps > 0)
    differences = jnp.where(others[:, None], targets[best] - targets, 0.0)
    return differences / jnp.where(others, gaps, 1.0)[:, None]


def _envelope(directions, primals, tangents, solved):
    """The derivative of a design for `directions(*primals[1:])`."""
    design, multipliers, inverse = solved
    if multipliers is None:
        return Solved(tangents_like(design, {}, tangents, TOO_MANY))
    arms, arms_dot = primals[0], tangents[0]
    vectors, vectors_dot = jax.jvp(directions, primals[1:], tangents[1:])
    total = multipliers.sum()
    shares = multipliers / jnp.where(total > 0, total, 1.0)
    half = vectors @ inverse
    table = (half.T * shares) @ half
    # d(y^T A^-1 y) = 2 y^T A^-1 dy - y^T A^-1 dA A^-1 y
    slope = 2.0 * (shares @ (half * vectors_dot).sum(1))
    slope = slope - 2.0 * (design.weights @ (arms_dot @ table * arms).sum(1))
    slope = jnp.where(jnp.isfinite(design.value), slope, jnp.nan)
    known = {"value": slope, "bound": slope}
    others = (refused_tangent(x, tangents, REFUSED) for x in (multipliers, inverse))
    return Solved(tangents_like(design, known, tangents, REFUSED), *others)


def _constant(primals, tangents, design):
    """The optimum of D-optimal designs is the rank."""
    zero = jnp.zeros_like(design.value)
    return tangents_like(design, {"value": zero, "bound": zero}, tangents, REFUSED)


@jax.jit
def _for_all(arms, active, tol):
    return kernels.d_optimal(arms, active, tol=tol)


best_for_all: Callable[[Arms, Mask, Scalar], Design]
best_for_all = ruled(_for_all, _constant)
best_for_pairs: Callable[[Arms, Targets, Mask, Scalar], Solved]
best_for_pairs = ruled(_for_pairs, partial(_envelope, _differences))
best_for_gaps: Callable[[Arms, Targets, Float[Table, " M"], Scalar], Solved]
best_for_gaps = ruled(_for_gaps, partial(_envelope, _scaled_differences))
