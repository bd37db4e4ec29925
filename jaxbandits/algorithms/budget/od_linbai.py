"""OD-LinBAI: fixed-budget best-arm identification by optimal designs, with halved dimensions."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ...conditions import budget_covers, total_draws
from ...core import Algorithm
from ...kernels.allocate import efficient_rounding
from ...kernels.design import d_optimal as designs
from ...kernels.design import sparsify
from ...kernels.estimate import stage_fit
from ...kernels.linalg import subspace
from ...kernels.shared_call import once_for_equal
from ...parameters import Count, Positive, Values, constructor
from ...types import Arms
from ..loops.elimination import EliminationRules, State, elimination


class Memory(NamedTuple):
    """What OD-LinBAI remembers besides the arms alive."""

    rank: Int[Array, ""]  # d, the rank of all arms
    info: dict[str, Int[Array, ""]]  # numbers of rounds, see `Returns`


def _budget_given(values: Values) -> None:
    budget_covers(values, 1)


@constructor(scale_free=True, requires=_budget_given)
def od_linbai(
    arms: Arms,
    *,
    budget: Count | None = None,
    per_arm: Count | None = None,
    tol: Positive = 0.01,
) -> Algorithm:
    """OD-LinBAI (Yang, Tan, 2022).

    There are `R = ceil(log2 d)` rounds for arms of rank d. Round r projects the arms alive onto
    their span, draws `N_i = ceil(m pi_i)` by a G-optimal design pi (in the first round one on at
    most `d (d + 1) / 2` arms), estimates by least squares from this round alone, and keeps the
    `ceil(d / 2^r)` best arms. With
    `m = (B - min(K, d (d + 1) / 2) - sum over r < R of ceil(d / 2^r)) / R` no more than B draws
    are made.

    Args:
      arms: `[K, d]` features. The units of a column change nothing.
      budget: total draws B at most; what the ceilings leave of it is not spent.
      per_arm: instead of a budget, the draws per arm: a budget of `per_arm K`.
      tol: `max_i ||x_i||^2 <= (1 + tol) d` of the designs.
    Returns:
      An `Algorithm` that asks for an allocation each round and answers the index of an arm.
      `info`: `skipped`, 1 where m is not above 0 (a random arm is answered without a draw); the
      number of rounds whose draws did not span the arms alive (`invalid`), and whose design missed
      its tolerance (`unsolved`).
    Raises:
      ValueError: a bad option.
    Deviations:
      With d = 1 there is one round. D-optimal designs are found by vertex exchange. The design of
      the first round is reduced to few arms with no loss (Caratheodory), where published programs
      drop small weights or exceed the budget. It is not reduced where K is at most d (d + 1) / 2
      with d the length of a feature: if the rank is lower, m then leaves room for K arms.
    Setting:
      best arm, fixed budget, linear.
    Assumptions:
      linear means. Arms without features: as unit vectors.
    Guarantee:
      exponential in the budget: `jaxbandits.theory.od_linbai_error_bound`; the exponent is minimax
      optimal up to a constant (paper).
    Cost:
      a stage: a design, of which an exchange takes K d, and K d^2 + d^3.
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
    num_arms, dim = arms.shape
    budget = jnp.asarray(total_draws(arms, budget, per_arm))
    many = num_arms > dim * (dim + 1) // 2

    def halved(rank: Array, times: Array) -> Array:
        """`ceil(rank / 2^times)`."""
        return -(-rank // 2**times)

    def rounds(rank: Array) -> Array:
        """R."""
        halvings = ((rank > 2**r).astype(int) for r in range(dim.bit_length()))
        needed = sum(halvings, start=jnp.zeros((), int))
        return jnp.maximum(needed, 1)

    def share(rank: Array) -> Array:
        """m, where the first round draws at most `most(rank)` arms."""
        times = jnp.arange(1, dim.bit_length() + 1)
        later = jnp.where(times < rounds(rank), halved(rank, times), 0).sum()
        return (budget - most(rank) - later) / rounds(rank)

    def most(rank: Array) -> Array | int:
        return jnp.minimum(num_arms, rank * (rank + 1) // 2) if many else num_arms

    @once_for_equal
    def counts_for(alive: Array, rank: Array) -> tuple[Array, Array]:
        """Draws of a round, and whether its design met its tolerance."""
        found = designs.d_optimal(arms, alive, tol=tol)
        weights = found.weights
        if many:
            limit = jnp.where(alive.all(), most(rank), num_arms)
            weights = sparsify.reduced(arms, weights, limit)
        return efficient_rounding.ceil(weights, jnp.maximum(share(rank), 0.0)), found.converged

    def begin() -> Memory:
        rank = jnp.maximum(subspace.of(arms, jnp.ones(num_arms, bool)).rank, 1)  # 0: arms of zeros
        zero = jnp.zeros((), int)
        info = {"skipped": (share(rank) <= 0).astype(int), "invalid": zero, "unsolved": zero}
        return Memory(rank, info)

    def over(state: State) -> Array:
        memory: Memory = state.memory
        return (state.stage >= rounds(memory.rank)) | (memory.info["skipped"] > 0)

    def learn(state: State, counts: Array, sums: Array, solved: Array) -> tuple[Array, Memory]:
        memory: Memory = state.memory
        fit = stage_fit.fit(arms, counts, sums, state.alive)
        flags = {"skipped": False, "invalid": ~fit.valid, "unsolved": ~solved}
        info = {name: memory.info[name] + flag for name, flag in flags.items()}
        return fit.predictors, memory._replace(info=info)

    rules = EliminationRules(
        allocate=lambda key, state: counts_for(state.alive, state.memory.rank),
        learn=learn,
        survivors=lambda state: halved(state.memory.rank, state.stage + 1),
        over=over,
        begin=begin,
        report=lambda memory: memory.info,
    )
    return elimination(num_arms, rules)
