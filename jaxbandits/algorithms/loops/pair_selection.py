"""Selection rules of the gap-index loop: the arm to draw for the pair b, c that is in doubt."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...kernels import selection
from ...kernels.allocate import pair_shares
from ...kernels.shared_call import once_for_equal
from ...types import Arms, Pytree
from .comparisons import Comparison, View


class Selection(NamedTuple):
    """A selection rule, with what it remembers between rounds."""

    choose: Callable[[Pytree, Comparison, Pytree, Array], Array]  # memory, comparison, stats, order
    begin: Callable[[], Pytree] = lambda: None  # () -> memory
    # (memory, arm drawn, view, whether it is one of the first draws, of each arm once) -> memory
    drawn: Callable[[Pytree, Array, View, Array], Pytree] = lambda memory, *_: memory
    # (memory) -> bool []: the second arm of a pair is still to be drawn, before the next test
    within_pair: Callable[[Pytree], Array] | None = None


def greedy(arms: Arms, ratios: Float[Array, "K K K"] | None) -> Selection:
    """The arm that shrinks `||x_b - x_c||_{V^-1}` most."""

    def choose(memory, comparison, stats, order):
        # Arms that were drawn equally often often tie, and rounding must not decide.
        gains = selection.fine(comparison.between() ** 2 / (1.0 + stats.variances))
        return selection.argmax(gains, order)

    return Selection(choose)


def largest_variance(arms: Arms, ratios: Float[Array, "K K K"] | None) -> Selection:
    """The one of b and c with the larger `x^T V^-1 x`."""

    def choose(memory, comparison, stats, order):
        index = jnp.arange(order.size)
        pair = (index == comparison.view.weakest) | (index == comparison.view.challenger)
        variances = selection.fine(stats.variances)
        return selection.argmax(jnp.where(pair, variances, -jnp.inf), order)

    return Selection(choose)


class Shares(NamedTuple):
    """What `ratio` remembers."""

    counts: Int[Array, " K"]
    ratios: Float[Array, "K K K"] | None  # of arms that are not known beforehand


def ratio(arms: Arms, ratios: Float[Array, "K K K"] | None) -> Selection:
    """The arm furthest behind its share of the design that is best for b and c in the long run.

    Args:
      arms: `[K, d]` features.
      ratios: `[K, K, K]` shares by pair; None where each replication draws its arms anew.
    """
    num_arms = arms.shape[0]
    solve = once_for_equal(pair_shares.enumerated)

    def begin() -> Shares:
        return Shares(jnp.zeros(num_arms, int), solve(arms) if ratios is None else None)

    def choose(memory, comparison, stats, order):
        shares = memory.ratios if ratios is None else ratios
        b, c = comparison.view.weakest, comparison.view.challenger
        wanted = selection.at(selection.at(shares, b), c)
        return selection.furthest_behind(memory.counts, wanted, order)

    def drawn(memory, arm, view, first):
        return memory._replace(counts=memory.counts + (jnp.arange(num_arms) == arm))

    return Selection(choose, begin, drawn)


def both(arms: Arms, ratios: Float[Array, "K K K"] | None) -> Selection:
    """First b, then c; in between the memory is c, else -1."""

    def within_pair(second):
        return second >= 0

    def choose(second, comparison, stats, order):
        return jnp.where(within_pair(second), second, comparison.view.weakest)

    def drawn(second, arm, view, first):
        return jnp.where(first | within_pair(second), -1, view.challenger)

    return Selection(choose, lambda: jnp.full((), -1, int), drawn, within_pair)


SELECTIONS: dict[str, Callable[..., Selection]] = {
    "greedy": greedy,
    "largest_variance": largest_variance,
    "ratio": ratio,
    "both": both,
}
