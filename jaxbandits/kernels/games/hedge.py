"""AdaHedge: exponential weights whose rate adapts to the losses (de Rooij et al., 2014)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .. import selection

FIRST = 0.01  # the mixability gap at first; any small positive number is good


class Hedge(NamedTuple):
    """A learner over K actions."""

    losses: Float[Array, " K"]  # sums so far
    mixability: Float[Array, ""]  # sum of the gaps between own loss and mix loss


def start(num_actions: int) -> Hedge:
    """A learner that has seen nothing."""
    return Hedge(jnp.zeros(num_actions), jnp.full((), FIRST, float))


def weights(learner: Hedge) -> Float[Array, " K"]:
    """`w_a` proportional to `exp(-rate L_a)`."""
    chances = jnp.exp(-_rate(learner) * (learner.losses - learner.losses.min()))
    return chances / chances.sum()


def learn(learner: Hedge, played: Float[Array, " K"], losses: Float[Array, " K"]) -> Hedge:
    """The learner after these losses of the actions, having `played` its weights.

    The mix loss `-log(sum of w_a exp(-rate l_a)) / rate` is the change of a soft minimum of the
    sums, which does not underflow where all weight was on an action that lost.
    """
    after = learner.losses + losses
    rate = _rate(learner)
    mixed = _soft_minimum(after, rate) - _soft_minimum(learner.losses, rate)
    gap = jnp.maximum(0.0, played @ losses - mixed)
    return Hedge(after, learner.mixability + gap)


class Many(NamedTuple):
    """A learner in each of several slots."""

    learners: Hedge  # losses [L, K], mixability [L]
    owners: Bool[Array, "L K"] | None  # the set whose learner is there, where sets share slots


def many(num_slots: int, num_actions: int, *, shared: bool) -> Many:
    """Learners that have seen nothing."""
    learners = jax.tree.map(lambda x: jnp.stack([x] * num_slots), start(num_actions))
    return Many(learners, jnp.zeros((num_slots, num_actions), bool) if shared else None)


def at(table: Many, slot: Int[Array, ""], owner: Bool[Array, " K"] | None = None) -> Hedge:
    """The learner in a slot; a new one if the slot has another owner."""
    found = jax.tree.map(lambda x: selection.at(x, slot), table.learners)
    if table.owners is None or owner is None:
        return found
    same = (selection.at(table.owners, slot) == owner).all()
    new = start(found.losses.size)
    return jax.tree.map(lambda x, y: jnp.where(same, x, y), found, new)


def put(
    table: Many, slot: Int[Array, ""], learner: Hedge, owner: Bool[Array, " K"] | None = None
) -> Many:
    """The table with this learner in a slot."""
    learners = jax.tree.map(lambda x, new: x.at[slot].set(new), table.learners, learner)
    owners = None if table.owners is None else table.owners.at[slot].set(owner)
    return Many(learners, owners)


def _rate(learner):
    # A single action needs no rate; that of two avoids a division by zero.
    return np.log(max(learner.losses.size, 2)) / learner.mixability


def _soft_minimum(sums, rate):
    """`-log(sum of exp(-rate L)) / rate`."""
    least = sums.min()
    return least - jnp.log(jnp.exp(-rate * (sums - least)).sum()) / rate
