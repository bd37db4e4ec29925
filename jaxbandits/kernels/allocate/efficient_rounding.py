"""From a design to whole numbers of draws."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ...types import Table, Whole
from .. import selection
from ..tracing import traced_once

# A share that agrees with a whole number to twelve digits, and to a millionth of a draw, counts as
# whole: weights that should be equal are the results of designs and differ by more than rounding.
DIGITS: float = 1e-12
MILLIONTH: float = 1e-6


@traced_once
def efficient(
    weights: Float[Array, " K"],
    total: Whole,
    order: Int[Array, " K"] | None = None,
) -> Int[Array, " K"]:
    """Efficient rounding (Pukelsheim, 2006, chapter 12): counts with sum exactly `total`.

    On the support, of size p, `n_i = ceil((N - p/2) w_i)`; then one draw at a time is added
    where `n_i / w_i` is smallest or taken where `(n_i - 1) / w_i` is largest, at most p times
    in all. With `N >= p` every supported arm is drawn and `n_i >= (1 - p/N) N w_i`; a smaller
    total leaves supported arms out. Draws are added in the order of `n_i / w_i`, then of index,
    and taken in the reverse order, so the counts never fall as N grows. An `order`, priorities of
    which the largest is first, may replace the index. Ratios tie where they agree to twelve digits,
    or with an order to six.
    """
    alike = selection.fine if order is None else selection.coarse
    order = jnp.arange(weights.size)[::-1] if order is None else order
    support = weights > 0
    size = support.sum()
    share = (total - size / 2) * weights
    # A share that should be whole must not be rounded up for some arms and not for others.
    start = jnp.ceil(share - nearly(share)).astype(int)
    counts = _balanced(jnp.where(support, jnp.maximum(start, 0), 0), weights, total)
    safe = jnp.where(support, weights, 1.0)

    def add(counts):
        ratio = alike(jnp.where(support, counts / safe, jnp.inf))
        return counts.at[selection.argmax(-ratio, order)].add(1)

    def take(counts):
        ratio = alike(jnp.where(support & (counts > 0), (counts - 1) / safe, -jnp.inf))
        return counts.at[selection.argmax(ratio, ratio.size - order)].add(-1)

    # The sum is within K of the total already; the cap only ends loops over weights that are NaN.
    def correct(step, unfinished, counts):
        going = lambda state: unfinished(state[0].sum()) & (state[1] <= weights.size)  # noqa: E731
        return lax.while_loop(going, lambda state: (step(state[0]), state[1] + 1), (counts, 0))[0]

    counts = correct(take, lambda drawn: drawn > total, counts)
    return correct(add, lambda drawn: drawn < total, counts)


def nearly(share: Float[Table, "*shape"]) -> Float[Array, "*shape"]:
    """How far a share may be from a whole number that it should be."""
    rounding = 4.0 * jnp.finfo(share.dtype).eps * share
    return jnp.maximum(rounding, jnp.minimum(DIGITS * share, MILLIONTH))


def _balanced(counts, weights, total):
    """Counts whose sum is within K of the total, also where single precision loses whole draws."""
    if weights.dtype == jnp.float64:
        return counts
    missing = total - counts.sum()
    far = (missing < -weights.size) | (missing >= weights.size)
    return counts + jnp.where(far, jnp.floor(missing * weights).astype(int), 0)


def largest_remainder(
    weights: Float[Array, " K"],
    total: Whole,
    order: Int[Array, " K"] | None = None,
) -> Int[Array, " K"]:
    """`floor(N w_i)`, then one more for the largest fractional parts.

    Parts that agree to six digits tie, to the lowest index, or to the largest `order`.
    """
    order = jnp.arange(weights.size)[::-1] if order is None else order
    share = total * weights
    counts = jnp.floor(share + nearly(share)).astype(int)
    counts = _balanced(counts, weights, total)
    parts = selection.coarse(jnp.maximum(share - counts, 0.0))
    return counts + (selection.rank(parts, order) < total - counts.sum())


def ceil(weights: Float[Array, " K"], total: Int[Array, ""] | Float[Array, ""]) -> Int[Array, " K"]:
    """`ceil(N w_i)`: at least the share of every arm, hence up to p - 1 draws more than N."""
    share = total * weights
    return jnp.ceil(share - nearly(share)).astype(int)
