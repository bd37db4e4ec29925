"""How the draws of a stage are shared among the arms alive, by name."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from .. import sampling, selection
from ..design import d_optimal, greedy, vertex_directions
from ..linalg import subspace
from ..shared_call import once_for_equal
from . import clusters, efficient_rounding, regret_rounding

SOLVED: dict[str, Callable[..., d_optimal.Design]] = {
    "fwg": vertex_directions.g_optimal_fw,
    "d_opt": d_optimal.d_optimal,
    "d_opt_fw": vertex_directions.wolfe_atwood,
    "wynn": vertex_directions.wynn,
    "fedorov": vertex_directions.fedorov,
}
BY_STEPS = ("fwg", "d_opt_fw", "wynn", "fedorov")  # those whose start can be chosen
DESIGNS = ("uniform", *SOLVED, "greedy", "kmeans")
BY_ORDER: dict[str, Callable[[Array, Whole, Array], Array]] = {
    "efficient": efficient_rounding.efficient,
    "largest_remainder": efficient_rounding.largest_remainder,
}
# (arms, weights, total) -> counts, the same for all lanes
FIXED: dict[str, Callable[[Array, Array, Array], Array]] = {
    "regret": regret_rounding.topped_up,
    "ceil": lambda arms, weights, total: efficient_rounding.ceil(weights, total),
}
ROUNDINGS = (*BY_ORDER, *FIXED, "multinomial")
LITTLE = 1e-6  # weights below it are dropped: roundings draw every supported arm


class Allocation(NamedTuple):
    """Draws of a stage."""

    counts: Int[Array, " K"]  # their sum is the stage's total, except for "ceil"
    solved: Bool[Array, ""]  # the design is as good as it was asked to be


Share: TypeAlias = Callable[
    [Array, Int[Array, " K"], Bool[Array, " K"], Whole], Allocation
]  # (key, order, alive, total) -> Allocation


def allocation(
    arms: Float[Array, "K d"],
    name: str,
    rule: str,
    *,
    tol: Scalar,
    start: str = "uniform",
    num_clusters: int | None = None,
    forced: int = 0,
) -> Share:
    """`(key, order, alive, total) -> Allocation` for a design and a rounding by name.

    What depends only on the arms alive is computed once for all lanes with the same arms alive.
    Random draws use the key; ties are broken by the order, priorities of the arms.

    Args:
      arms: `[K, d]`.
      name: the design, of `DESIGNS`; "uniform", "greedy" and "kmeans" need no rounding.
      rule: the rounding, of `ROUNDINGS`.
      tol, start: see the designs; only those of `BY_STEPS` have a start.
      num_clusters: of "kmeans", the rank of the arms alive by default.
      forced: draws of each arm of a basis of the arms alive before the others, fewer where the
        total is less.
    """
    if name == "uniform":
        shared = _uniform
    elif name == "greedy":
        shared = _greedy(arms)
    elif name == "kmeans":
        shared = _by_clusters(arms, num_clusters)
    else:
        begun = {"start": start} if name in BY_STEPS else {}
        shared = _designed(arms, partial(SOLVED[name], tol=tol, **begun), rule)
    return _after_basis(arms, shared, forced) if forced else shared


def _uniform(key, order, alive, total):
    return Allocation(selection.shared_equally(alive, total, key), jnp.array(True))


def _greedy(arms):
    counted = once_for_equal(partial(greedy.g_allocation, arms))
    return lambda key, order, alive, total: Allocation(counted(alive, total), jnp.array(True))


def _by_clusters(arms, num_clusters):
    most = min(arms.shape) if num_clusters is None else num_clusters

    @once_for_equal
    def found(alive):
        number = subspace.of(arms, alive).rank if num_clusters is None else most
        return clusters.k_means(arms, alive, number, most=most)

    def shared(key, order, alive, total):
        groups = found(alive)
        return Allocation(clusters.shared(key, groups, alive, total), groups.converged)

    return shared


def _designed(arms, solve, rule):
    @once_for_equal
    def designed(alive, total):
        found = solve(arms, alive)
        weights = _trimmed(found.weights)
        if rule in FIXED:
            return FIXED[rule](arms, weights, total), found.converged
        return weights, found.converged

    def shared(key, order, alive, total):
        found, solved = designed(alive, total)
        if rule in BY_ORDER:
            found = BY_ORDER[rule](found, total, order)
        if rule == "multinomial":
            found = sampling.multinomial(key, total, found)
        return Allocation(found, solved)

    return shared


def _trimmed(weights):
    kept = jnp.where(weights < LITTLE, 0.0, weights)
    return kept / kept.sum()


def _after_basis(arms, shared, forced):
    basis = once_for_equal(partial(subspace.far_apart, arms))

    def after(key, order, alive, total):
        chosen = basis(alive)
        size = jnp.maximum(chosen.sum(), 1)
        first = jnp.where(chosen, jnp.minimum(forced, total // size), 0)
        rest = shared(key, order, alive, total - first.sum())
        return rest._replace(counts=first + rest.counts)

    return after
