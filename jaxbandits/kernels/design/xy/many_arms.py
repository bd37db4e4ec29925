"""XY designs for many arms and directions, by small problems with a few of each.

There is an optimum at which at most `d (d + 1) / 2 + 1` arms have weight and about as many
directions count, and no more directions than arms. A small problem is solved by the interior-point
method; the arms and directions that violate its certificate most are added, until it certifies the
whole problem.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ....types import Scalar, Whole
from ... import selection
from ...estimate import least_squares
from ...linalg import blocks, subspace, svec
from .. import directions
from ..d_optimal import Design, d_optimal
from .interior_point import saddle

FEW, SOME = 4, 256  # the least and the largest number of arms, and directions, added at once
ROUGH = 0.1  # the tolerance of the first design
Ends: TypeAlias = Int[Array, "n 2"]  # what tells directions apart: two targets, or a row twice


class Found(NamedTuple):
    """The directions that a design measures worst."""

    ends: Ends
    norms: Float[Array, " n"]  # the largest first, 0 where there is none


class Aims(NamedTuple):
    """The directions that a design has to measure well; they are never listed."""

    # (inverse, n): about the n worst ones, of which the first is exactly the worst.
    worst: Callable[[Float[Array, "d d"], int], Found]
    vectors: Callable[[Ends], Float[Array, "n d"]]
    outside: Callable[[subspace.Span], Bool[Array, ""]]  # whether any leaves the span


class Counting(NamedTuple):
    """The directions that count at an optimum, and their multipliers, up to a factor."""

    ends: Ends
    multipliers: Float[Array, " n"]


class Sizes(NamedTuple):
    """How many arms and directions a small problem has."""

    arms: int
    directions: int


class _Round(NamedTuple):
    chosen: Int[Array, " A"]  # arms in the small problem
    ends: Int[Array, "W 2"]  # its directions
    used: Bool[Array, " W"]
    weights: Float[Array, " K"]  # of the best design so far
    value: Float[Array, ""]
    bound: Float[Array, ""]
    counting: Counting  # what gave the bound
    rounds: Int[Array, ""]


def sizes(num_arms: int, dim: int) -> Sizes:
    """Those of the small problem; all arms, where most of them would be in it."""
    new = added(dim)
    most = svec.size(dim) + 2 * new + 2 * FEW
    # As many directions as arms would do at an optimum.
    return Sizes(most if num_arms >= most + new else num_arms, min(most, 4 * num_arms + 2 * new))


def added(dim: int) -> int:
    """How many arms, and directions, are added at once: in more dimensions more will count."""
    return min(max(FEW, svec.size(dim) // 6), SOME)


def xy_many(
    arms: Float[Array, "K d"],
    aims: Aims,
    *,
    tol: Scalar = 1e-3,
    max_rounds: Whole = 100,
) -> tuple[Design, Counting]:
    """`min over w of max of ||y||^2` in A(w)^-1 over the directions y of `aims`.

    Returns:
      `Design` with the certificate of `interior_point.xy_optimal`, whose `iterations` counts small
      problems, and the directions that certify it.
    """
    num_arms, dim = arms.shape
    every = jnp.ones(num_arms, bool)
    (in_problem, width), new = sizes(num_arms, dim), added(dim)
    candidate = every if num_arms == in_problem else directions.without_copies(arms, every)
    first = d_optimal(arms, every, tol=ROUGH)
    space = subspace.of(arms, every)
    outside = aims.outside(space)

    def inverse_of(weights):
        return subspace.inverse(space, least_squares.gram(arms, weights)).matrix

    def unfinished(now):
        certain = now.value <= (1.0 + tol) * now.bound
        return ~certain & ~outside & (now.rounds < max_rounds)

    def step(now):
        vectors = aims.vectors(now.ends)
        found, duals = saddle(arms[now.chosen], vectors, now.used, tol=0.2 * tol)
        weights = jnp.zeros_like(now.weights).at[now.chosen].add(found.weights)
        inverse = inverse_of(weights)
        duals = duals / duals.sum()
        total = (vectors.T * duals) @ vectors

        def slopes_of(rows):
            half = rows @ inverse
            return (half @ total * half).sum(1)

        slopes, level = blocks.each(slopes_of, arms), (inverse * total).sum()
        bound = level**2 / slopes.max()
        far = aims.worst(inverse, new)
        value = far.norms[0]
        better = value < now.value
        # What does not violate the certificate of the small problem takes no other's place.
        slots = selection.largest(-duals, new)
        enters = (far.norms > found.value) | (duals[slots] <= 0)
        chosen = now.chosen
        if chosen.size < num_arms:
            inside = jnp.zeros(num_arms, bool).at[chosen].set(True)
            rates = jnp.where(candidate & ~inside, slopes, -1.0)
            news, leaving = selection.largest(rates, new), selection.largest(-found.weights, new)
            violates = rates[news] > level
            chosen = chosen.at[leaving].set(jnp.where(violates, news, chosen[leaving]))
        closer = partial(jnp.where, bound > now.bound)
        return _Round(
            chosen,
            now.ends.at[slots].set(jnp.where(enters[:, None], far.ends, now.ends[slots])),
            now.used.at[slots].set(jnp.where(enters, far.norms > 0, now.used[slots])),
            jnp.where(better, weights, now.weights),
            jnp.where(better, value, now.value),
            jnp.maximum(now.bound, bound),
            Counting(closer(now.ends, now.counting.ends), closer(duals, now.counting.multipliers)),
            now.rounds + 1,
        )

    far = aims.worst(inverse_of(first.weights), new)
    some = far.norms[0] > 0
    ends = jnp.zeros((width, 2), int).at[:new].set(far.ends)
    begin = _Round(
        jnp.argsort(-first.weights - candidate * 1e-9)[:in_problem],
        ends,
        jnp.append(far.norms > 0, jnp.zeros(width - new, bool)),
        jnp.where(some, first.weights, 1.0 / num_arms),
        far.norms[0],
        jnp.zeros((), arms.dtype),
        Counting(ends, jnp.zeros(width, arms.dtype)),
        jnp.zeros((), int),
    )
    end = lax.while_loop(unfinished, step, begin)
    value, bound = (jnp.where(outside, jnp.inf, x) for x in (end.value, end.bound))
    converged = ~outside & (value <= (1.0 + tol) * bound)
    return Design(end.weights, value, bound, end.rounds, converged), end.counting
