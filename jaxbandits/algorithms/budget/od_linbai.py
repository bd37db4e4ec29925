"""OD-LinBAI: fixed-budget best-arm identification by optimal designs, halving the dimension."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import budget_covers, total_draws
from ...core import Algorithm
from ...kernels.allocate import efficient_rounding
from ...kernels.design import d_optimal as designs
from ...kernels.design import sparsify
from ...kernels.estimate import stage_fit
from ...kernels.linalg import subspace
from ...kernels.shared_call import once_for_equal
from ...parameters import Count, Positive, constructor
from ...types import Arms
from ..loops.elimination import EliminationRules, elimination


class Memory(NamedTuple):
    """What OD-LinBAI remembers besides who is alive."""

    rank: jax.Array  # int [] d, of all arms
    info: dict  # int [] each: rounds of which something has to be said


def _one_of_two(values):
    budget_covers(values, 1)


@constructor(scale_free=True, requires=_one_of_two)
def od_linbai(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    tol: Positive = 0.01,
) -> Algorithm:
    """OD-LinBAI (Yang, Tan, 2022).

    `R = ceil(log2 d)` rounds for arms of rank d. In round r: project the arms alive on their span,
    draw `N_i = ceil(m pi_i)` by a G-optimal design pi, in the first round one on at most
    `d (d + 1) / 2` arms; least squares from this round alone; the `ceil(d / 2^r)` best go on. With
    `m = (B - min(K, d (d + 1) / 2) - sum over r < R of ceil(d / 2^r)) / R` no more than B draws
    are made.

    Args:
      arms: `[K, d]` features. The units of a column change nothing.
      budget: total draws B at most; what the ceilings leave of it is not spent.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`.
      tol: `max_i ||x_i||^2 <= (1 + tol) d` of the designs.
    Returns:
      An `Algorithm` that asks for an allocation each round and answers the index of an arm.
      `info`: `skipped`, 1 where m is not above 0: a random arm is answered without a draw; rounds
      whose draws did not span the arms alive (`invalid`), or whose design missed its tolerance
      (`unsolved`).
    Raises:
      ValueError: a bad option.
    Deviations:
      With d = 1 there is one round. D-optimal designs are found by vertex exchange. That of the
      first round is brought to few arms with no loss (Caratheodory), where published programs
      drop small weights or exceed the budget. No more arms than d (d + 1) / 2, d the length of a
      feature, keep their designs: of lower rank they leave room for K arms in the first round.
    Reference:
      J. Yang, V. Y. F. Tan, "Minimax optimal fixed-budget best arm identification in linear
      bandits", NeurIPS 2022, Algorithm 1. https://arxiv.org/abs/2105.13017
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = partial(jb.od_linbai, budget=320)
      >>> runs = jb.simulate(jb.instances.canonical(8, gap=2.0), algorithm, replications=10)
      >>> runs.summary()["errors"], bool(runs.pulls.max() <= 320)
      (0, True)
    """
    (num_arms, dim), budget = arms.shape, total_draws(arms, budget, per_arm)
    everyone, many = jnp.ones(num_arms, bool), num_arms > dim * (dim + 1) // 2

    def halved(rank, times):
        return -(-rank // 2**times)

    def rounds(rank):
        needed = sum((rank > 2**r).astype(int) for r in range(dim.bit_length()))
        return jnp.maximum(needed, 1)

    def share(rank):
        """m, where the first round has at most `most(rank)` arms."""
        times = jnp.arange(1, dim.bit_length() + 1)
        later = jnp.where(times < rounds(rank), halved(rank, times), 0).sum()
        return (budget - most(rank) - later) / rounds(rank)

    def most(rank):
        return jnp.minimum(num_arms, rank * (rank + 1) // 2) if many else num_arms

    @once_for_equal
    def counted(alive, rank):
        found = designs.d_optimal(arms, alive, tol=tol)
        weights = found.weights
        if many:
            limit = jnp.where(alive.all(), most(rank), num_arms)
            weights = sparsify.reduced(arms, weights, limit)
        return efficient_rounding.ceil(weights, jnp.maximum(share(rank), 0.0)), found.converged

    def begin():
        rank = subspace.of(arms, everyone).rank
        zero = jnp.zeros((), int)
        info = {"skipped": (share(rank) <= 0).astype(int), "invalid": zero, "unsolved": zero}
        return Memory(rank, info)

    def over(state):
        memory = state.memory
        return (state.stage >= rounds(memory.rank)) | (memory.info["skipped"] > 0)

    def learn(state, counts, sums, solved):
        memory = state.memory
        fit = stage_fit.fit(arms, counts, sums, state.alive)
        flags = {"skipped": False, "invalid": ~fit.valid, "unsolved": ~solved}
        info = {name: memory.info[name] + flag for name, flag in flags.items()}
        return fit.predictors, memory._replace(info=info)

    rules = EliminationRules(
        allocate=lambda key, state: counted(state.alive, state.memory.rank),
        learn=learn,
        survivors=lambda state: halved(state.memory.rank, state.stage + 1),
        over=over,
        begin=begin,
        report=lambda memory: memory.info,
    )
    return elimination(num_arms, rules)
