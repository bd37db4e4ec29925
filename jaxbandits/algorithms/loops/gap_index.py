"""The gap-index loop: find the m best arms by comparing those believed best with the rest.

Reda, Kaufmann and Delahaye-Duriez (2021), Algorithm 1. What one algorithm does otherwise than
another is a line of their Table 1, `Rules`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import pair_shares
from ...kernels.confidence import gaps
from ...kernels.estimate import least_squares, sample_means
from ...kernels.shared_call import once_for_equal

SELECTIONS = ("greedy", "largest_variance", "ratio", "both")


class Rules(NamedTuple):
    """A line of Table 1; names, hence static."""

    indices: str = "paired"  # or "individual"
    guess: str = "means"  # J: the m largest estimates, or "indices": the m least D_j
    weakest: str = "pair"  # b: of the pair that is hardest to tell, or "index": of the largest D_j
    selection: str = "greedy"
    stopping: str = "lucb"  # B[c, b] <= epsilon, or "ugape": D_j <= epsilon on J
    all_first: bool = True  # each arm is drawn once before any test
    stale_pair: bool = False  # test what was drawn last, not what would be drawn next

    @property
    def by_worst(self):
        """Whether the D_j are needed."""
        return (self.guess, self.weakest, self.stopping) != ("means", "pair", "lucb")


def ridge(v0, noise_var, *, code):
    """A ridge by its name: the paper's lambda, sigma / 20, or that of the published program."""
    return {"paper": jnp.sqrt(noise_var) / 20.0, "code": code}[v0] if isinstance(v0, str) else v0


class Evidence(NamedTuple):
    """How rewards are remembered; `stats` have `means`, `variances` [K] and `logdet` []."""

    begin: Callable  # () -> stats
    observe: Callable  # (stats, arm, reward) -> stats
    row: Callable | None = None  # (stats, arm) -> x_arm^T V^-1 x_k [K]
    gram: Callable | None = None  # (stats) -> x_i^T V^-1 x_j [K, K]


def by_features(arms, v0, *, arm_space):
    """Ridge least squares; where all pairs of arms are compared, arm space is the faster form.

    Measured from 10 arms in 2 dimensions to 100 in 5: a round looks at K^2 numbers in any case.
    Variances fall from 1 / v0 to 1 with the first draws, which single precision cannot follow: play
    in double precision, as `simulate` and `Live` do.
    """
    return Evidence(
        begin=lambda: least_squares.ridge(arms, v0, arm_space=arm_space),
        observe=lambda stats, arm, reward: least_squares.observe(
            stats, arms, arm, reward, arm_space=arm_space
        ),
        row=lambda stats, arm: least_squares.row(stats, arms, arm, arm_space=arm_space),
        gram=lambda stats: least_squares.rows(stats, arms, arm_space=arm_space),
    )


def by_averages(num_arms):
    """The average reward of each arm."""
    return Evidence(lambda: sample_means.nothing(num_arms), sample_means.observe)


class State(NamedTuple):
    """What an algorithm of this kind remembers."""

    stats: Any
    order: jax.Array  # int [K] priorities that break ties
    draws: jax.Array  # int []
    counts: jax.Array | None  # int [K]; for "ratio"
    ratios: jax.Array | None  # float [K, K, K], of arms that are not known beforehand
    second: jax.Array | None  # int []; for "both": the arm yet to draw of a pair, else -1
    last: Any  # for stale pairs: the `Look` before the pair was drawn


class Look(NamedTuple):
    """What a round sees."""

    top: jax.Array  # bool [K], J
    weakest: jax.Array  # int [], b
    challenger: jax.Array  # int [], c
    doubt: jax.Array  # float []: at most epsilon where the answer is good enough


class Turn(NamedTuple):
    """A round: what `tell` needs besides the reward."""

    look: Look
    first: jax.Array  # bool []: the arm is drawn because each is once


def gap_index(
    arms, evidence, rules, width, *, m, epsilon=0.0, table=None, answer=None, first_leads=False
):
    """An algorithm of Table 1.

    Args:
      arms: `[K, d]` features.
      evidence: an `Evidence`.
      rules: a `Rules`.
      width: `(draws, logdet) -> sigma C`, the width of a direction of length 1; where no arm is
        drawn before the first test, `draws` is one more than that.
      m: number of arms to return.
      epsilon: accuracy.
      table: `[K, K, K]` for "ratio"; None where each replication draws its arms anew.
      answer: `Look -> answer`, the mask of J by default.
      first_leads: whether of equal leaders or rivals the first is taken, by an algorithm that
        compares one arm with the rest: it spares a tenth of the time, and with rewards that have
        a density there are none.
    """
    num_arms = arms.shape[0]
    solve = once_for_equal(pair_shares.enumerated)
    by_ratio, both = rules.selection == "ratio", rules.selection == "both"
    begins = num_arms if rules.all_first else 0

    def init(key):
        order, nobody = selection.tie_order(key, num_arms), jnp.zeros((), int)
        blank = Look(jnp.zeros(num_arms, bool), nobody, nobody, jnp.full((), jnp.inf))
        return State(
            stats=evidence.begin(),
            order=order,
            draws=jnp.zeros((), int),
            counts=jnp.zeros(num_arms, int) if by_ratio else None,
            ratios=solve(arms) if by_ratio and table is None else None,
            second=jnp.full((), -1) if both else None,
            last=blank if rules.stale_pair else None,
        )

    def ask(key, state):
        draws, first = state.draws, state.draws < begins
        wide = width(jnp.maximum(draws + (not rules.all_first), 1), state.stats.logdet)
        view = _view(evidence, rules, m, state, wide, first_leads)
        shown, ends = view.look, ~first
        if rules.stale_pair:
            ends = draws > begins
            choose = lambda old, new: jnp.where(ends, old, new)  # noqa: E731
            shown = jax.tree.map(choose, _as_before(rules, view, state), shown)
        if both:
            ends = ends & (state.second < 0)
        chosen = _selected(rules.selection, state, view, table)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), chosen),
            count=None,
            done=ends & (shown.doubt <= epsilon),
            answer=shown.top if answer is None else answer(shown),
            info=Turn(view.look, first),
        )

    def tell(state, move, total):
        look, first = move.info
        counts = second = last = None
        if by_ratio:
            counts = state.counts + (jnp.arange(num_arms) == move.arm)
        if rules.stale_pair:
            last = look
        if both:
            between = state.second >= 0
            second = jnp.where(first | between, -1, look.challenger)
            keep = lambda old, new: jnp.where(between, old, new)  # noqa: E731
            last = jax.tree.map(keep, state.last, last)
        return State(
            stats=evidence.observe(state.stats, move.arm, total),
            order=state.order,
            draws=state.draws + 1,
            counts=counts,
            ratios=state.ratios,
            second=second,
            last=last,
        )

    return Algorithm(init, ask, tell)


class _View(NamedTuple):
    """A `Look`, and what it was taken from."""

    look: Look
    column: Callable  # (arm j) -> B[i, j] for every i
    between: Callable  # () -> (x_b - x_c)^T V^-1 x_k


def _view(evidence, rules, m, state, wide, first_leads):
    if m == 1 and rules == Rules(selection=rules.selection, stale_pair=rules.stale_pair):
        return _of_one(evidence, state, wide, first_leads)
    return _of_many(evidence, rules, m, state, wide)


def _of_one(evidence, state, wide, first_leads):
    """J is a single arm, so that only what is compared with it matters."""
    stats, order = state.stats, state.order
    leader = (
        selection.best(stats.means).arm if first_leads else selection.argmax(stats.means, order)
    )
    from_leader = evidence.row(stats, leader)

    def column(arm, row=None):
        row = evidence.row(stats, arm) if row is None else row
        return gaps.column(stats, row, arm, wide)

    top = jnp.arange(order.size) == leader
    rivals = jnp.where(top, -jnp.inf, column(leader, from_leader))
    if first_leads:
        rival = selection.best(rivals)
    else:
        arm = selection.argmax(rivals, order)
        rival = selection.Best(arm, selection.at(rivals, arm))
    look = Look(top, leader, rival.arm, rival.value)
    return _View(look, column, lambda: from_leader - evidence.row(stats, look.challenger))


def _of_many(evidence, rules, m, state, wide):
    stats, order = state.stats, state.order
    estimates = stats.means, stats.variances
    if rules.indices == "individual":
        bounds, row = gaps.individual(*estimates, wide), lambda arm: evidence.row(stats, arm)
    else:
        gram = evidence.gram(stats)
        bounds, row = gaps.paired(*estimates, gram, wide), partial(selection.at, gram)
    worst = bounds.nth(m) if rules.by_worst else None
    top = selection.top(stats.means if rules.guess == "means" else -worst, order, m)
    values = bounds.highest(~top) if rules.weakest == "pair" else worst
    weakest = selection.argmax(jnp.where(top, values, -jnp.inf), order)
    rivals = jnp.where(top, -jnp.inf, bounds.column(weakest))
    challenger = selection.argmax(rivals, order)
    if rules.stopping == "lucb":
        doubt = selection.at(rivals, challenger)
    else:
        doubt = jnp.where(top, worst, -jnp.inf).max()
    look = Look(top, weakest, challenger, doubt)
    return _View(look, bounds.column, lambda: row(weakest) - row(challenger))


def _as_before(rules, view, state):
    """What the published program asks after a draw: is the pair it was drawn for settled?"""
    if rules.stopping == "ugape":
        return state.last
    doubt = selection.at(view.column(state.last.weakest), state.last.challenger)
    return state.last._replace(doubt=doubt)


def _selected(rule, state, view, table):
    """The arm to draw for the pair b, c."""
    look, variances = view.look, state.stats.variances
    if rule == "greedy":
        return selection.argmax(view.between() ** 2 / (1.0 + variances), state.order)
    if rule == "ratio":
        shares = state.ratios if table is None else table
        wanted = selection.at(selection.at(shares, look.weakest), look.challenger)
        return selection.furthest_behind(state.counts, wanted, state.order)
    if rule == "both":
        return jnp.where(state.second < 0, look.weakest, state.second)
    pair = (jnp.arange(variances.size) == look.weakest) | (
        jnp.arange(variances.size) == look.challenger
    )
    return selection.argmax(jnp.where(pair, variances, -jnp.inf), state.order)
