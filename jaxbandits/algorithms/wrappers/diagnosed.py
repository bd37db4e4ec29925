"""A randomised algorithm of GLM regret that counts the events of its regret theorem."""

import dataclasses
import inspect
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import theta_fits
from ...core import Algorithm, Move
from ...feature_tables import require
from ...kernels import selection
from ...kernels.confidence import glm_radius
from ...kernels.estimate import least_squares
from ...kernels.linalg import spd
from ...parameters import Constructor, Values, array, converted, options_of
from ...types import Arms, Key, Rows, Scalar, Table
from ..loops import glm
from .wrapper import Wrapper


class WatchOptions(NamedTuple):
    """The option of `watched`."""

    theta: Annotated[Float[Table, " d"], array("d")]


@dataclasses.dataclass(frozen=True)
class Diagnosed(Wrapper):
    """The constructor `inner`, which has a `deviation`, with its events counted."""

    inner: Constructor[...]

    outer: ClassVar[str] = "watched"
    own: ClassVar[type[tuple[Any, ...]]] = WatchOptions

    def complete(self, arms: Rows, /, **keywords: Any) -> Values:
        """Check all options; what the host adds to those of the inner constructor."""
        _, options = self._checked(arms, keywords)
        return self.complete_inner(arms, options)

    def _checked(self, arms: Rows, keywords: Values) -> tuple[WatchOptions, dict[str, Any]]:
        given, options = self.split_options(keywords)
        own = WatchOptions(**converted(options_of(WatchOptions), {"theta": None} | given))
        theta_fits({"arms": arms, **own._asdict()})
        require(options.get("horizon") is not None, "horizon must be given, got None (unknown)")
        return own, options

    def __call__(self, arms: Rows, /, *args: Any, **keywords: Any) -> Algorithm:
        """The `Algorithm`."""
        _, options = self.split_options(keywords)
        algorithm = self.inner(arms, *args, **options)  # first, for its checks of its own options
        own, options = self._checked(arms, keywords)
        bound = inspect.signature(self.inner).bind(arms, *args, **options)
        bound.apply_defaults()
        arms, facts = jnp.asarray(arms), bound.arguments
        slopes = glm_radius.slopes(facts["family"], facts["kappa"], facts["lipschitz"])
        num_arms, dim = arms.shape
        horizon, model = facts["horizon"], (facts["family"], facts["noise_var"])
        variance = glm.variance_in_unit(*model)
        assert self.inner.deviation is not None  # `watched` asked for it
        limits = EventLimits(
            near=glm_radius.estimate(horizon, dim, variance, slopes[0]),
            shaken=self.inner.deviation(horizon, num_arms, dim, variance, *slopes),
            first=glm.first_arms(arms, facts["begin"])[1],
        )
        theta, unit = jnp.asarray(own.theta), glm.reward_unit(*model)
        return diagnosed(algorithm, arms, theta if unit is None else theta / unit, limits)


class EventLimits(NamedTuple):
    """The constants that the events are defined by."""

    near: Scalar  # c_1
    shaken: Scalar  # c_2
    first: Int[Array, ""]  # draws before the first estimate


class Events(NamedTuple):
    """The rounds of a run that were observed, those in which each event happened, and widths."""

    rounds: Int[Array, ""]
    near: Int[Array, ""]
    shaken: Int[Array, ""]
    raised: Int[Array, ""]
    widths: Float[Array, ""]


class State(NamedTuple):
    """What is remembered besides the inner algorithm's state."""

    inner: glm.State
    events: Events


def diagnosed(
    algorithm: Algorithm, arms: Arms, theta: Float[Array, " d"], limits: EventLimits
) -> Algorithm:
    """The algorithm, with the events of each round counted.

    Args:
      algorithm: one that `glm.glm_regret` makes and whose `Choice` has a `theta`.
      arms: `[K, d]` features.
      theta: the true parameter, in the `reward_unit` of the algorithm.
      limits: the constants of the events.
    """
    best = jnp.argmax(arms @ theta)

    def init(key: Key) -> State:
        zero = jnp.zeros((), int)
        return State(algorithm.init(key), Events(zero, zero, zero, zero, jnp.zeros((), arms.dtype)))

    def ask(key: Key, state: State) -> Move:
        move = algorithm.ask(key, state.inner)
        report, round_info = move.info
        return move._replace(info=(report | state.events._asdict(), round_info))

    def tell(state: State, move: Move, total: Array) -> State:
        inner, round_info = state.inner, move.info[1]
        new = events_of_round(inner, move.arm, round_info.theta)
        has_estimate = inner.counts.sum() >= limits.first
        events = jax.tree.map(lambda x, y: x + jnp.where(has_estimate, y, 0), state.events, new)
        return State(algorithm.tell(inner, move, total), events)

    def events_of_round(inner, arm, sampled):
        """0 for all where the arms drawn do not span, as there is no norm then."""
        inverse = spd.inverse(least_squares.gram(arms, inner.counts), may_lack_rank=True)
        widths = jnp.sqrt(jnp.maximum(spd.quadratic(arms, inverse.matrix), 0.0))
        estimate = inner.fit.theta
        error, moved = arms @ (estimate - theta), arms @ (sampled - estimate)
        found = Events(
            rounds=jnp.ones((), int),
            near=(jnp.abs(error) <= limits.near * widths).all().astype(int),
            shaken=(jnp.abs(moved) <= limits.shaken * widths).all().astype(int),
            raised=(moved[best] > limits.near * widths[best]).astype(int),
            widths=selection.at(widths, arm),
        )
        return jax.tree.map(lambda x: jnp.where(inverse.positive, x, 0), found)

    return Algorithm(init, ask, tell)
