"""Logistic regression where every observation has features of its own, in a table that fills up.

Only the rows that are filled are read, in blocks, so that a fit to t observations costs `O(t d^2)`.
Made for one lane at a time: the number of blocks depends on the number of observations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from ..linalg import spd

BLOCK = 256  # rows
STEPS = (1.0, 0.5, 0.25, 0.125)  # of a Newton step, of which the best is taken
NEAR = 0.1  # decrement below which the whole step is taken


class Root(NamedTuple):
    """A square root S of a matrix `M = S S^T`, not triangular, and its inverse."""

    matrix: Float[Array, "d d"]
    inverse: Float[Array, "d d"]


class Fit(NamedTuple):
    """The maximum of a likelihood, and what its perturbation needs."""

    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]  # of H, the Hessian with the ridge, a short step before theta
    root: Root  # of G + ridge I, G the sum of x x^T
    converged: Bool[Array, ""]  # the last time Newton's method ran


class Model(NamedTuple):
    """All observations and a fit to them."""

    rows: Float[Array, "C d"]  # of which `number` are filled
    rewards: Float[Array, " C"]
    number: Int[Array, ""]  # more than C where some were not kept
    fit: Fit


class _Search(NamedTuple):
    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]
    decrement: Float[Array, ""]  # before the last step
    steps: Int[Array, ""]


def capacity_of(number: int) -> int:
    """Rows of a table for so many observations: whole blocks."""
    return -(-number // BLOCK) * BLOCK


def without_data(capacity: int, dim: int, ridge: Scalar, dtype: DTypeLike) -> Model:
    """No observations; rows will be of this dtype, everything else is in double precision."""
    unit, scale = jnp.eye(dim), jnp.sqrt(ridge)
    return Model(
        rows=jnp.zeros((capacity, dim), dtype),
        rewards=jnp.zeros(capacity),
        number=jnp.zeros((), int),
        fit=Fit(
            theta=jnp.zeros(dim),
            inverse=unit / ridge,
            root=Root(unit * scale, unit / scale),
            converged=jnp.array(True),
        ),
    )


def noted(model: Model, x: Float[Array, " d"], reward: Scalar) -> Model:
    """One more observation in the table, unless that is full; the fit does not change."""
    at = model.number
    rows = model.rows.at[at].set(x.astype(model.rows.dtype), mode="drop")
    rewards = model.rewards.at[at].set(reward, mode="drop")
    return model._replace(rows=rows, rewards=rewards, number=at + 1)


def sampled(fit: Fit, normal: Float[Array, " d"], a: Scalar) -> Float[Array, " d"]:
    """One Newton step from theta for a perturbed sum of rewards.

    With `xi ~ N(0, a^2 (G + ridge I))` added to the sum of `y x` it leads to `theta + H^-1 xi`.
    """
    return fit.theta + a * (fit.inverse @ (fit.root.matrix @ normal))


def blocks_of(number: Int[Array, ""]) -> Int[Array, ""]:
    """How many blocks hold so many rows."""
    return (number + BLOCK - 1) // BLOCK


def _over_blocks(model, one, begin):
    """`begin` plus the sum of `one(rows, rewards, which of them count)` over the filled blocks."""
    filled = jnp.minimum(model.number, model.rewards.size)

    def add(k, total):
        rows, rewards = (
            lax.dynamic_slice_in_dim(x, k * BLOCK, BLOCK) for x in (model.rows, model.rewards)
        )
        known = k * BLOCK + jnp.arange(BLOCK) < filled
        return jax.tree.map(jnp.add, total, one(rows, rewards, known))

    return lax.fori_loop(0, blocks_of(filled), add, begin)


def rooted(model: Model, ridge: Scalar) -> Fit:
    """The fit with its root computed from all observations in the table."""

    def one(rows, rewards, known):
        rows = jnp.where(known[:, None], rows, 0.0).astype(float)
        return rows.T @ rows

    root = _root_of(_over_blocks(model, one, ridge * jnp.eye(model.rows.shape[1])))
    return model.fit._replace(root=root)


def _root_of(matrix):
    """The triangular `Root` of a matrix; NaN unless it is positive definite.

    With matrices as large as here and one lane at a time, to factorise, invert the factor and
    multiply takes a third of the time of `spd.inverse`.
    """
    factor = spd.cholesky(matrix)
    return Root(factor, spd.forward_substitute(factor, jnp.eye(len(matrix), dtype=matrix.dtype)))


def _transposed(matrix):
    """The transposed matrix, as an array of its own.

    Where a product contains a transposition, XLA writes loops for it here, which take up to ten
    times as long as the product of two arrays.
    """
    return lax.optimization_barrier(matrix.T)


def grown(root: Root, x: Float[Array, " d"]) -> Root:
    """The root once `x x^T` is added: `S + b x w^T` with `w = S^-1 x`.

    `I + w w^T` has the root `I + b w w^T` for `b = 1 / (1 + sqrt(1 + w^T w))`.
    """
    w = root.inverse @ x
    square = w @ w
    b = 1.0 / (1.0 + jnp.sqrt(1.0 + square))
    matrix = root.matrix + b * x[:, None] * w[None, :]
    inverse = root.inverse - (b / (1.0 + b * square)) * w[:, None] * (w @ root.inverse)[None, :]
    return Root(matrix, inverse)


def learnt(fit: Fit, x: Float[Array, " d"], reward: Scalar) -> Fit:
    """A Newton step for the latest observation, as if theta had been the maximum before it."""
    mean = jax.nn.sigmoid(x @ fit.theta)
    inverse = spd.added(fit.inverse, x, mean * (1.0 - mean))
    theta = fit.theta + (reward - mean) * (inverse @ x)
    return fit._replace(theta=theta, inverse=inverse, root=grown(fit.root, x))


def refit(model: Model, *, ridge: Scalar, tol: float, most: int) -> Fit:
    """Newton's method on all observations in the table, from the present theta.

    The gradient is summed in double precision, the Hessian in that of the rows. The method has
    converged when a Newton decrement, `g^T H^-1 g / 2`, was at most `tol`; the step it belongs to
    is taken all the same. Rounding may leave the Hessian indefinite, where rows in single precision
    are large beside the ridge: the method then stops there and has not converged.

    Args:
      most: steps, at most.
    """
    unit = jnp.eye(model.rows.shape[1])

    def slopes(theta):
        def one(rows, rewards, known):
            means = jax.nn.sigmoid(rows.astype(float) @ theta)
            gradient = jnp.where(known, means - rewards, 0.0) @ rows.astype(float)
            weights = jnp.where(known, means * (1.0 - means), 0.0).astype(rows.dtype)
            return gradient, (_transposed(rows * weights[:, None]) @ rows).astype(float)

        return _over_blocks(model, one, (ridge * theta, ridge * unit))

    def step(search):
        gradient, hessian = slopes(search.theta)
        root = _root_of(hessian)
        positive = spd.all_finite(root.matrix)
        solved = _transposed(root.inverse) @ root.inverse
        # A decrement that is NaN ends the search, and no tolerance is above it.
        inverse = jnp.where(positive, solved, search.inverse)
        direction = jnp.where(positive, solved @ gradient, 0.0)
        decrement = jnp.where(positive, 0.5 * gradient @ direction, jnp.nan)
        length = lax.cond(
            decrement > NEAR,  # False for NaN
            lambda: _best_step(model, search.theta, direction, ridge),
            lambda: jnp.ones(()),
        )
        theta = search.theta - length * direction
        return _Search(theta, inverse, decrement, search.steps + 1)

    def going(search):
        return (search.decrement > tol) & (search.steps < most)

    begin = _Search(model.fit.theta, model.fit.inverse, jnp.array(jnp.inf), jnp.zeros((), int))
    found = lax.while_loop(going, step, begin)
    converged = found.decrement <= tol
    return Fit(found.theta, found.inverse, model.fit.root, converged)


def followed(
    model: Model,
    x: Float[Array, " d"],
    reward: Scalar,
    age: Int[Array, ""],
    *,
    ridge: Scalar,
    refresh: Scalar,
    tol: float,
    most: int,
) -> tuple[Fit, Bool[Array, ""]]:
    """The fit once the latest observation is in the table; whether a refit missed its tolerance.

    Args:
      age: observations since the features were trained. Below 0 there is no fit, at 0 it is a
        refit to the whole table. After that each observation is learnt by itself, with a refit
        every `refresh` observations as long as the table has room: a refit would forget those
        that were not kept.
    """
    ways = (
        lambda: model.fit,
        lambda: rooted(model, ridge),
        lambda: learnt(model.fit, x, reward),
    )
    model = model._replace(fit=lax.switch(jnp.sign(age) + 1, ways))
    room = model.number <= model.rewards.size
    due = (age == 0) | ((age > 0) & (age % refresh == 0) & room)
    fit = lax.cond(due, lambda: refit(model, ridge=ridge, tol=tol, most=most), lambda: model.fit)
    return fit, due & ~fit.converged


def _best_step(model, theta, direction, ridge):
    """Which of `STEPS` along a direction lowers the objective most."""
    lengths = jnp.array(STEPS)
    points = theta - lengths[:, None] * direction

    def one(rows, rewards, known):
        outputs = rows.astype(float) @ points.T
        losses = jax.nn.softplus(outputs) - rewards[:, None] * outputs
        return jnp.where(known[:, None], losses, 0.0).sum(0)

    values = _over_blocks(model, one, 0.5 * ridge * (points**2).sum(1))
    return lengths[jnp.argmin(values)]
