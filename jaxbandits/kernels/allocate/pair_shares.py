"""The shares of draws that estimate the difference of two arms best, for all pairs of arms.

`min ||w||_1 subject to X^T w = x_i - x_j`: drawing arm a in the share `|w_a| / ||w||_1` makes
`||x_i - x_j||^2` in A^-1 least, namely `||w||_1^2` over the number of draws (Elfving, 1952).
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ...retracing import state
from ...types import Table
from ..linalg import scaling, spd
from ..tracing import traced_once

BLOCK = 128  # bases that are solved at once
MOST_BASES = 100_000
NEGLIGIBLE = 1e-9  # a weight below it counts as 0, and so does a difference of two optima
CERTIFIED, FINEST = 1e-8, 1e-10  # tolerances: of a certificate, and the least that HiGHS accepts
SAME = 1e-13  # distance below which two arms are equal, where the whole table has size 1
TINY: float = np.finfo(float).tiny


@runtime_checkable
class HasShape(Protocol):
    """An array, or the description of one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        ...


def num_bases(arms: HasShape) -> int:
    """How many sets of arms `enumerated` tries."""
    num_arms, dim = arms.shape
    return math.comb(num_arms, dim)


def completed(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The option `ratios` for a constructor that needs the table and was not given it."""
    needed = values["selection"] == "ratio" and values["ratios"] is None
    if not needed:
        return {}
    arms = np.ascontiguousarray(values["arms"], float)
    return {"ratios": _remembered(state(), arms.tobytes(), arms.shape)}


@functools.lru_cache(maxsize=4)  # the cells of a sweep need the same table one after another
def _remembered(_state, data, shape):
    table = by_linear_programs(np.frombuffer(data).reshape(shape))
    table.setflags(write=False)
    return table


@traced_once
def enumerated(arms: Float[Array, "K d"]) -> Float[Array, "K K K"]:
    """`shares[i, j, a]` by trying every basis: an optimum is attained at one.

    Of equal optima the first in lexicographic order is taken, but `w = e_i - e_j` before all
    others. Where the arms do not span there is no basis, and this w, which need not be best, is
    taken for all pairs.
    """
    num_arms, dim = arms.shape
    first, second = np.triu_indices(num_arms, 1)
    wanted = arms[first] - arms[second]
    every = np.arange(first.size)
    own = np.zeros((first.size, num_arms))
    own[every, first], own[every, second] = 1.0, -1.0

    def solve(basis):
        """Weights `[d, P]` on a basis and their norms, infinite where it is no basis."""
        rows = arms[basis]
        found = spd.inverse(rows @ rows.T)
        apply = found.matrix @ rows
        weights = apply @ wanted.T
        for _ in range(2):  # the inverse is of a squared matrix
            weights = weights + apply @ (wanted.T - rows.T @ weights)
        missed = jnp.abs(wanted.T - rows.T @ weights).max()
        good = found.positive & (missed <= NEGLIGIBLE * jnp.abs(wanted).max())
        return weights, jnp.where(good, jnp.abs(weights).sum(0), jnp.inf)

    def visit(carry, bases):
        best, norms = carry
        weights, found = jax.vmap(solve)(bases)
        which = jnp.argmax(found <= found.min(0) + NEGLIGIBLE, axis=0)
        there, found = weights[which, :, every], found[which, every]
        better = found < norms - NEGLIGIBLE
        placed = jnp.zeros_like(best).at[every[:, None], bases[which]].set(there)
        best = jnp.where(better[:, None], placed, best)
        return (best, jnp.where(better, found, norms)), None

    blocks = _bases(num_arms, dim)
    begin = (jnp.asarray(own, arms.dtype), jnp.full(first.size, 2.0, arms.dtype))
    (weights, _), _ = lax.scan(visit, begin, blocks)
    shares = _rounded(jnp.abs(weights) / jnp.abs(weights).sum(1, keepdims=True))
    blank = jnp.zeros((num_arms,) * 3, arms.dtype)
    return blank.at[first, second].set(shares) + blank.at[second, first].set(shares)


def _rounded(shares):
    """Shares rounded to seven digits, so that shares equal up to rounding errors tie."""
    return (shares * (shares >= NEGLIGIBLE)).astype(np.float32).astype(shares.dtype)


def _bases(num_arms, dim):
    """Sets of d arms in lexicographic order, in blocks, `int [blocks, n, d]`; the last repeats."""
    bases = np.array(list(itertools.combinations(range(num_arms), dim)), int).reshape(-1, dim)
    block = min(BLOCK, len(bases))
    if not block:  # fewer arms than dimensions
        return np.zeros((0, 1, dim), int)
    missing = -len(bases) % block
    return np.concatenate([bases, bases[-1:].repeat(missing, 0)]).reshape(-1, block, dim)


def by_linear_programs(arms: Float[Table, "K d"]) -> Float[np.ndarray, "K K K"]:
    """The same on the host, for any number of arms; it takes a millisecond for each pair.

    Each optimum is a vertex found by HiGHS' dual simplex, solved anew on its support and
    certified by its dual solution.

    Raises:
      RuntimeError: a solution that its dual does not certify to 1e-8.
    """
    num_arms = len(arms)
    pairs = list(itertools.combinations(range(num_arms), 2))
    shares = np.zeros((num_arms,) * 3)
    for (i, j), weights in zip(pairs, optima(arms, pairs), strict=True):
        shares[i, j] = shares[j, i] = _rounded(weights / max(weights.sum(), TINY))
    return shares


def optima(
    arms: Float[Table, "K d"], pairs: Iterable[tuple[int, int]]
) -> Iterator[Float[np.ndarray, " K"]]:
    """`|w| [K]` of each pair (i, j) in turn, not their shares; solved lazily.

    Of equal optima it is the vertex that `by_linear_programs` takes. Independent arms leave one
    solution, `e_i - e_j`, and need no program.

    Raises:
      RuntimeError: a solution that its dual does not certify to 1e-8.
    """
    arms = np.asarray(arms, float)
    points, _ = _well_scaled(arms)
    independent = points.shape[1] == len(arms)
    for i, j in pairs:
        if independent:
            weights = np.zeros(len(arms))
            weights[[i, j]] = 1.0
            yield weights
        else:
            yield np.abs(_least_norm(points, points[i] - points[j]))


def norms(arms: Float[Table, "K d"], directions: Float[Table, "n d"]) -> Iterator[float]:
    """The least `||w||_1` with `X^T w = y` for each direction y in turn; solved lazily.

    It is one over the gauge norm of y, `max {c: c y in conv(X, -X)}`, and infinite where y leaves
    the span of the arms by more than 1e-9 of its length.

    Raises:
      RuntimeError: a solution that its dual does not certify to 1e-8.
    """
    points, coordinates = _well_scaled(np.asarray(arms, float))
    for direction in np.asarray(directions, float):
        wanted, inside = coordinates(direction)
        yield float(np.abs(_least_norm(points, wanted)).sum()) if inside else math.inf


def _well_scaled(arms):
    """The arms in coordinates of their span in which no direction is longer than another.

    Returns:
      Also a function that gives the coordinates of a direction, and whether it is in the span.
    """
    scales = scaling.host_scales(arms)
    left, sizes, right = np.linalg.svd(arms / scales, full_matrices=False)
    kept = sizes > max(arms.shape) * np.finfo(float).eps * sizes.max()
    basis = right[kept]

    def coordinates(direction):
        scaled = direction / scales
        along = basis @ scaled
        missed = np.linalg.norm(scaled - along @ basis)
        return along / sizes[kept], bool(missed <= NEGLIGIBLE * np.linalg.norm(scaled))

    return left[:, kept], coordinates


def _least_norm(points, wanted):
    """The w of least `||w||_1` with `points^T w = wanted`, certified."""
    from scipy import optimize  # only here, as importing it takes as long as the package

    num_arms, length = len(points), np.linalg.norm(wanted)
    if length < SAME:  # two equal arms: no draw can distinguish them
        return np.zeros(num_arms)
    wanted = wanted / length
    found = optimize.linprog(
        np.ones(2 * num_arms),
        A_eq=np.hstack([points.T, -points.T]),
        b_eq=wanted,
        method="highs-ds",
        options={"primal_feasibility_tolerance": FINEST, "dual_feasibility_tolerance": FINEST},
    )
    weights = found.x[:num_arms] - found.x[num_arms:]
    support = np.abs(weights) > NEGLIGIBLE * np.abs(weights).max()
    polished = np.zeros(num_arms)
    polished[support], *_ = np.linalg.lstsq(points[support].T, wanted)
    norm, dual = np.abs(polished).sum(), found.eqlin.marginals
    exact = np.abs(points.T @ polished - wanted).max() <= CERTIFIED
    feasible = np.abs(points @ dual).max() <= 1.0 + CERTIFIED
    if not (exact and feasible and dual @ wanted >= norm * (1.0 - CERTIFIED)):
        raise RuntimeError("a linear program of the ratios was not solved to its certificate")
    return polished * length
