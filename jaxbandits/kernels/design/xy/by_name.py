"""The designs for given directions by name, each with the tolerance that suits it."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ....types import Scalar
from ... import selection
from ...linalg import pairwise, spd, subspace, svec
from .. import directions
from ..d_optimal import Design
from ..directions import Pairs
from . import frank_wolfe, interior_point, many_arms, small_weights
from .many_arms import Aims, Counting, Found

DESIGNS: dict[str, float] = {"interior_point": 1e-3, "frank_wolfe": 0.01}  # the tolerance of each
MANY, VERY_MANY = 10_000, 40_000  # directions
MOST_LISTED = 8_000  # of these, where one problem has a row for each and no products of pairs
Solve: TypeAlias = Callable[
    [Float[Array, "K d"], Float[Array, "N d"], Bool[Array, " N"]], Design
]  # (arms, targets or directions, which of them count) -> Design


class Solver(NamedTuple):
    """A design for all differences of the targets alive, and two for listed directions.

    Attributes:
      between: of targets.
      along: of directions, about as many as targets.
      among: of directions, about as many as pairs of targets.
    """

    between: Solve
    along: Solve
    among: Solve


def named(name: str, tol: Scalar | None = None) -> Solver:
    """The solver of this name; its tolerance is its usual one if `tol` is None."""
    tol = DESIGNS[name] if tol is None else tol
    if name == "interior_point":
        return Solver(
            lambda *problem: between(*problem, tol=tol)[0],
            lambda *problem: along(*problem, tol=tol)[0],
            lambda *problem: along(*problem, tol=tol, most=MOST_LISTED)[0],
        )

    def step_by_step(arms, targets, alive):
        pairs = Pairs(targets)
        return frank_wolfe.xy_frank_wolfe(arms, pairs, _both(pairs, alive), tol=tol)

    listed = lambda *problem: frank_wolfe.xy_frank_wolfe(*problem, tol=tol)  # noqa: E731
    return Solver(step_by_step, listed, listed)


def cut(name: str, tol: Scalar | None = None) -> Solve:
    """The solver `between` of this name, whose designs have their small weights cut.

    Their arms may not span: rewards of these tell the differences of the targets alive, and
    nothing else.
    """
    tol = DESIGNS[name] if tol is None else tol
    solve = named(name, tol).between

    def certified(*problem):
        design = solve(*problem)
        most = jnp.maximum((1.0 + tol) * design.bound, design.value)
        return small_weights.cut(*problem, design, most=most, first=0.1 * tol)

    def step_by_step(*problem):
        design = solve(*problem)  # its bound may be far below it
        return small_weights.cut(*problem, design, most=(1.0 + tol) * design.value)

    return certified if name == "interior_point" else step_by_step


def between(
    arms: Float[Array, "K d"],
    targets: Float[Array, "M d"],
    alive: Bool[Array, " M"],
    *,
    tol: Scalar,
) -> tuple[Design, Counting]:
    """The optimal design for all differences of the targets alive."""
    pairs = Pairs(targets)
    if targets.shape[0] > 1 and are_many(*arms.shape, pairs.number):
        return many_arms.xy_many(arms, _differences(targets, alive), tol=tol)
    design, duals = interior_point.saddle(arms, pairs, _both(pairs, alive), tol=tol)
    return design, Counting(jnp.asarray(np.stack(pairs.indices, 1)), duals)


def along(
    arms: Float[Array, "K d"],
    vectors: Float[Array, "P d"],
    active: Bool[Array, " P"],
    *,
    tol: Scalar,
    most: int = VERY_MANY,
) -> tuple[Design, Counting]:
    """The optimal design for listed directions; of more than `most`, small problems have a few."""
    if vectors.shape[0] > most or are_many(*arms.shape, vectors.shape[0]):
        return many_arms.xy_many(arms, _listed(vectors, active), tol=tol)
    design, duals = interior_point.saddle(arms, vectors, active, tol=tol)
    return design, Counting(jnp.arange(duals.size)[:, None].repeat(2, 1), duals)


def are_many(num_arms: int, dim: int, num_directions: int) -> bool:
    """Whether small problems with a few of each are faster than one problem with all."""
    count = 2 * svec.size(dim) + 16  # at most half as many arms, and directions, need to count
    many = num_arms >= count and num_directions > MANY
    return many or num_arms >= 2 * count or num_directions > VERY_MANY


def bytes_needed(num_arms: int, dim: int, num_directions: int) -> int:
    """About the memory of a design in double precision, beside its arms and targets."""
    sizes = many_arms.Sizes(num_arms, num_directions)
    if are_many(num_arms, dim, num_directions):
        sizes = many_arms.sizes(num_arms, dim)
    # Some copies of the tables of its Newton systems.
    return 4 * 8 * sizes.arms * (sizes.arms + sizes.directions + svec.size(dim))


def _both(pairs, alive):
    first, second = pairs.indices
    return alive[first] & alive[second]


def _differences(targets, alive):
    alive = directions.without_copies(targets, alive)

    def worst(inverse, number):
        far = pairwise.farthest(targets, alive, inverse, number)
        return Found(jnp.stack([far.first, far.second], 1), far.sqdist)

    def vectors(ends):
        return targets[ends[:, 0]] - targets[ends[:, 1]]

    def outside(span):
        return ~subspace.differences_within(span, targets, alive)

    return Aims(worst, vectors, outside)


def _listed(vectors, active):
    active = directions.without_copies(vectors, active)

    def worst(inverse, number):
        norms = jnp.where(active, spd.quadratic(vectors, inverse), 0.0)
        rows = selection.largest(norms, min(number, norms.size))
        missing = number - rows.size
        ends = jnp.pad(jnp.stack([rows, rows], 1), ((0, missing), (0, 0)))
        return Found(ends, jnp.pad(jnp.maximum(0.0, norms[rows]), (0, missing)))

    def outside(span):
        return (active & ~subspace.within(span, vectors)).any()

    return Aims(worst, lambda ends: vectors[ends[:, 0]], outside)
