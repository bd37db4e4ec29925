"""How many draws of a logistic model are enough, known in advance, and the estimates from them.

The variance `mu'(x^T theta)` of an arm's reward is not known, but a lower bound f_x is: with
`F(n) = sum of n_x f_x x x^T <= H`, bounds on norms in `F^-1` are bounds on norms in `H^-1`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Num

from ...types import Scalar
from ..design import directions
from ..design.xy.by_name import Solve
from ..estimate import irls, least_squares
from ..estimate.links import LINKS
from ..linalg import spd
from . import radius

ROUNDS = 20  # iterations for the number of draws
MOST = 2.0**50  # draws, where more would be needed or no number is enough


class SizedDesign(NamedTuple):
    """A design, and how many draws of it."""

    weights: Float[Array, " K"]
    draws: Float[Array, ""]  # not rounded up
    converged: Bool[Array, ""]  # of the design


class Learnt(NamedTuple):
    """The estimate from a batch of draws that was fixed in advance."""

    theta: Float[Array, " d"]  # maximum likelihood, 0 where there is no finite estimate
    inverse: Float[Array, "d d"]  # of F
    width: Float[Array, ""]  # `|v^T (theta - truth)| <= width ||v||_{F^-1}`, or infinite
    floors: Float[Array, " K"]  # not below those before
    fitted: Bool[Array, ""]


def least_variances(
    arms: Float[Array, "K d"], theta: Float[Array, " d"], distances: Float[Array, " K"]
) -> Float[Array, " K"]:
    """`min of mu'(x^T theta')` where `|x^T (theta' - theta)| <= distance`, for each arm."""
    return LINKS["logistic"].variance(jnp.abs(arms @ theta) + distances)


def information(
    arms: Float[Array, "K d"], floors: Float[Array, " K"], counts: Num[Array, " K"]
) -> spd.Inverse:
    """The inverse of F."""
    return spd.inverse(least_squares.gram(arms, counts * floors))


def sized_design(
    solve: Solve,
    arms: Float[Array, "K d"],
    floors: Float[Array, " K"],
    targets: Float[Array, "M d"],
    alive: Bool[Array, " M"],
    *,
    level: Float[Array, ""],
    accuracy: Float[Array, ""],
    loss: Scalar,
) -> SizedDesign:
    """The fewest draws, or nearly, after which `C ||z - z'||_{F^-1} <= accuracy` for z, z' alive.

    They also bring `||x||_{F^-1}` to at most `radius.logistic_reach` for every arm, so that `C =
    radius.logistic`, at this `level`, is finite; the design is the best for the C at that reach.

    Args:
      solve: `Solver.among` of `design.xy.by_name`.
      accuracy: of the differences; infinite if they do not matter.
      loss: by how much rounding may multiply squared norms.
    """
    dim, pairs = arms.shape[1], directions.Pairs(targets)
    first, second = pairs.indices
    close = radius.logistic_reach(level, dim)
    scale = radius.logistic(level, dim, close) / accuracy
    vectors = jnp.concatenate([arms / close, scale * pairs.vectors])
    every = jnp.ones(arms.shape[0], bool)
    active = jnp.concatenate([every, alive[first] & alive[second] & (scale > 0)])
    found = solve(jnp.sqrt(floors)[:, None] * arms, vectors, active)
    inverse = information(arms, floors, found.weights)
    arm = spd.quadratic(arms, inverse.matrix).max()
    norms = jnp.where(active, spd.quadratic(vectors, inverse.matrix), 0.0)
    pair = norms[arms.shape[0] :].max(initial=0.0)
    least, at_most = loss * arm / close**2, loss * pair

    def shrunk(_, draws):
        """The number that C requires at the reach of so many draws; it falls as they grow."""
        reach = jnp.minimum(close, jnp.sqrt(loss * arm / draws))
        ratio = radius.logistic(level, dim, reach) / radius.logistic(level, dim, close)
        return jnp.maximum(least, ratio**2 * at_most)

    # The first iterate is enough, and so is every second one after it.
    draws = lax.fori_loop(0, ROUNDS, shrunk, jnp.maximum(least, at_most))
    few = inverse.positive & (draws < MOST)
    return SizedDesign(found.weights, jnp.where(few, draws, MOST), found.converged)


def learn(
    arms: Float[Array, "K d"],
    counts: Int[Array, " K"],
    sums: Float[Array, " K"],
    floors: Float[Array, " K"],
    *,
    level: Float[Array, ""],
) -> Learnt:
    """The estimate, and its width by `radius.logistic`; infinite where data are separable."""
    dim = arms.shape[1]
    counts, centre = counts.astype(arms.dtype), jnp.zeros(dim, arms.dtype)
    fit = irls.fit(arms, counts, sums, family="logistic", ridge=0.0, init=centre, tol=1e-9)
    fitted = fit.converged & irls.determined(arms, counts, fit.hessian)
    theta, known = jnp.where(fitted, fit.theta, 0.0), information(arms, floors, counts)
    norms = jnp.sqrt(spd.quadratic(arms, known.matrix))
    width = radius.logistic(level, dim, norms.max())
    width = jnp.where(fitted & known.positive, width, jnp.inf)
    higher = jnp.maximum(floors, least_variances(arms, theta, width * norms))
    return Learnt(theta, known.matrix, width, higher, fitted)
