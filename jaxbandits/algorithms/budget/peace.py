"""Peace: fixed-budget best-arm identification by designs of small Gaussian width."""

from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...conditions import budget_covers, total_draws
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.allocate import efficient_rounding, halving
from ...kernels.design import gaussian_width
from ...kernels.design.xy.by_name import named
from ...kernels.estimate import stage_fit
from ...kernels.shared_call import once_for_equal
from ...parameters import Count, Positive, Size, choice, constructor
from ...types import Arms

LEAST_ROUNDS = 2


class Set(NamedTuple):
    """Arms that may be the best, and their design."""

    alive: jax.Array  # bool [K]
    weights: jax.Array  # float [K]
    gamma: jax.Array  # float []
    optimisations: jax.Array  # int [] designs found so far


class State(NamedTuple):
    """What Peace remembers between rounds."""

    kept: Set
    rounds: jax.Array  # int [] in all, by the gamma of all arms
    stage: jax.Array  # int [] from 0
    counts: jax.Array  # int [K]
    sums: jax.Array  # float [K]
    answer: jax.Array  # int []
    order: jax.Array  # int [K] priorities that break ties


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

    `R = max(2, ceil(log2 gamma(all arms)))` rounds of `B / R` draws, where `gamma(Z) = min over
    designs of (E max over z in Z of z^T V^-1/2 xi)^2`, xi standard normal. A round draws by the
    design of gamma(Z), fits least squares to all rewards so far, and keeps the longest list of
    the best arms Z' with `gamma(Z') <= gamma(Z) / 2`.

    Args:
      arms: `[K, d]` features. The units of a column change nothing.
      budget: total draws; spent exactly unless a single arm is left before.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
      objective: "gamma", or in its place "rho", `max over z, z' in Z of ||z - z'||^2_{V^-1}`.
      iterations: of the stochastic gradients for "gamma", see `kernels.width`.
      tol: relative accuracy of the design for "rho".
    Returns:
      An `Algorithm` that asks for an allocation each round and answers the index of an arm.
      `info`: designs found (`optimisations`), one and `log2 |Z|` a bisection.
    Raises:
      ValueError: a bad option, or a budget below 2.
    Deviations:
      gamma is minimised as in the published program, by Adam on the logarithms of the weights and
      1000 draws in the end; here with 16 draws a step and their opposites, a falling rate, and
      the inverse Cholesky factor for V^-1/2. Draws are the same for all sets, so that gamma grows
      with the set. The maximum is over single arms, not differences, which halves the width. The
      remainder of the budget goes to the last rounds.
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
    budget = total_draws(arms, budget, per_arm)
    xy = named("interior_point", tol)

    @once_for_equal
    def design(alive):
        if objective == "gamma" or num_arms == 1:  # which has no differences
            return gaussian_width.minimised(arms, alive, iterations=iterations)
        found = xy.between(arms, arms, alive)
        return gaussian_width.Width(found.weights, jnp.where(alive.sum() > 1, found.value, 0.0))

    def init(key):
        order, everyone = selection.tie_order(key, num_arms), jnp.ones(num_arms, bool)
        first, zero = design(everyone), jnp.zeros((), int)
        halvings = jnp.ceil(jnp.log2(jnp.maximum(first.value, 1.0))).astype(int)
        rounds = jnp.minimum(jnp.maximum(LEAST_ROUNDS, halvings), budget)
        counts, sums = jnp.zeros(num_arms, int), jnp.zeros(num_arms, arms.dtype)
        kept = Set(everyone, *first, optimisations=zero + 1)
        return State(kept, rounds, zero, counts, sums, jnp.argmax(order), order)

    def ask(key, state):
        draws = halving.share(budget, state.rounds, state.stage)
        return Move(
            arm=jnp.arange(num_arms),
            count=efficient_rounding.efficient(state.kept.weights, draws, state.order).astype(int),
            done=(state.stage >= state.rounds) | (state.kept.alive.sum() == 1),
            answer=state.answer,
            info={"optimisations": state.kept.optimisations},
        )

    def tell(state, move, total):
        old, stage = state.kept, state.stage + 1
        counts, sums = state.counts + move.count, state.sums + total
        fit = stage_fit.fit(arms, counts, sums, old.alive)
        ranked = selection.comparable(fit.predictors, old.alive)
        places = selection.rank(ranked, state.order)
        shrinks = (stage < state.rounds) & (old.alive.sum() > 2)
        kept = lax.cond(shrinks, lambda: _longest(design, places, old), lambda: old)
        best = selection.argmax(ranked, state.order)
        return State(kept, state.rounds, stage, counts, sums, best, state.order)

    return Algorithm(init, ask, tell)


def _longest(design, places, old):
    """The longest list of the best arms whose gamma is at most half of that of all, by bisection.

    A single arm has gamma 0, all of them more than half: the answer lies in between.
    """

    def probe(carry):
        low, high, kept = carry
        middle = (low + high) // 2
        alive, more = places < middle, kept.optimisations + 1
        found = design(alive)
        fits = found.value <= old.gamma / 2.0
        new = Set(alive, found.weights, found.value, more)
        kept = jax.tree.map(partial(jnp.where, fits), new, kept._replace(optimisations=more))
        return jnp.where(fits, middle, low), jnp.where(fits, high, middle), kept

    single = Set(places == 0, old.weights, jnp.zeros_like(old.gamma), old.optimisations)
    begin = (jnp.ones((), int), old.alive.sum(), single)
    return lax.while_loop(lambda carry: carry[1] - carry[0] > 1, probe, begin)[2]
