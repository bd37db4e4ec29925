"""The fit of one stage: linear predictors of all arms from counts and sums of rewards."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from ..linalg import spd
from ..linalg import subspace as subspaces
from ..tracing import traced_once
from . import irls, least_squares

SUBSPACES = ("projection", "pseudo_inverse")


class Fit(NamedTuple):
    """Predictors, and what is known of them."""

    predictors: Float[Array, " K"]  # x_k^T theta
    valid: Bool[Array, ""]  # the draws span the arms alive
    converged: Bool[Array, ""]  # maximum likelihood met its tolerance


@traced_once
def fit(
    arms: Float[Array, "K d"],
    counts: Int[Array, " K"],
    sums: Float[Array, " K"],
    alive: Bool[Array, " K"],
    *,
    family: str = "gaussian",
    ridge: Scalar = 0.0,
    subspace: str = "projection",
) -> Fit:
    """Least squares, or maximum likelihood of the family with a ridge.

    Least squares by "projection" solves in as many coordinates as the draws span, and computes the
    theta of least length only where an arm alive has no draw; "pseudo_inverse" always does, by the
    Moore-Penrose inverse. All predictors are the same up to rounding.
    """
    theta, valid = _least_squares(arms, counts, sums, alive, subspace)
    if family == "gaussian":
        return Fit(arms @ theta, valid, jnp.array(True))
    zeros = jnp.zeros(arms.shape[1], arms.dtype)
    weights = counts.astype(arms.dtype)
    found = irls.fit(arms, weights, sums, family=family, ridge=ridge, init=zeros)
    return Fit(arms @ found.theta, valid, found.converged)


def _least_squares(arms, counts, sums, alive, subspace):
    matrix = least_squares.gram(arms, counts)
    drawn = spd.partial_inverse(matrix, subspaces.negligible(arms))
    moment = arms.T @ sums
    if subspace == "pseudo_inverse":
        space = subspaces.of_gram(matrix, drawn)
        theta = subspaces.pseudo_inverse_on(space, matrix) @ moment
        return theta, (subspaces.within(space, arms) | ~alive).all()
    theta = drawn.matrix @ moment

    def some_missed():
        space = subspaces.of_gram(matrix, drawn)
        return subspaces.project(space, theta), (subspaces.within(space, arms) | ~alive).all()

    missed = (alive & (counts == 0)).any()
    return lax.cond(missed, some_missed, lambda: (theta, jnp.array(True)))
