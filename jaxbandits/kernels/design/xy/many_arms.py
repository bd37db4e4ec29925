"""XY designs for many arms and directions, by small problems with a few of each.

At an optimum at most `d (d + 1) / 2 + 1` arms have weight, and about as many directions count.
A small problem is solved by the interior-point method; the arms and directions that violate its
certificate most are added, until it certifies the whole problem.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ....types import Scalar, Whole
from ... import selection
from ...estimate import least_squares
from ...linalg import blocks, subspace, svec
from ..d_optimal import Design, d_optimal
from .interior_point import saddle

FEW, SOME = 4, 256  # the least and the largest number of arms, and directions, added at once
ROUGH = 0.1  # the tolerance of the first design


class Found(NamedTuple):
    """The directions that a design measures worst."""

    vectors: Float[Array, "n d"]
    norms: Float[Array, " n"]  # the largest first, 0 where there is none


Worst: TypeAlias = Callable[[Float[Array, "d d"], int], Found]  # (inverse, number) -> Found


class _Round(NamedTuple):
    chosen: Int[Array, " A"]  # arms in the small problem
    vectors: Float[Array, "W d"]  # its directions
    used: Bool[Array, " W"]
    weights: Float[Array, " K"]  # of the best design so far
    value: Float[Array, ""]
    bound: Float[Array, ""]
    rounds: Int[Array, ""]


def room(dim: int) -> int:
    """How many arms, and directions, the small problem holds."""
    return 2 * svec.size(dim) + 4 * FEW


def added(dim: int) -> int:
    """How many arms, and directions, are added at once: in more dimensions more will count."""
    return min(max(FEW, svec.size(dim) // 12), SOME)


def xy_many(
    arms: Float[Array, "K d"],
    worst: Worst,
    *,
    tol: Scalar = 1e-3,
    max_rounds: Whole = 100,
) -> Design:
    """`min over w of max of ||y||^2` in A(w)^-1 over the directions y that `worst` finds.

    Args:
      worst: `(inverse [d, d], number) -> Found`, about the n worst directions for a design, the
        first of them exactly the worst; all in the span of the arms.
    Returns:
      `Design` with the certificate of `interior_point.xy_optimal`; `iterations` counts small
      problems.
    """
    num_arms, dim = arms.shape
    most, new = room(dim), added(dim)
    in_problem = most if num_arms >= most + new else num_arms
    first = d_optimal(arms, jnp.ones(num_arms, bool), tol=ROUGH)
    space = subspace.of(arms, jnp.ones(num_arms, bool))

    def inverse_of(weights):
        return subspace.inverse(space, least_squares.gram(arms, weights)).matrix

    def unfinished(now):
        certain = now.value <= (1.0 + tol) * now.bound
        return ~certain & (now.rounds < max_rounds)

    def step(now):
        found, duals = saddle(arms[now.chosen], now.vectors, now.used, tol=0.2 * tol)
        weights = jnp.zeros_like(now.weights).at[now.chosen].add(found.weights)
        inverse = inverse_of(weights)
        duals = duals / duals.sum()
        total = (now.vectors.T * duals) @ now.vectors

        def slopes_of(rows):
            half = rows @ inverse
            return (half @ total * half).sum(1)

        slopes = blocks.each(slopes_of, arms)
        bound = (inverse * total).sum() ** 2 / slopes.max()
        far = worst(inverse, new)
        value = far.norms[0]
        chosen, slots, better = now.chosen, selection.largest(-duals, new), value < now.value
        if chosen.size < num_arms:
            inside = jnp.zeros(num_arms, bool).at[chosen].set(True)
            news = selection.largest(jnp.where(inside, -1.0, slopes), new)
            chosen = chosen.at[selection.largest(-found.weights, new)].set(news)
        return _Round(
            chosen,
            now.vectors.at[slots].set(far.vectors),
            now.used.at[slots].set(far.norms > 0),
            jnp.where(better, weights, now.weights),
            jnp.where(better, value, now.value),
            jnp.maximum(now.bound, bound),
            now.rounds + 1,
        )

    far = worst(inverse_of(first.weights), new)
    some = far.norms[0] > 0
    missing = jnp.zeros((most - new, dim), arms.dtype)
    begin = _Round(
        jnp.argsort(-first.weights)[:in_problem],
        jnp.concatenate([far.vectors, missing]),
        jnp.append(far.norms > 0, jnp.zeros(most - new, bool)),
        jnp.where(some, first.weights, 1.0 / num_arms),
        far.norms[0],
        jnp.zeros((), arms.dtype),
        jnp.zeros((), int),
    )
    end = lax.while_loop(unfinished, step, begin)
    converged = end.value <= (1.0 + tol) * end.bound
    return Design(end.weights, end.value, end.bound, end.rounds, converged)
