"""Greedy allocations, of arms or their differences: each draw goes where it helps most.

Which arms are drawn depends on the arms and the directions alone, never on rewards.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar
from .. import selection
from ..estimate import least_squares
from ..linalg import spd
from ..tracing import traced_once
from . import directions

TRUSTED = 1000  # draws after which rank-one changes are replaced by a new inverse
FEW = 8  # active pairs; so few are a smaller problem of their own
LISTED = 25  # points; of more, a draw looks only at the pairs that can matter
FEWEST = 4  # arms; for fewer, a loop of their own is not worth its compilation
PRIOR = 1e-3  # of the mean squared length of an arm, where columns are of one size
TIED = 1e-12  # scores are equal within this part of themselves: rounding would decide
ALIKE = 1e-9  # the same from a prior on, where rounding errors of the first norms remain


class _Listed(NamedTuple):
    """Directions one after the other."""

    cross: Float[Array, "K P"]  # x_k^T A^-1 y_p
    norms: Float[Array, " P"]  # ||y_p||^2 in A^-1, -inf where not active
    inverse: Float[Array, "d d"]  # A^-1
    variances: Float[Array, " K"]  # ||x_k||^2 in A^-1

    def scores(self, gains):
        """For each arm the largest norm that one draw of it leaves."""
        return _scores(self.norms, self.cross, gains)

    def drawn(self, arms, arm, gain):
        """After a draw."""
        column, moved = selection.at(self.cross, arm), self.inverse @ selection.at(arms, arm)
        row = arms @ moved
        return _Listed(
            self.cross - (gain * row)[:, None] * column[None, :],
            self.norms - gain * column**2,
            self.inverse - (gain * moved)[:, None] * moved[None, :],
            self.variances - gain * row**2,
        )


class _PairsOfArms(NamedTuple):
    """The differences of arms."""

    among: Float[Array, "K K"]  # x_j^T A^-1 x_k
    norms: Float[Array, "K K"]  # ||x_i - x_j||^2 in A^-1 for i < j, -inf where not active

    @property
    def variances(self):
        """`||x_k||^2` in A^-1."""
        return jnp.diagonal(self.among)

    def scores(self, gains):
        """For each arm the largest norm that one draw of it leaves."""
        return _scores_of_pairs(self.norms, self.among, gains)

    def drawn(self, arms, arm, gain):
        """After a draw."""
        row = selection.at(self.among, arm)
        among = self.among - (gain * row)[:, None] * row[None, :]
        return _PairsOfArms(among, self.norms - gain * (row[:, None] - row[None, :]) ** 2)


class _Drawn(NamedTuple):
    table: _Listed | _PairsOfArms
    counts: Int[Array, " K"]
    draws: Int[Array, ""]  # the sum of counts
    widest: Float[Array, ""]  # max over active p of norms


def min_max(
    arms: Float[Array, "K d"],
    alive: Bool[Array, " K"],
    begun: Int[Array, " K"],
    limit: Callable[[Array], Array],
    *,
    v0: Scalar = 0.0,
    most: Scalar,
) -> Int[Array, " K"]:
    """Counts `[K]` after the draws that bring `max ||x_i - x_j||^2_{A^-1}` down, i and j alive.

    From `A = v0 I + X^T diag(begun) X` on, each draw goes to the arm that makes the maximum
    smallest (Soare et al., 2014): for arm k it is
    `max over y of ||y||^2_{A^-1} - (x_k^T A^-1 y)^2 / (1 + ||x_k||^2_{A^-1})`. Draws end once the
    maximum is at most `limit(draws)`, after at least one, and at `most` in any case; `begun`
    counts among them.

    Where two pairs without a common arm are the widest, no single draw helps, and all arms tie.
    A fixed order of the arms would then draw one arm forever; each draw therefore has an order of
    its own, `selection.scattered`, which is the same in every call.

    Args:
      arms: `[K, d]`; those of `begun` span where v0 is 0.
      alive: `[K]` the arms whose differences count; any arm may be drawn.
      begun: `[K]` draws to begin with.
      limit: `draws -> float []`.
      v0: ridge.
      most: draws after which it ends in any case.
    """
    pairs = directions.Pairs(arms)
    first, second = pairs.indices
    vectors, active = pairs.vectors, alive[first] & alive[second]

    def counts(table, some):
        return _counts(arms, table, some.any(), begun, limit, v0, most)

    if pairs.number <= FEW:
        return counts(_listed(vectors, active), active)
    # The longest allocations are those for the last few arms.
    few = active.sum() <= FEW
    some, found = directions.compact(vectors, active.astype(arms.dtype), FEW)
    small, many = few & (found > 0), ~few & active
    every = _listed(vectors, many) if arms.shape[0] <= LISTED else _of_arms(~few & alive)
    return lax.cond(
        few,
        lambda: counts(_listed(some, small), small),
        lambda: counts(every, many),
    )


def _listed(vectors, active):
    """Active directions before a draw, of the arms and A^-1."""

    def table(arms, inverse):
        norms = jnp.where(active, spd.quadratic(vectors, inverse), -jnp.inf)
        return _Listed(arms @ inverse @ vectors.T, norms, inverse, spd.quadratic(arms, inverse))

    return table


def _of_arms(alive):
    """Differences of arms alive before a draw, of the arms and A^-1."""
    active = jnp.triu(alive[:, None] & alive[None, :], 1)

    def table(arms, inverse):
        norms = jnp.where(active, directions.sqdist(arms, inverse), -jnp.inf)
        return _PairsOfArms(arms @ inverse @ arms.T, norms)

    return table


def _counts(arms, table, some, begun, limit, v0, most):
    """The counts for directions of which there are `some`."""
    dim = arms.shape[1]

    def evaluated(counts):
        matrix = least_squares.gram(arms, counts) + v0 * jnp.eye(dim, dtype=arms.dtype)
        now = table(arms, spd.inverse(matrix).matrix)
        return _Drawn(now, counts, counts.sum(), now.norms.max())

    def unfinished(now):
        wanted = (now.widest > limit(now.draws)) | (now.draws <= begun.sum())
        return wanted & (now.draws < most) & some

    def draw(now):
        gains = 1.0 / (1.0 + now.table.variances)
        scores = now.table.scores(gains)
        arm = _least(scores, now.draws)
        return _Drawn(
            now.table.drawn(arms, arm, selection.at(gains, arm)),
            counts=now.counts + (jnp.arange(now.counts.size) == arm),
            draws=now.draws + 1,
            widest=selection.at(scores, arm),
        )

    def afresh(now):
        last = now.draws + TRUSTED
        going = lambda now: unfinished(now) & (now.draws < last)  # noqa: E731
        return evaluated(lax.while_loop(going, draw, now).counts)

    return lax.while_loop(unfinished, afresh, evaluated(begun)).counts


def min_max_one(
    variances: Float[Array, " K"],
    cross: Float[Array, "K M"],
    sqdist: Float[Array, "M M"],
    draws: Int[Array, ""],
) -> Int[Array, ""]:
    """The arm of the one draw after `draws` that makes `max ||z_i - z_j||^2_{A^-1}` smallest.

    Args:
      variances: `x_k^T A^-1 x_k`.
      cross: `x_k^T A^-1 z_i`.
      sqdist: `||z_i - z_j||^2` in A^-1.
    """
    gains = 1.0 / (1.0 + variances)
    if sqdist.shape[0] > LISTED:
        upper = jnp.where(np.triu(np.ones(sqdist.shape, bool), 1), sqdist, -jnp.inf)
        return _least(_scores_of_pairs(upper, cross, gains), draws)
    first, second = np.triu_indices(sqdist.shape[0], 1)
    columns = cross.T
    differences = (columns[first] - columns[second]).T
    return _least(_scores(sqdist[first, second], differences, gains), draws)


def _scores(norms, cross, gains):
    """For each arm the maximum that one draw of it leaves."""
    return (norms[None, :] - cross**2 * gains[:, None]).max(1)


def _scores_of_pairs(norms, cross, gains):
    """`_scores` of differences, by norms `[M, M]` above the diagonal and `cross` of points.

    No draw makes a norm larger. So once a draw of any arm leaves a norm as large as those of all
    pairs that have not been looked at, these change no score. Few points have such wide pairs.
    """
    columns = cross.T

    def unfinished(carry):
        left, scores = carry
        return left.max() > scores.min()

    def visit(carry):
        left, scores = carry
        point = jnp.argmax(left)
        changes = selection.at(columns, point)[:, None] - cross
        own = (selection.at(norms, point)[None, :] - changes**2 * gains[:, None]).max(1)
        return left.at[point].set(-jnp.inf), jnp.maximum(scores, own)

    begin = norms.max(1), jnp.full(cross.shape[0], -jnp.inf, cross.dtype)
    return lax.while_loop(unfinished, visit, begin)[1]


def _least(scores, draws):
    """The arm of the smallest score; ties are broken by this draw's own order."""
    tied = scores <= (1.0 + selection.at_least(TIED, scores)) * scores.min()
    return jnp.argmax(jnp.where(tied, selection.scattered(draws, scores.size), -1))


class _Allocated(NamedTuple):
    among: Float[Array, "n n"]  # x_j^T A^-1 x_k
    counts: Int[Array, " n"]
    draws: Int[Array, ""]


def g_allocation(
    arms: Float[Array, "K d"],
    active: Bool[Array, " K"],
    total: Int[Array, ""],
    *,
    v0: Float[Array, ""] | float | None = None,
) -> Int[Array, " K"]:
    """Counts `[K]` of `total` draws that bring `max over active k of ||x_k||^2_{A^-1}` down.

    From `A = diag(v)` on, each draw goes to the active arm j that makes
    `max_k ||x_k||^2_{A^-1} - (x_j^T A^-1 x_k)^2 / (1 + ||x_j||^2_{A^-1})` smallest (Soare et al.,
    2014). Where several arms have the largest norm, drawing any one of them ties: of the arms that
    tie, one with the largest norm is drawn, and among these the draw's own order decides, see
    `selection.scattered`. Every entry of v is v0 if it is given; else it is 1e-3 d times the mean
    square of its column over the active arms, so that the units of a column change nothing.

    A draw costs `O(n^2)` for n arms; where at most half, an eighth, ... of all are active, the
    loop is over so many.
    """
    (num_arms, dim), number = arms.shape, active.sum()
    if v0 is None:
        squares = jnp.where(active[:, None], arms**2, 0.0).sum(0) / jnp.maximum(number, 1)
        prior = jnp.where(squares > 0, PRIOR * dim * squares, 1.0)
    else:
        prior = jnp.full(dim, v0, arms.dtype)
    sizes = [num_arms]
    while sizes[-1] > FEWEST:
        sizes.append(max(FEWEST, -(-sizes[-1] // (2 if len(sizes) == 1 else 4))))
    counts = jnp.zeros(num_arms, int)
    for size, less in zip(sizes, [*sizes[1:], 0], strict=True):
        # Loops of the other sizes make no draws; of a branch a batch would compute both sides.
        here = jnp.where((less < number) & (number <= size), total, 0)
        indices = (jnp.cumsum(active)[None, :] <= jnp.arange(size)[:, None]).sum(1)
        indices = jnp.arange(num_arms) if size == num_arms else indices
        some = active.at[indices].get(mode="fill", fill_value=False)
        found = _g_counts(arms.at[indices].get(mode="clip"), some, indices, here, prior)
        counts = counts.at[indices].add(found, mode="drop")
    return counts


@traced_once
def _g_counts(arms, active, indices, total, prior):
    """Counts for some of the arms, whose `indices` decide ties."""

    def evaluated(now):
        inverse = spd.inverse(least_squares.gram(arms, now.counts) + jnp.diag(prior)).matrix
        return now._replace(among=arms @ inverse @ arms.T)

    def draw(now):
        variances = jnp.diagonal(now.among)
        gains = 1.0 / (1.0 + variances)
        scores = _scores(jnp.where(active, variances, -jnp.inf), now.among, gains)
        scores = jnp.where(active, scores, jnp.inf)
        alike = selection.at_least(ALIKE, scores)
        tied = scores <= (1.0 + alike) * scores.min()
        widest = jnp.where(tied, variances, -jnp.inf)
        tied = tied & (widest >= (1.0 - alike) * widest.max())
        arm = jnp.argmax(jnp.where(tied, selection.scattered(now.draws, indices), -1))
        row = selection.at(now.among, arm)
        return _Allocated(
            among=now.among - (selection.at(gains, arm) * row)[:, None] * row[None, :],
            counts=now.counts + (jnp.arange(active.size) == arm),
            draws=now.draws + 1,
        )

    def afresh(now):
        last = jnp.minimum(total, now.draws + TRUSTED)
        return lax.while_loop(lambda now: now.draws < last, draw, evaluated(now))

    num_arms = active.size
    blank = jnp.zeros((num_arms, num_arms), arms.dtype)
    begin = _Allocated(blank, jnp.zeros(num_arms, int), jnp.zeros((), int))
    return lax.while_loop(lambda now: now.draws < total, afresh, begin).counts
