"""AdaHedge: exponential weights whose rate adapts to the losses (de Rooij et al., 2014)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .. import selection

FIRST = 0.01  # the mixability gap to begin with; any small number above 0 will do


class Hedge(NamedTuple):
    """A learner over K actions."""

    losses: Array  # float [K] sums so far
    mixability: Array  # float [] sum of the gaps between own loss and mix loss


def start(num_actions: int) -> Hedge:
    """A learner that has seen nothing."""
    return Hedge(jnp.zeros(num_actions), jnp.full((), FIRST))


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
    """A learner for each of several places."""

    learners: Hedge  # losses [L, K], mixability [L]
    owners: Array | None  # bool [L, K]: the set whose learner is there, where sets share places


def many(num_places: int, num_actions: int, *, shared: bool) -> Many:
    """Learners that have seen nothing."""
    learners = jax.tree.map(lambda x: jnp.stack([x] * num_places), start(num_actions))
    return Many(learners, jnp.zeros((num_places, num_actions), bool) if shared else None)


def at(table: Many, place: Int[Array, ""], owner: Bool[Array, " K"] | None = None) -> Hedge:
    """The learner of a place, a new one if it is another owner's."""
    found = jax.tree.map(lambda x: selection.at(x, place), table.learners)
    if table.owners is None:
        return found
    same = (selection.at(table.owners, place) == owner).all()
    new = start(found.losses.size)
    return jax.tree.map(lambda x, y: jnp.where(same, x, y), found, new)


def put(table: Many, place: Int[Array, ""], learner: Hedge, owner=None) -> Many:
    """The table with this learner at a place."""
    learners = jax.tree.map(lambda x, new: x.at[place].set(new), table.learners, learner)
    owners = None if table.owners is None else table.owners.at[place].set(owner)
    return Many(learners, owners)


def _rate(learner):
    # A single action needs no rate; that of two avoids a division by zero.
    return np.log(max(learner.losses.size, 2)) / learner.mixability


def _soft_minimum(sums, rate):
    """`-log(sum of exp(-rate L)) / rate`."""
    least = sums.min()
    return least - jnp.log(jnp.exp(-rate * (sums - least)).sum()) / rate
