"""Rounding by regret minimisation: counts that measure every direction as the design does.

Allen-Zhu, Li, Singh and Wang (2017). The points y are the arms in coordinates where the design
times the number of draws is the identity, so that counts are as good as `lambda_min` of
`B = sum of n_i y_i y_i^T` is large: `||v||^2_{A(n)^-1} <= ||v||^2_{A(N w)^-1} / lambda_min(B)`
for every v. Draws are chosen against a regularised leader, who plays `Q = (c I + alpha B)^-2`
with the one c for which Q has trace 1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection
from ..estimate import least_squares
from ..linalg import spd, subspace
from ..tracing import traced_once
from . import efficient_rounding

FIRST = 4.0  # times the rank: draws chosen one by one at first
CAP = 100  # evaluations in a search for c


class Rounded(NamedTuple):
    """Counts and what is known of them."""

    counts: Int[Array, " K"]
    steps: Int[Array, ""]  # draws chosen one by one, or swaps
    certified: Bool[Array, ""]  # the promise was checked to hold


class _Action(NamedTuple):
    shift: Float[Array, ""]  # c
    root: Float[Array, "d d"]  # (c I + alpha B)^-1, zero outside of the kept coordinates
    trace: Float[Array, ""]  # of its square


@traced_once
def regret(
    arms: Float[Array, "K d"], weights: Float[Array, " K"], total: Int[Array, ""]
) -> Rounded:
    """Counts of sum `total` on the support with `lambda_min >= 1 - 3 sqrt(r / N)`, r the rank.

    The greedy form, in which arms repeat: draw the arm with the largest
    `y^T Q y / (1 + alpha y^T Q^{1/2} y)`. With `alpha = sqrt(2 N)` it reaches
    `N / (N + alpha sqrt(r)) - 2 sqrt(r) / alpha >= 1 - 2 sqrt(2 r / N)`.

    A draw costs an inverse or two, so only the last R of N are chosen in this way:
    `floor((1 - R / N) N w_i)` come first, and the rest of the shares, of matrix M, is rounded as a
    design of its own. Together `B >= (I - M) + (1 - 2 sqrt(2 r / R)) M`, hence
    `lambda_min >= 1 - 2 sqrt(2 r / R) lambda_max(M)`, and `lambda_max(M)` is about R / N where
    no weight is below 1 / N. R starts at 4 r and grows fourfold until the promise is checked to
    hold, at R = N at the latest.
    """
    space, points = subspace.whitened(arms, weights)
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)
    shares = total * (weights / weights.sum())
    promise = total - 3.0 * jnp.sqrt(rank * total)

    def attempt(state):
        wanted, _, last = state
        part = jnp.maximum(0.0, 1.0 - wanted / jnp.maximum(total, 1))
        first = jnp.floor(part * shares).astype(int)
        number = total - first.sum()
        counts = first + _greedy(points, space, shares - first, number)
        good = _reaches(points, space.kept, counts, promise) & spd.all_finite(shares)
        return 4.0 * wanted, wanted < total, Rounded(counts, last.steps + number, good)

    begin = Rounded(jnp.zeros(weights.size, int), jnp.zeros((), int), jnp.array(False))
    going = lambda state: state[1] & ~state[2].certified  # noqa: E731
    return lax.while_loop(going, attempt, (FIRST * rank, jnp.array(True), begin))[2]


def topped_up(
    arms: Float[Array, "K d"], weights: Float[Array, " K"], total: Int[Array, ""]
) -> Int[Array, " K"]:
    """`floor(N w_i)` draws of each arm; the rest, fewer than p, are chosen one by one.

    For p supported arms, by the greedy form from there on. Nothing is promised, but it is cheap,
    and where draws are few it is as good as choosing all of them in this way. Ties are broken by
    the draw's own order, `selection.scattered`.
    """
    space, points = subspace.whitened(arms, weights)
    rank = jnp.maximum(space.rank, 1).astype(arms.dtype)
    points = points / jnp.sqrt(jnp.maximum(total, 1))
    shares = total * (weights / weights.sum())
    # A share that should be whole must not be rounded down for some arms and not for others.
    first = jnp.floor(shares + efficient_rounding.nearly(shares)).astype(int)
    alpha = _alpha(rank, total)
    seen = alpha * least_squares.gram(points, first)
    action = _settle(seen, space.kept, _at(seen, space.kept, jnp.sqrt(rank)))
    begin = _Drawn(first, seen, action, first.sum())

    def choose(values, number):
        values = jnp.where(weights > 0, selection.coarse(values), -jnp.inf)
        return selection.argmax(values, selection.scattered(number, weights.size).astype(int))

    return _one_by_one(points, space.kept, choose, alpha, begin, total)


def swap(
    arms: Float[Array, "K d"], weights: Float[Array, " K"], counts: Int[Array, " K"]
) -> Rounded:
    """Counts of the same sum N with `lambda_min >= 1 - 3 e`, where `e = sqrt(5 r / N)`.

    The form with exchanges: until the promise holds, the member with the smallest
    `y^T Q y / (1 - 2 alpha y^T Q^{1/2} y)` gives way to the arm with the largest
    `y^T Q y / (1 + 2 alpha y^T Q^{1/2} y)`, where `alpha = sqrt(r) / e`; at most N / e times.
    """
    space, points = subspace.whitened(arms, weights)
    kept, rank = space.kept, jnp.maximum(space.rank, 1).astype(arms.dtype)
    total = jnp.maximum(counts.sum(), 1).astype(arms.dtype)
    points = points / jnp.sqrt(total)
    error = jnp.sqrt(5.0 * rank / total)
    alpha, index = jnp.sqrt(rank) / error, jnp.arange(weights.size)

    def exchange(state):
        last, action = state
        squares, halves = _norms(points, action.root)
        free = 1.0 - 2.0 * alpha * halves
        lost = squares / jnp.where(free > 0, free, 1.0)
        leaves = _first_best(-lost, (last.counts > 0) & (free > 0))
        enters = _first_best(squares / (1.0 + 2.0 * alpha * halves), weights > 0)
        moved = last.counts - (index == leaves) + (index == enters)
        seen = alpha * least_squares.gram(points, moved)
        above = action.shift + alpha * (selection.at(points, leaves) ** 2).sum()
        good = _reaches(points, kept, moved, 1.0 - 3.0 * error)
        return Rounded(moved, last.steps + 1, good), _settle(seen, kept, _at(seen, kept, above))

    seen = alpha * least_squares.gram(points, counts)
    first = _settle(seen, kept, _at(seen, kept, jnp.sqrt(rank)))
    good = _reaches(points, kept, counts, 1.0 - 3.0 * error)
    begin = Rounded(counts, jnp.zeros((), int), good)
    going = lambda state: ~state[0].certified & (state[0].steps * error < total)  # noqa: E731
    return lax.while_loop(going, exchange, (begin, first))[0]


def _reaches(points, kept, counts, promise):
    """Whether `sum of n_i y_i y_i^T` exceeds a multiple of the identity."""
    rest = least_squares.gram(points, counts) - promise * jnp.eye(kept.size, dtype=points.dtype)
    both = kept[:, None] & kept[None, :]
    found = spd.inverse(jnp.where(both, rest, jnp.eye(kept.size, dtype=points.dtype)))
    return found.positive | (promise <= 0)


class _Drawn(NamedTuple):
    counts: Int[Array, " K"]
    seen: Float[Array, "d d"]  # alpha B
    action: _Action
    number: Int[Array, ""]


def _greedy(points, space, shares, total):
    """The greedy form for fractional counts of sum `total`."""
    points = subspace.whitening(space, least_squares.gram(points, shares))(points)
    rank = jnp.maximum(space.rank, 1).astype(points.dtype)
    unit = jnp.diag(space.kept.astype(points.dtype))
    action = _Action(jnp.sqrt(rank), unit / jnp.sqrt(rank), jnp.ones_like(rank))
    counts, seen = jnp.zeros(shares.size, int), jnp.zeros_like(unit)
    begin = _Drawn(counts, seen, action, jnp.zeros((), int))
    choose = lambda values, number: _first_best(values, shares > 0)  # noqa: E731
    return _one_by_one(points, space.kept, choose, _alpha(rank, total), begin, total)


def _alpha(rank, total):
    """`sqrt(2 N)`, or more below 8 r draws, where nothing is promised for any alpha."""
    return jnp.maximum(4.0 * jnp.sqrt(rank), jnp.sqrt(2.0 * total))


def _one_by_one(points, kept, choose, alpha, begin, total):
    """Counts after `total` draws, each chosen against the leader's action."""

    def draw(now):
        squares, halves = _norms(points, now.action.root)
        arm = choose(squares / (1.0 + alpha * halves), now.number)
        y = selection.at(points, arm)
        seen = now.seen + alpha * y[:, None] * y[None, :]
        root = spd.added(now.action.root, y, alpha)
        action = _settle(seen, kept, _Action(now.action.shift, root, (root**2).sum()))
        counts = now.counts + (jnp.arange(now.counts.size) == arm)
        return _Drawn(counts, seen, action, now.number + 1)

    return lax.while_loop(lambda now: now.number < total, draw, begin).counts


def _norms(points, root):
    """`y^T Q y` and `y^T Q^{1/2} y` of all points."""
    half = points @ root
    return (half**2).sum(1), (half * points).sum(1)


def _first_best(values, allowed):
    return selection.best(jnp.where(allowed, selection.coarse(values), -jnp.inf)).arm


class _Search(NamedTuple):
    action: _Action  # where trace and matrix are known
    low: Float[Array, ""]  # c is above `low`
    high: Float[Array, ""]  # and at most `high`
    tries: Int[Array, ""]


def _at(seen, kept, shift):
    """The action at c = shift; its trace is infinite where the matrix is not positive."""
    unit = kept.astype(seen.dtype)
    found = spd.inverse(seen + jnp.diag(jnp.where(kept, shift, 1.0)))
    root = found.matrix * unit[:, None] * unit
    return _Action(shift, root, jnp.where(found.positive, (root**2).sum(), jnp.inf))


def _settle(seen, kept, above):
    """The action of trace 1, from one with a c that is not too small.

    In c, `trace^{-1/2}` is concave and increasing: from above Newton's step may go below the right
    c, or past the pole; from below it never passes c. The pole is less than `sqrt(r / trace)` away.
    """
    rank = jnp.maximum(kept.sum(), 1).astype(seen.dtype)
    exact = jnp.sqrt(jnp.finfo(seen.dtype).eps)

    def step(now):
        action, low, high, tries = now
        slope = (action.root * (action.root @ action.root)).sum()
        newton = action.shift + action.trace * (jnp.sqrt(action.trace) - 1.0) / slope
        inside = (low < newton) & (newton < high)
        found = _at(seen, kept, jnp.where(inside, newton, 0.5 * (low + high)))
        usable = found.trace < jnp.inf
        kept_or_found = [jnp.where(usable, a, b) for a, b in zip(found, action, strict=True)]
        below = found.trace > 1.0
        return _Search(
            _Action(*kept_or_found),
            jnp.where(below, found.shift, low),
            jnp.where(below, high, found.shift),
            tries + 1,
        )

    def unsettled(now):
        return (jnp.abs(now.action.trace - 1.0) > exact) & (now.tries < CAP)

    low = above.shift - jnp.sqrt(rank / above.trace)
    begin = _Search(above, low, above.shift, jnp.zeros((), int))
    return lax.while_loop(unsettled, step, begin).action
