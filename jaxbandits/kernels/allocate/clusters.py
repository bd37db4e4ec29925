"""Allocations for arms that lie in clusters: k-means, then the same for every cluster."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from ...types import Whole
from .. import selection

SEED, ROUNDS = 0, 50


class Clusters(NamedTuple):
    """Arms by cluster."""

    labels: Int[Array, " K"]
    centers: Float[Array, "C d"]
    found: Bool[Array, " C"]  # clusters with a member
    converged: Bool[Array, ""]  # the last round moved no arm


def k_means(
    arms: Float[Array, "K d"], active: Bool[Array, " K"], number: Whole, *, most: int
) -> Clusters:
    """The active arms in at most `number <= most` clusters, by at most 50 rounds of Lloyd's method.

    Centres begin as in k-means++ (Arthur and Vassilvitskii, 2007): each new one is an arm drawn
    with a probability proportional to its squared distance from the centres before, with a fixed
    key. There are fewer clusters if there are fewer arms, or if centres lose all their arms.
    """
    allowed = jnp.arange(most) < number
    centers, found = _seeds(arms, active, allowed)

    def assign(centers):
        return jnp.where(found[None, :], _sqdist(arms, centers), jnp.inf).argmin(1)

    def lloyd(state):
        labels, centers, _, rounds = state
        members = (labels[:, None] == jnp.arange(most)) & active[:, None]
        sizes = members.sum(0)
        means = members.T.astype(arms.dtype) @ arms / jnp.maximum(sizes, 1)[:, None]
        centers = jnp.where(sizes[:, None] > 0, means, centers)
        after = assign(centers)
        return after, centers, ((after != labels) & active).any(), rounds + 1

    begin = (assign(centers), centers, jnp.array(True), jnp.zeros((), int))
    labels, centers, moved, _ = lax.while_loop(lambda s: s[2] & (s[3] < ROUNDS), lloyd, begin)
    members = (labels[:, None] == jnp.arange(most)) & active[:, None]
    return Clusters(labels, centers, members.any(0), ~moved)


def _seeds(arms, active, allowed):
    """Centres `[C, d]`, and which of them were found."""
    keys = jax.random.split(jax.random.key(SEED, impl="threefry2x32"), allowed.size)

    def add(carry, inputs):
        nearest, (key, wanted) = carry, inputs
        found = wanted & (nearest.sum() > 0)
        arm = selection.at(arms, selection.sample(key, nearest))
        closer = jnp.minimum(nearest, ((arms - arm) ** 2).sum(1))
        return jnp.where(found, closer, nearest), (arm, found)

    # The first centre is any active arm with equal probability; no distance exceeds `far`.
    far = 4.0 * (arms**2).sum(1).max() + 1.0
    begin = jnp.where(active, far, 0.0)
    return lax.scan(add, begin, (keys, allowed))[1]


def _sqdist(arms, centers):
    return ((arms[:, None, :] - centers[None, :, :]) ** 2).sum(-1)


def shared(
    key: Key[Array, ""], clusters: Clusters, active: Bool[Array, " K"], total: Whole
) -> Int[Array, " K"]:
    """Draws shared equally among clusters, then within each; remainders are allotted at random."""
    first, second = jax.random.split(key)
    draws = selection.shared_equally(clusters.found, total, first)[clusters.labels]
    same = (clusters.labels[:, None] == clusters.labels) & active
    lots = selection.lots(second, active.size)
    rank = (same & (lots[None, :] > lots[:, None])).sum(1)
    size = jnp.maximum(same.sum(1), 1)
    return jnp.where(active, draws // size + (rank < draws % size), 0)
