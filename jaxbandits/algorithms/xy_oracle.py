"""XY-oracle: the allocation of who knows theta, as experiments compare with it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import growing, ledger, pick, radius, spd
from ..kernels.once import once_for_equal
from ..kernels.oracle import oracle
from ..options import choice, constructor, positive, probability


class State(NamedTuple):
    """What the batches of "rage" leave behind."""

    totals: growing.Totals
    weights: jax.Array  # float [K] the design
    done: jax.Array  # bool []


class Tracking(NamedTuple):
    """What "soare" remembers."""

    stats: ledger.Ledger
    counts: jax.Array  # int [K]
    weights: jax.Array  # float [K] the design


@constructor(
    spans=True,
    delta=probability,
    noise_var=positive,
    variant=choice("rage", "soare"),
    growth=positive,
    powers=choice(*growing.POWERS),
    allocation=choice(*growing.ALLOCATIONS),
    singular=choice(*growing.SINGULAR),
    tol=positive,
)
def xy_oracle(
    arms,
    targets=None,
    *,
    theta,
    delta=0.05,
    noise_var=1.0,
    variant="rage",
    growth=1.1,
    powers="all",
    allocation="iid",
    singular="wait",
    tol=1e-3,
):
    """XY-oracle (Soare, Lazaric, Munos, 2014), which is told theta.

    The design w minimises the largest `||z* - z||^2 / gap_z^2` in A(w)^-1.
    "rage" (Fiez et al., 2019): batches of `ceil(growth^t)` draws from w, t = 1, 2, ..; stop
    when for all z `||z* - z||_{A(n)^-1} sqrt(2 log(2 M t^2 / delta)) < (z* - z)^T theta_hat`.
    "soare" (Xu et al., 2018): A = I, each arm once, then `argmin_a (T_a + 1) / w_a` one at a time
    until the true gaps of all arms pass
    `2 sqrt(2) ||x* - x||_{A^-1} sqrt(log(6 n^2 K / (pi^2 delta)))`; nothing in it is random.

    Args:
      arms: `[K, d]` features that can be drawn; they must span.
      targets: `[M, d]` features to choose among, the arms by default.
      theta: `[d]` the truth; a simulation supplies it.
      delta: error probability of the width, in (0, 1). The answer is z* whatever happens.
      noise_var: sub-Gaussian variance of a reward.
      variant: "rage" or "soare", the experiments it is taken from; the options below are for
        "rage" alone.
      growth: of the batches.
      powers: "all" t, or "odd" as in the published program, which counts each batch twice.
      allocation: "iid" draws from w, or "rounded" efficiently, so that each arm of the support
        is drawn from the start.
      singular: "wait" with the test until the draws span, or "ignore" as in the published
        program, to which a direction not yet measured looks certain.
      tol: relative accuracy of w.
    Returns:
      An `Algorithm` that asks for a batch or for one arm, and answers the index of z*.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      "rage": all powers and "wait" by default, see above; the design comes from an interior-point
      method, whose optimum takes more draws than the early-stopped Frank-Wolfe design of the
      experiments, for at the optimum all comparisons are tight at once. "soare": widths scale
      with the noise; their constant is for bounded noise.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014.
      https://arxiv.org/abs/1409.6110
    Example:
      >>> import jaxbandits as jb
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), jb.xy_oracle, replications=20)
      >>> int(runs.correct.sum())
      20
    """
    targets = arms if targets is None else targets
    num_targets = targets.shape[0]
    best = pick.best(targets @ theta).arm
    apart = pick.at(targets, best) - targets
    others = jnp.arange(num_targets) != best
    every_arm = jnp.arange(arms.shape[0])
    solve = once_for_equal(lambda: oracle(arms, targets, targets @ theta, tol=tol).weights)

    def lengths(inverse):
        return jnp.sqrt(noise_var * spd.quadratic(apart, inverse))

    def passes(inverse, draws):
        sure = lengths(inverse) * radius.soare(delta, draws, num_targets) <= apart @ theta
        return (sure | ~others).all()

    if variant == "soare":
        return _one_by_one(arms, solve, best, passes)

    def init(key):
        return State(growing.nothing(arms), solve(), jnp.array(False))

    def ask(key, state):
        counts = growing.batch(key, state.totals, state.weights, growth, powers, allocation)
        return Move(every_arm, counts, done=state.done, answer=best)

    def tell(state, move, total):
        totals = growing.added(state.totals, move.count, total)
        found = growing.estimate(arms, totals, singular)
        width = radius.static(delta, growing.power(totals.batches, powers), num_targets, 2.0)
        sure = lengths(found.inverse) * width < apart @ found.theta
        return State(totals, state.weights, done=(sure | ~others).all() & found.settled)

    return Algorithm(init, ask, tell)


def _one_by_one(arms, solve, best, passes):
    """Each arm once, then the one furthest behind the design; `passes(inverse, draws)` ends it."""
    num_arms, _ = arms.shape

    def init(key):
        return Tracking(ledger.ridge(arms, 1.0, arm_space=False), jnp.zeros(num_arms, int), solve())

    def ask(key, state):
        draws = state.counts.sum()
        first = draws < num_arms
        behind = pick.furthest_behind(state.counts + 1, state.weights)
        return Move(
            arm=jnp.where(first, jnp.minimum(draws, num_arms - 1), behind),
            count=None,
            done=~first & passes(state.stats.core, jnp.maximum(draws, 1)),
            answer=best,
        )

    def tell(state, move, total):
        stats = ledger.observe(state.stats, arms, move.arm, total, arm_space=False)
        here = jnp.arange(num_arms) == move.arm
        return state._replace(stats=stats, counts=state.counts + here)

    return Algorithm(init, ask, tell)
