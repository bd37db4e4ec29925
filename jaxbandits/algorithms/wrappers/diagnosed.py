"""A randomised algorithm of GLM regret that counts the events of its theorem as it plays."""

import dataclasses
import inspect
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...conditions import theta_fits
from ...core import Algorithm
from ...feature_tables import require
from ...kernels import selection
from ...kernels.confidence import glm_radius
from ...kernels.estimate import least_squares
from ...kernels.linalg import spd
from ...parameters import array, converted
from ..loops import glm
from .wrapper import Wrapped


@dataclasses.dataclass(frozen=True)
class Watched(Wrapped):
    """The constructor `inner`, whose `spread` gives c_2 as `glm_radius` does, watched."""

    outer = "watched"
    own = MappingProxyType({"theta": array("d")})
    defaults = MappingProxyType({"theta": inspect.Parameter.empty})

    def complete(self, arms, **keywords):
        """Check; what the host adds to the inner options."""
        _, told = self._parted(arms, keywords)
        return self.complete_inner(arms, told)

    def _parted(self, arms, keywords):
        own, told = self.parted(keywords)
        own = converted(self.own, {"theta": None} | own)
        theta_fits({"arms": arms, **own})
        require(told.get("horizon") is not None, "horizon must be given, got None (unknown)")
        return own, told

    def __call__(self, arms, *args, **keywords):
        """The `Algorithm`."""
        algorithm = self.inner(arms, *args, **self.parted(keywords)[1])  # all checks of its own
        own, told = self._parted(arms, keywords)
        bound = inspect.signature(self.inner).bind(arms, *args, **told)
        bound.apply_defaults()
        arms, facts = jnp.asarray(arms), bound.arguments
        slopes = glm_radius.slopes(facts["family"], facts["kappa"], facts["lipschitz"])
        num_arms, dim = arms.shape
        horizon, noise_var = facts["horizon"], facts["noise_var"]
        near = glm_radius.estimate(horizon, dim, noise_var, slopes[0])
        shaken = self.inner.spread(horizon, num_arms, dim, noise_var, *slopes)
        limits = Limits(near, shaken, glm.first_arms(arms, facts["begin"])[1])
        return watching(algorithm, arms, jnp.asarray(own["theta"]), limits)


class Limits(NamedTuple):
    """What the events are about."""

    near: Any  # c_1
    shaken: Any  # c_2
    first: Any  # int [] draws before the first estimate


class Seen(NamedTuple):
    """What was counted so far."""

    rounds: jax.Array  # int []
    near: jax.Array  # int []
    shaken: jax.Array  # int []
    raised: jax.Array  # int []
    widths: jax.Array  # float []


class State(NamedTuple):
    """What is remembered besides the inner algorithm's state."""

    inner: glm.Learnt
    seen: Seen


def watching(algorithm, arms, theta, limits) -> Algorithm:
    """The algorithm, and what there is to see in each of its rounds."""
    best = jnp.argmax(arms @ theta)

    def init(key):
        zero = jnp.zeros((), int)
        return State(algorithm.init(key), Seen(zero, zero, zero, zero, jnp.zeros((), arms.dtype)))

    def ask(key, state):
        move = algorithm.ask(key, state.inner)
        report, told = move.info
        return move._replace(info=(report | state.seen._asdict(), told))

    def tell(state, move, total):
        learnt, told = state.inner, move.info[1]
        now = event(learnt, move.arm, told.theta)
        begun = learnt.counts.sum() >= limits.first
        # All its counts are 0 where there is no norm.
        seen = jax.tree.map(lambda old, new: old + jnp.where(begun, new, 0), state.seen, now)
        return State(algorithm.tell(learnt, move, total), seen)

    def event(learnt, arm, random):
        lengths = spd.inverse(least_squares.gram(arms, learnt.counts), may_lack_rank=True)
        widths = jnp.sqrt(jnp.maximum(spd.quadratic(arms, lengths.matrix), 0.0))
        away, moved = arms @ (learnt.fit.theta - theta), arms @ (random - learnt.fit.theta)
        found = Seen(
            rounds=jnp.ones((), int),
            near=(jnp.abs(away) <= limits.near * widths).all().astype(int),
            shaken=(jnp.abs(moved) <= limits.shaken * widths).all().astype(int),
            raised=(moved[best] > limits.near * widths[best]).astype(int),
            widths=selection.at(widths, arm),
        )
        return jax.tree.map(lambda x: jnp.where(lengths.positive, x, 0), found)

    return Algorithm(init, ask, tell)
