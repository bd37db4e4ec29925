"""Solvers of designs with the derivatives of their optima, by the envelope theorem.

At an optimum `f(p) = min over w of max over m of g_m(w, p)`, a change of the weights changes f only
to second order: `df = sum of v_m dg_m` at fixed w, with the multipliers v of the maximum. Where a
solver has not converged that is no theorem, and the derivative is NaN. The
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
from ..kernels.design.xy import by_name
from ..kernels.design.xy.by_name import Solver
from ..kernels.design.xy.many_arms import Counting
from ..kernels.estimate import least_squares
from ..kernels.linalg import subspace
from ..transforms import refused_tangent, ruled, tangents_like
from ..types import Scalar, Table

REFUSED: str = (
    "the weights of a design have no derivative; its `value` and `bound` have a first derivative: "
    "`jax.grad` works everywhere, forward mode only inside `jax.jit`"
)


class Solved(NamedTuple):
    """A design and what its derivative needs."""

    design: Design
    counting: Counting
    inverse: Float[Array, "d d"]  # of A(w) on the span of the arms


Arms: TypeAlias = Float[Table, "K d"]
Targets: TypeAlias = Float[Table, "M d"]
Mask: TypeAlias = Bool[Table, " n"]


def _for_pairs(arms, targets, active, tol):
    return _solved(arms, by_name.between(arms, targets, active, tol=tol))


def _for_gaps(arms, targets, values, tol):
    found = []

    def along(*problem):
        found.append(by_name.along(*problem, tol=tol))
        return found[-1][0]

    between = by_name.named("interior_point", tol).between
    design = oracles.oracle(arms, targets, values, Solver(between, along, along))
    return _solved(arms, found[-1])._replace(design=design)


def _solved(arms, found):
    design, counting = found
    space = subspace.of(arms, jnp.ones(arms.shape[0], bool))
    inverse = subspace.inverse(space, least_squares.gram(arms, design.weights)).matrix
    return Solved(design, counting, inverse)


def _differences(ends, targets, active, tol):
    return targets[ends[:, 0]] - targets[ends[:, 1]]


def _scaled_differences(ends, targets, values, tol):
    best = jnp.argmax(values)
    others, gaps = ends[:, 0], values[best] - values[ends[:, 0]]
    count = (others != best) & (gaps > 0)
    differences = jnp.where(count[:, None], targets[best] - targets[others], 0.0)
    return differences / jnp.where(count, gaps, 1.0)[:, None]


def _envelope(directions, primals, tangents, solved):
    """The derivative of a design for `directions(ends, *primals[1:])`."""
    design, counting, inverse = solved
    ends, multipliers = counting
    arms, arms_dot = primals[0], tangents[0]
    vectors, vectors_dot = jax.jvp(partial(directions, ends), primals[1:], tangents[1:])
    total = multipliers.sum()
    shares = multipliers / jnp.where(total > 0, total, 1.0)
    half = vectors @ inverse
    table = (half.T * shares) @ half
    # d(y^T A^-1 y) = 2 y^T A^-1 dy - y^T A^-1 dA A^-1 y
    slope = 2.0 * (shares @ (half * vectors_dot).sum(1))
    slope = slope - 2.0 * (design.weights @ (arms_dot @ table * arms).sum(1))
    # A factor: a tangent that does not depend on those of the arguments would be no derivative.
    known = jnp.isfinite(design.value) & design.converged
    slope = slope * jnp.where(known, 1.0, jnp.nan).astype(slope.dtype)
    known = {"value": slope, "bound": slope}
    return Solved(
        tangents_like(design, known, tangents, REFUSED),
        tangents_like(counting, {}, tangents, REFUSED),
        refused_tangent(inverse, tangents, REFUSED),
    )


def _constant(primals, tangents, design):
    """The optimum of D-optimal designs is the rank."""
    zero = jnp.zeros_like(design.value)
    return tangents_like(design, {"value": zero, "bound": zero}, tangents, REFUSED)


def _for_all(arms, active, tol):
    return kernels.d_optimal(arms, active, tol=tol)


best_for_all: Callable[[Arms, Mask, Scalar], Design]
best_for_all = ruled(_for_all, _constant)
best_for_pairs: Callable[[Arms, Targets, Mask, Scalar], Solved]
best_for_pairs = ruled(_for_pairs, partial(_envelope, _differences))
best_for_gaps: Callable[[Arms, Targets, Float[Table, " M"], Scalar], Solved]
best_for_gaps = ruled(_for_gaps, partial(_envelope, _scaled_differences))
