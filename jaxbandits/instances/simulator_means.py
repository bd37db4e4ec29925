"""Means of rewards, estimated from a simulator, and what its draws show of their law."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from ..feature_tables import is_concrete
from ..precision import is_traced
from ..system.callbacks import errors_named
from ..system.named import is_named
from ..system.traces import TraceCache
from ..types import Key, Pytree, Table
from .doubts import relative_error
from .settled import Estimated, is_settled
from .simulator_code import reward_trace

BLOCK: int = 256  # draws that are made in parallel
DRAWS: int = 2000  # of each arm at first
MANY_DRAWS: int = 16 * DRAWS  # made in one call once there are so many
MOST_KEYS: int = 2**32  # of draws of all arms together
MOST_DRAWS: int = 2048 * DRAWS  # of each arm, where they go on until the best arms are settled


class Sample(NamedTuple):
    """What some draws of each arm show; draws of more can be added to it."""

    number: Int[Table, ""] | int  # draws of each arm
    means: Float[Table, " K"]
    roots: Float[Table, " K"]  # of the sums of squared deviations, which might overflow

    def estimated(self, numpy: Any = np) -> Estimated:
        """The means with their standard errors, which are infinite after a single draw."""
        spread = self.roots / numpy.sqrt(numpy.maximum(self.number - 1.0, 1.0) * self.number)
        errors = numpy.where(self.number > 1, spread, numpy.inf)
        return Estimated(self.means, errors, self.number)


class Law(NamedTuple):
    """What they show of the law of an arm's rewards."""

    varies: Bool[Array, " K"]
    deviations: Float[Array, " K"]  # standard deviation of a reward
    relative_errors: Float[Array, " K"]  # of its square, the variance
    shares: Float[Array, " K"]  # of the sum of squared deviations that is due to one draw


Drawn: TypeAlias = tuple[Sample, Law]
Draw: TypeAlias = Callable[[Any], Drawn]  # from the number of the first draw of an arm


def draws_of(
    simulator: Pytree, key: Key, num_arms: int, draws: int, traces: TraceCache | None = None
) -> Draw:
    """A function that makes `draws` draws of each arm; draw i has the same key in each call."""
    draw = partial(_drawn, _reward, num_arms=num_arms, draws=draws)
    if is_named(jax.tree.structure(simulator)):
        draw = partial(_drawn_by_own, num_arms=num_arms, draws=draws)
    elif not is_traced(simulator, key):
        draw = _compiled(reward_trace(simulator, traces), num_arms, draws)

    def made(first: Any) -> Drawn:
        with errors_named():
            found = draw(simulator, key, jnp.asarray(first, int))
            return found if is_traced(found) else jax.block_until_ready(found)

    return made


def _drawn(reward, simulator, key, first, *, num_arms, draws):
    blocks = -(-num_arms * draws // BLOCK)
    start = first * num_arms

    def block(offset):
        numbers = offset + jnp.arange(BLOCK)
        keys = jax.vmap(partial(jax.random.fold_in, key))(start + numbers)
        return jax.vmap(partial(reward, simulator))(keys, numbers % num_arms)

    rewards = lax.map(block, BLOCK * jnp.arange(blocks))
    return _described(rewards.ravel()[: num_arms * draws].reshape(draws, num_arms))


def _reward(simulator, key, arm):
    return simulator.reward(key, arm)


_drawn_by_own = jax.jit(partial(_drawn, _reward), static_argnames=("num_arms", "draws"))


@lru_cache(maxsize=64)
def _compiled(trace, num_arms, draws):
    """A program of a user's reward as it has been traced, which is not called again for it."""
    return jax.jit(partial(_drawn, trace, num_arms=num_arms, draws=draws))


def _described(table):
    """`Sample` and `Law` of rewards `[N, K]`."""
    number, means = len(table), table.mean(0)
    varies = (table != table[0]).any(0)
    distances = jnp.abs(table - means)
    sizes = jnp.where(varies, distances.max(0), 1.0)  # in this unit squares are in range
    squares = jnp.where(varies, (distances / sizes) ** 2, 0.0)
    variances = squares.mean(0)
    sample = Sample(jnp.asarray(number, int), means, sizes * jnp.sqrt(squares.sum(0)))
    total = jnp.where(varies, squares.sum(0), jnp.inf)
    law = Law(
        varies=varies,
        deviations=sizes * jnp.sqrt(variances),
        relative_errors=relative_error(squares, jnp),
        shares=1.0 / total,
    )
    return sample, law


def joined(one: Sample, two: Sample, numpy: Any = np) -> Sample:
    """What the draws of both show together."""
    number = one.number + two.number
    apart = numpy.abs(two.means - one.means) * numpy.sqrt(one.number * (two.number / number))
    roots = numpy.hypot(numpy.hypot(one.roots, two.roots), apart)
    means = one.means + (two.means - one.means) * (two.number / number)
    return Sample(number, means, roots)


def drawn(
    simulator: Pytree, key: Key, num_arms: int, draws: int, traces: TraceCache | None = None
) -> Drawn:
    """`Sample` and `Law` of so many draws; of more than fit a table, the law of the first ones."""
    if draws <= MOST_DRAWS:
        return draws_of(simulator, key, num_arms, draws, traces)(0)
    sample, law = draws_of(simulator, key, num_arms, MANY_DRAWS, traces)(0)
    while sample.number < draws:
        part = min(MANY_DRAWS, draws - int(sample.number))
        more, _ = draws_of(simulator, key, num_arms, part, traces)(sample.number)
        sample = jax.tree.map(np.asarray, joined(sample, jax.tree.map(np.asarray, more)))
    return sample, law


def until_settled(
    simulator: Pytree, key: Key, num_arms: int, m: int, traces: TraceCache | None = None
) -> Drawn:
    """Draws that are doubled until the m best arms are settled, or there are `MOST_DRAWS`.

    Returns:
      `Sample` of all draws and `Law` of the first ones; whether they settle it is to be seen.
    """
    few, many = (draws_of(simulator, key, num_arms, n, traces) for n in (DRAWS, MANY_DRAWS))
    sample, law = few(0)
    known = is_concrete(sample.means)
    numpy, most = np if known else jnp, min(MOST_DRAWS, MOST_KEYS // num_arms)

    def goes_on(sample):
        times = sample.number // DRAWS
        looks = (times & (times - 1)) == 0  # after a power of two
        constant = (sample.roots == 0).all()  # as many draws as one likes show the same
        settled = is_settled(sample.estimated(numpy), m, numpy=numpy) | constant
        return ~looks | (~settled & (2 * sample.number <= most))

    def more(sample):
        draw = many if known and sample.number >= MANY_DRAWS else few
        return joined(sample, draw(sample.number)[0], numpy)

    # A simulator in single precision gives such means, which are added up in double precision.
    sample = sample._replace(
        means=numpy.asarray(sample.means, float), roots=numpy.asarray(sample.roots, float)
    )
    if not known:
        return lax.while_loop(goes_on, more, sample), law
    sample = jax.tree.map(np.asarray, sample)
    while goes_on(sample):  # here, so that Ctrl-C is heard
        sample = jax.tree.map(np.asarray, more(sample))
    return sample, law
