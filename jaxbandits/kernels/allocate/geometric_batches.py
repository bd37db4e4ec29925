"""Batches of growing size from one design, and the estimate from all draws so far.

Batch t holds `ceil(growth^t)` draws; with `powers="odd"` only odd t occur.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ...types import Scalar
from .. import sampling
from ..estimate import least_squares
from ..linalg import spd, subspace
from . import efficient_rounding

POWERS = ("all", "odd")
ALLOCATIONS = ("iid", "rounded")
SINGULAR = ("wait", "ignore")
LARGEST = 2.0**40  # draws of a batch


class Totals(NamedTuple):
    """All draws of a run."""

    counts: Int[Array, " K"]
    sums: Float[Array, " K"]  # of their rewards
    batches: Int[Array, ""]


class State(NamedTuple):
    """The state of a run of such batches."""

    totals: Totals
    weights: Float[Array, " K"]  # the design
    done: Bool[Array, ""]
    answer: Int[Array, ""]
    unsolved: Int[Array, ""]  # 1 where the design missed its tolerance
    unspanned: Int[Array, ""]  # 1 as long as a direction has not been measured

    def report(self) -> dict[str, Array]:
        """The diagnostics that results keep."""
        return {"unsolved": self.unsolved, "unspanned": self.unspanned}


def begin(arms: Float[Array, "K d"], weights: Float[Array, " K"], solved: Bool[Array, ""]) -> State:
    """The state before the first batch; `solved` says whether the design met its tolerance."""
    num_arms, zero = arms.shape[0], jnp.zeros((), int)
    totals = Totals(jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype), zero)
    return State(totals, weights, jnp.array(False), zero, zero + ~solved, zero + 1)


def added(totals: Totals, counts: Int[Array, " K"], sums: Float[Array, " K"]) -> Totals:
    """The totals after one more batch."""
    return Totals(totals.counts + counts, totals.sums + sums, totals.batches + 1)


def power(batches: Int[Array, ""], powers: str) -> Int[Array, ""]:
    """The power t of a batch, given by its number from 1 on."""
    return 2 * batches - 1 if powers == "odd" else batches


def batch(
    key: Key[Array, ""], state: State, growth: Scalar, powers: str, allocation: str
) -> Int[Array, " K"]:
    """Counts of the next batch: independent draws from the design, or a rounding of all draws."""
    totals, weights = state.totals, state.weights
    total = jnp.ceil(growth ** power(totals.batches + 1, powers).astype(float))
    total = jnp.minimum(total, min(LARGEST, sampling.exact(weights.dtype))).astype(int)
    if allocation == "iid":
        return sampling.multinomial(key, total, weights)
    return efficient_rounding.efficient(weights, totals.counts.sum() + total) - totals.counts


class Estimate(NamedTuple):
    """Least squares on all draws."""

    inverse: Float[Array, "d d"]  # of `X^T diag(n) X`
    theta: Float[Array, " d"]
    settled: Bool[Array, ""]  # whether every direction has been measured or counts as known


def estimate(arms: Float[Array, "K d"], totals: Totals, singular: str) -> Estimate:
    """With `singular="ignore"` a direction that no draw has measured counts as known to be 0."""
    matrix = least_squares.gram(arms, totals.counts)
    moment = arms.T @ totals.sums
    if singular == "ignore":
        inverse = subspace.pseudo_inverse(matrix, subspace.negligible(arms))
        return Estimate(inverse, inverse @ moment, jnp.array(True))
    found = spd.partial_inverse(matrix, subspace.negligible(arms))
    return Estimate(found.matrix, found.matrix @ moment, found.kept.all())
