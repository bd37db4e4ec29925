"""Peace: fixed-budget best-arm identification by designs that minimise a Gaussian width."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ...conditions import budget_covers, total_draws
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import efficient_rounding, halving
from ...kernels.design import gaussian_width
from ...kernels.design.xy.by_name import named
from ...kernels.estimate import stage_fit
from ...kernels.shared_call import once_for_equal
from ...parameters import Count, Positive, Size, choice, constructor
from ...types import Arms, Key

LEAST_ROUNDS: int = 2
# Of n orthogonal arms rho is 2 n exactly, often a power of 2: rounding must not decide there.
ROUNDING: float = 1e-9


class Candidates(NamedTuple):
    """The arms that may be the best, and their design."""

    alive: Bool[Array, " K"]
    weights: Float[Array, " K"]
    gamma: Float[Array, ""]  # or rho
    optimisations: Int[Array, ""]  # designs computed so far


class State(NamedTuple):
    """What Peace remembers between rounds."""

    kept: Candidates  # of the last round; before the first one all arms, without a design
    rounds: Int[Array, ""]  # R, from the gamma of all arms
    stage: Int[Array, ""]  # rounds so far
    counts: Int[Array, " K"]
    sums: Float[Array, " K"]
    ranks: Int[Array, " K"]  # of the arms by their estimates, the best is 0
    answer: Int[Array, ""]
    order: Int[Array, " K"]  # priorities that break ties


@constructor(scale_free=True, requires=lambda values: budget_covers(values, LEAST_ROUNDS))
def peace(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    objective: Annotated[str, choice("gamma", "rho")] = "gamma",
    iterations: Size = 50,
    tol: Positive = 0.01,
) -> Algorithm:
    """Peace for a fixed budget (Katz-Samuels, Jain, Karnin, Jamieson, 2020).

    There are `R = max(2, ceil(log2 gamma(all arms)))` rounds of `B / R` draws, where `gamma(Z) =
    min over designs of (E max over z in Z of z^T V^-1/2 xi)^2`, xi standard normal. A round draws
    by the design that attains gamma(Z), fits least squares to all rewards so far, and keeps as many
    of the best arms as possible: the largest such Z' with `gamma(Z') <= gamma(Z) / 2`.

    Args:
      arms: `[K, d]` features. The units of a column change nothing.
      budget: total draws; spent exactly unless a single arm is left before.
      per_arm: instead of a budget, the draws per arm: a budget of `per_arm K`.
      objective: "gamma", or instead "rho", `max over z, z' in Z of ||z - z'||^2_{V^-1}`.
      iterations: steps of stochastic gradients for "gamma", see `kernels.design.gaussian_width`.
      tol: relative accuracy of the design for "rho".
    Returns:
      An `Algorithm` that asks for an allocation each round and answers the index of an arm.
      `info`: `optimisations`, the number of designs computed: one at first, then about `log2 |Z|`
      in each round.
    Raises:
      ValueError: a bad option, or a budget below 2.
    Deviations:
      gamma is minimised as in the published program, by Adam on the logarithms of the weights, and
      evaluated with 1000 draws of xi in the end; here with 16 draws a step and their opposites, a
      falling rate, and the inverse Cholesky factor for V^-1/2. Draws are the same for all sets, so
      that gamma grows with the set. The maximum is over single arms, not differences, which halves
      the width. The remainder of the budget goes to the last rounds. Numbers that agree to 1e-9
      count as equal, so that rounding decides neither R nor Z'.
    Setting:
      best arm, fixed budget, linear.
    Assumptions:
      linear means. Arms without features: as unit vectors.
    Guarantee:
      the paper bounds the error, exponentially in the budget, for an exact minimum of gamma; here
      it is approximate.
    Cost:
      a stage: about log2(K) designs, a step of which takes K d^2 + d^3, and K d for each of 16
      draws.
    Reference:
      J. Katz-Samuels, L. Jain, Z. Karnin, K. Jamieson, "An empirical process approach to the
      union bound: practical algorithms for combinatorial and linear bandits", NeurIPS 2020,
      Algorithm 2. https://arxiv.org/abs/2006.11685
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.peace, budget=400, iterations=20)
      >>> runs = jb.simulate(jb.instances.canonical(8, gap=2.0), algorithm, replications=10)
      >>> runs.summary()["errors"], int(runs.pulls.max())
      (0, 400)
    """
    num_arms, _ = arms.shape
    budget = jnp.asarray(total_draws(arms, budget, per_arm))
    xy = named("interior_point", tol)

    @once_for_equal
    def design_for(alive: Array) -> gaussian_width.Width:
        if objective == "gamma" or num_arms == 1:  # a single arm has no differences
            return gaussian_width.minimised(arms, alive, iterations=iterations)
        found = xy.between(arms, arms, alive)
        return gaussian_width.Width(found.weights, jnp.where(alive.sum() > 1, found.value, 0.0))

    def init(key: Key) -> State:
        order, zero = selection.tie_order(key, num_arms), jnp.zeros((), int)
        nothing, infinite = jnp.zeros(num_arms, arms.dtype), jnp.full((), jnp.inf, arms.dtype)
        return State(
            kept=Candidates(jnp.ones(num_arms, bool), nothing, infinite, optimisations=zero),
            rounds=zero,
            stage=zero,
            counts=jnp.zeros(num_arms, int),
            sums=nothing,
            ranks=jnp.zeros(num_arms, int),
            answer=jnp.argmax(order),
            order=order,
        )

    def candidates(state: State) -> tuple[Candidates, Array]:
        """Those of the next round, and R.

        The first design and later ones share a search, so that the design is compiled once: for
        all arms, whose ranks are 0 before the first round, the search has a single probe.
        """
        first, number = state.stage == 0, state.kept.alive.sum()
        shrinks = (state.stage < state.rounds) & (number > 2)
        high = jnp.where(first, 3, jnp.where(shrinks, number, 1))
        kept = _largest_half(design_for, state.ranks, state.kept, shrinks, high)
        halvings = jnp.ceil(jnp.log2(jnp.maximum(kept.gamma, 1.0)) - ROUNDING).astype(int)
        rounds = jnp.minimum(jnp.maximum(LEAST_ROUNDS, halvings), budget)
        return kept, jnp.where(first, rounds, state.rounds)

    def ask(key: Key, state: State) -> Move:
        kept, rounds = candidates(state)
        draws = halving.share(budget, rounds, state.stage)
        return Move(
            arm=jnp.arange(num_arms),
            count=efficient_rounding.efficient(kept.weights, draws, state.order).astype(int),
            done=(state.stage >= rounds) | (kept.alive.sum() == 1),
            answer=state.answer,
            info=({"optimisations": kept.optimisations}, (kept, rounds)),
        )

    def tell(state: State, move: Move, total: Array) -> State:
        assert move.count is not None  # `ask` gives counts
        _, (kept, rounds) = move.info
        counts, sums = state.counts + move.count, state.sums + total
        fit = stage_fit.fit(arms, counts, sums, kept.alive)
        ranked = selection.comparable(fit.predictors, kept.alive)
        ranks = selection.rank(ranked, state.order)
        best = selection.argmax(ranked, state.order)
        return State(kept, rounds, state.stage + 1, counts, sums, ranks, best, state.order)

    return Algorithm(init, ask, tell)


def _largest_half(
    design_for: Callable[[Array], gaussian_width.Width],
    ranks: Array,
    old: Candidates,
    shrinks: Array,
    high: Array,
) -> Candidates:
    """The largest set of best arms whose gamma is at most half of the old one, by bisection.

    Args:
      shrinks: whether the set must become smaller. The size is then at least 1, where gamma is 0;
        else the old set is kept, unless a probe fits.
      high: a size that is too large, that of the old set; nothing is probed below 3.
    """

    def probe(carry: tuple[Array, Array, Candidates]) -> tuple[Array, Array, Candidates]:
        low, high, kept = carry
        middle = (low + high) // 2
        alive, more = ranks < middle, kept.optimisations + 1
        found = design_for(alive)
        fits = ~shrinks | (found.value <= (1.0 + ROUNDING) * old.gamma / 2.0)
        new = Candidates(alive, found.weights, found.value, more)
        kept = jax.tree.map(partial(jnp.where, fits), new, kept._replace(optimisations=more))
        return jnp.where(fits, middle, low), jnp.where(fits, high, middle), kept

    single = Candidates(ranks == 0, old.weights, jnp.zeros_like(old.gamma), old.optimisations)
    begin = jax.tree.map(partial(jnp.where, shrinks), single, old)
    bounds = jnp.ones((), int), high
    return lax.while_loop(lambda carry: carry[1] - carry[0] > 1, probe, (*bounds, begin))[2]
