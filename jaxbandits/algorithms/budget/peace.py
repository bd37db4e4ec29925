"""Peace: fixed-budget best-arm identification by designs of small Gaussian width."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...core import Algorithm, Move
from ...kernels import halving, ledger, pick, rounding, span, spd, width
from ...kernels.once import once_for_equal
from ...kernels.xy_designs import named
from ...options import budget_covers, choice, constructor, count, positive, size, total_draws

LEAST_ROUNDS = 2


class State(NamedTuple):
    """What Peace remembers between rounds."""

    alive: jax.Array  # bool [K]
    weights: jax.Array  # float [K] the design for them
    gamma: jax.Array  # float [] what it gives them
    rounds: jax.Array  # int [] in all, by the gamma of all arms
    stage: jax.Array  # int [] from 0
    counts: jax.Array  # int [K]
    sums: jax.Array  # float [K]
    answer: jax.Array  # int []
    order: jax.Array  # int [K] priorities that break ties
    optimisations: jax.Array  # int []


@constructor(
    requires=lambda values: budget_covers(values, LEAST_ROUNDS),
    budget=count(),
    per_arm=count(),
    objective=choice("gamma", "rho"),
    iterations=size(),
    tol=positive,
)
def peace(arms, *, budget=None, per_arm=None, objective="gamma", iterations=50, tol=0.01):
    """Peace for a fixed budget (Katz-Samuels, Jain, Karnin, Jamieson, 2020).

    `R = max(2, ceil(log2 gamma(all arms)))` rounds of `B / R` draws, where `gamma(Z) = min over
    designs of (E max over z in Z of z^T V^-1/2 xi)^2`, xi standard normal. A round draws by the
    design of gamma(Z), fits least squares to all rewards so far, and keeps the longest list of
    the best arms Z' with `gamma(Z') <= gamma(Z) / 2`.

    Args:
      arms: `[K, d]` features.
      budget: total draws; spent exactly unless a single arm is left before.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
      objective: "gamma", or "rho": `max over z, z' in Z of ||z - z'||^2_{V^-1}`, which has an exact
        and cheaper design and takes the place of gamma everywhere.
      iterations: of the stochastic gradients for "gamma", see `kernels.width`.
      tol: relative accuracy of the design for "rho".
    Returns:
      An `Algorithm` that asks for an allocation each round and answers the index of an arm.
      `info`: designs found (`optimisations`): one, and `ceil(log2 |Z|)` a round for the bisection,
        the last of which is that of the next round.
    Raises:
      ValueError: a bad option, or a budget below 2.
    Deviations:
      What the paper minimises over all designs is approximated as in its program: Adam on the
      logarithms of the weights, a draw at a time, here with its opposite; then the mean of 1000
      draws. The draws are the same for all sets, so that gamma grows with the set and equal sets
      have equal designs. Single arms instead of differences under the maximum, which halves the
      width and so gives R two less at most. V^-1/2 is the inverse Cholesky factor, which has the
      same law. The remainder of the budget goes to the last rounds.
    Reference:
      J. Katz-Samuels, L. Jain, Z. Karnin, K. Jamieson, "An empirical process approach to the
      union bound: practical algorithms for combinatorial and linear bandits", NeurIPS 2020,
      Algorithm 2. https://arxiv.org/abs/2006.11685
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.peace, budget=400)
      >>> runs = jb.simulate(jb.instances.canonical(4, gap=2.0), algorithm, replications=20)
      >>> runs.summary()["errors"], int(runs.pulls.max())
      (0, 400)
    """
    num_arms, _ = arms.shape
    budget = total_draws(arms, budget, per_arm)
    xy = named("interior_point", tol)

    @once_for_equal
    def design(alive):
        if objective == "gamma":
            return width.minimised(arms, alive, iterations=iterations)
        found = xy.between(arms, arms, alive)
        return width.Width(found.weights, jnp.where(alive.sum() > 1, found.value, 0.0))

    def init(key):
        order, everyone = pick.tie_order(key, num_arms), jnp.ones(num_arms, bool)
        first, zero = design(everyone), jnp.zeros((), int)
        halvings = jnp.ceil(jnp.log2(jnp.maximum(first.value, 1.0))).astype(int)
        rounds = jnp.minimum(jnp.maximum(LEAST_ROUNDS, halvings), budget)
        nothing, answer = jnp.zeros(num_arms, int), jnp.argmax(order)
        sums = jnp.zeros(num_arms, arms.dtype)
        return State(everyone, *first, rounds, zero, nothing, sums, answer, order, zero + 1)

    def ask(key, state):
        draws = halving.share(budget, state.rounds, state.stage)
        return Move(
            arm=jnp.arange(num_arms),
            count=rounding.efficient(state.weights, draws).astype(int),
            done=(state.stage >= state.rounds) | (state.alive.sum() == 1),
            answer=state.answer,
            info={"optimisations": state.optimisations},
        )

    def tell(state, move, total):
        counts, sums = state.counts + move.count, state.sums + total
        matrix = ledger.gram(arms, counts)
        drawn = spd.partial_inverse(matrix, span.negligible(arms))
        theta = span.project(span.of_gram(matrix, drawn), drawn.matrix @ (arms.T @ sums))
        ranked = jnp.where(state.alive, arms @ theta, -jnp.inf)
        goes_on = (state.stage + 1 < state.rounds) & (state.alive.sum() > 2)
        shorter = partial(_longest, design, pick.rank(ranked, state.order), state)
        kept = lax.cond(goes_on, shorter, lambda: _Kept(state.alive, state.weights, state.gamma, 0))
        return State(
            alive=kept.alive,
            weights=kept.weights,
            gamma=kept.gamma,
            rounds=state.rounds,
            stage=state.stage + 1,
            counts=counts,
            sums=sums,
            answer=pick.argmax(ranked, state.order),
            order=state.order,
            optimisations=state.optimisations + kept.optimisations,
        )

    return Algorithm(init, ask, tell)


class _Kept(NamedTuple):
    alive: jax.Array  # bool [K]
    weights: jax.Array  # float [K]
    gamma: jax.Array  # float []
    optimisations: jax.Array  # int []


def _longest(design, places, state):
    """The longest list of the best arms whose gamma is at most half of that of all, by bisection.

    A single arm has gamma 0, all of them more than half: the answer lies in between.
    """
    single = places == 0
    begin = _Kept(single, jnp.zeros_like(state.weights), jnp.zeros_like(state.gamma), 0)

    def probe(carry):
        low, high, kept = carry
        middle = (low + high) // 2
        alive = places < middle
        found = design(alive)
        fits = found.value <= state.gamma / 2.0
        new = _Kept(alive, found.weights, found.value, 0)
        best = jax.tree.map(lambda a, b: jnp.where(fits, a, b), new, kept)
        best = best._replace(optimisations=kept.optimisations + 1)
        return jnp.where(fits, middle, low), jnp.where(fits, high, middle), best

    carry = (jnp.ones((), int), state.alive.sum(), begin._replace(optimisations=jnp.zeros((), int)))
    return lax.while_loop(lambda carry: carry[1] - carry[0] > 1, probe, carry)[2]
