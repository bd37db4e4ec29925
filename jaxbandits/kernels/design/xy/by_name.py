"""The designs for given directions by name, each with the tolerance that suits it."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ....types import Scalar
from ... import selection
from ...linalg import pairwise, spd
from ..d_optimal import Design
from ..directions import Pairs
from . import frank_wolfe, interior_point, many_arms

DESIGNS: dict[str, tuple[Callable[..., Design], float]] = {
    "interior_point": (interior_point.xy_optimal, 1e-3),
    "frank_wolfe": (frank_wolfe.xy_frank_wolfe, 0.01),
}
MANY = 10_000  # directions
Solve: TypeAlias = Callable[
    [Float[Array, "K d"], Float[Array, "N d"], Bool[Array, " N"]], Design
]  # (arms, targets or directions, which of them count) -> Design


class Solver(NamedTuple):
    """A design for all differences of the targets alive, and one for listed directions."""

    between: Solve
    along: Solve


def named(name: str, tol: Scalar | None = None) -> Solver:
    """The solver of this name; its tolerance is its usual one if `tol` is None."""
    solve, usual = DESIGNS[name]
    tol = usual if tol is None else tol
    exact = name == "interior_point"

    def between(arms, targets, alive):
        pairs = Pairs(targets)
        if exact and targets.shape[0] > 1 and are_many(arms, pairs.number):
            return many_arms.xy_many(arms, _among(targets, alive), tol=tol)
        first, second = pairs.indices
        return solve(arms, pairs, alive[first] & alive[second], tol=tol)

    def along(arms, vectors, active):
        if exact and are_many(arms, vectors.shape[0]):
            return many_arms.xy_many(arms, _listed(vectors, active), tol=tol)
        return solve(arms, vectors, active, tol=tol)

    return Solver(between, along)


def are_many(arms: Float[Array, "K d"], num_directions: int) -> bool:
    """Whether small problems with a few of each are faster than one problem with all."""
    num_arms, dim = arms.shape
    room = many_arms.room(dim)
    return num_arms >= 2 * room or (num_arms >= room and num_directions > MANY)


def _among(targets, alive) -> many_arms.Worst:
    def worst(inverse, number):
        far = pairwise.farthest(targets, alive, inverse, number)
        return many_arms.Found(targets[far.first] - targets[far.second], far.sqdist)

    return worst


def _listed(vectors, active) -> many_arms.Worst:
    def worst(inverse, number):
        norms = jnp.where(active, spd.quadratic(vectors, inverse), 0.0)
        rows = selection.largest(norms, min(number, norms.size))
        missing = number - rows.size
        found = jnp.pad(vectors[rows], ((0, missing), (0, 0)))
        return many_arms.Found(found, jnp.pad(jnp.maximum(0.0, norms[rows]), (0, missing)))

    return worst
