"""XY designs for many arms and directions, by way of a few of each.

At an optimum at most `d (d + 1) / 2 + 1` arms have weight, and about as many directions count.
A small problem is solved by the interior-point method; the arms and directions that its certificate
misses most are taken in, until it certifies the whole.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ... import selection
from ...estimate import least_squares
from ...linalg import subspace, svec
from ..d_optimal import Design, d_optimal
from .interior_point import saddle

NEW = 4  # arms and directions taken in at once
ROUGH = 0.1  # of the first design


class Found(NamedTuple):
    """The directions that a design measures worst."""

    vectors: Array  # float [n, d]
    norms: Array  # float [n] the largest first, 0 where there is none


class _Round(NamedTuple):
    chosen: Array  # int [A] arms in the small problem
    vectors: Array  # float [W, d] its directions
    used: Array  # bool [W]
    weights: Array  # float [K] of the best design so far
    value: Array  # float []
    bound: Array  # float []
    rounds: Array  # int []


def room(dim: int) -> int:
    """How many arms, and directions, the small problem holds."""
    return 2 * svec.size(dim) + 4 * NEW


def xy_many(
    arms: Float[Array, "K d"],
    worst: Callable,
    *,
    tol: Float[Array, ""] | float = 1e-3,
    max_rounds: Int[Array, ""] | int = 100,
) -> Design:
    """`min over w of max of ||y||^2` in A(w)^-1 where `worst` knows the directions y.

    Args:
      worst: `(inverse [d, d], number) -> Found`, the n worst for a design or so, the first of
        them the very worst; all in the span of the arms.
    Returns:
      `Design` with the certificate of `interior_point.xy_optimal`; `iterations` counts small
      problems.
    """
    num_arms, dim = arms.shape
    most = room(dim)
    seats = most if num_arms >= most + NEW else num_arms
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
        half = arms @ inverse
        slopes = (half @ total * half).sum(1)
        bound = (inverse * total).sum() ** 2 / slopes.max()
        far = worst(inverse, NEW)
        value = far.norms[0]
        chosen, seats, better = now.chosen, _largest(-duals, NEW), value < now.value
        if chosen.size < num_arms:
            inside = jnp.zeros(num_arms, bool).at[chosen].set(True)
            news = _largest(jnp.where(inside, -1.0, slopes), NEW)
            chosen = chosen.at[_largest(-found.weights, NEW)].set(news)
        return _Round(
            chosen,
            now.vectors.at[seats].set(far.vectors),
            now.used.at[seats].set(far.norms > 0),
            jnp.where(better, weights, now.weights),
            jnp.where(better, value, now.value),
            jnp.maximum(now.bound, bound),
            now.rounds + 1,
        )

    far = worst(inverse_of(first.weights), NEW)
    some = far.norms[0] > 0
    missing = jnp.zeros((most - NEW, dim), arms.dtype)
    begin = _Round(
        jnp.argsort(-first.weights)[:seats],
        jnp.concatenate([far.vectors, missing]),
        (jnp.arange(most) < NEW) & some,
        jnp.where(some, first.weights, 1.0 / num_arms),
        far.norms[0],
        jnp.zeros((), arms.dtype),
        jnp.zeros((), int),
    )
    end = lax.while_loop(unfinished, step, begin)
    converged = end.value <= (1.0 + tol) * end.bound
    return Design(end.weights, end.value, end.bound, end.rounds, converged)


def _largest(values, number):
    """Indices of the n largest values, the largest first."""
    chosen = []
    for _ in range(number):
        top = selection.best(values).arm
        chosen.append(top)
        values = jnp.where(jnp.arange(values.size) == top, -jnp.inf, values)
    return jnp.stack(chosen)
