"""The environment of K arms whose reward laws do not change."""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from ...core import Env
from ...kernels.tracing import traced_once
from ...types import Scalar
from ..instance import Instance
from ..settled import is_settled
from .poisson import poisson
from .simulated import Simulated
from .student import Heteroscedastic, Student


class Law(Protocol):
    """A law of rewards: the noise of one draw or of a batch, and the reward that it gives."""

    noise: Callable[..., Any]  # (key, shape)
    counted_noise: Callable[..., Any]  # (key, shape)
    reward: Callable[..., Any]  # (instance, noise, arm [S]) -> [S]
    total: Callable[..., Any]  # (instance, noise, arm [S], count [S]) -> [S]


TIED: float = 1e-12  # values that differ by less than this share of the largest are tied


def finite(instance: Instance, *, epsilon: Scalar = 0.0, identifies: bool = True) -> Env:
    """The environment of an `Instance`.

    A batch of draws is one exact sufficient statistic: a Normal, Binomial or Poisson sum, or a
    multinomial over recorded values. Only simulators and Student's t draw one by one. Rewards of 1
    and -1 are twice those of 1 and 0, less one.

    Args:
      instance: an `Instance`.
      epsilon: an answer whose value is within `epsilon` of the best (for sets: every member
        within `epsilon` of the m-th best) is correct; in units of a reward.
      identifies: whether the algorithm stops only when it knows the answer, so that ties matter.
    Returns:
      An `Env`.
    """
    instance = jax.tree.map(jnp.asarray, instance)  # NumPy cannot be indexed by a tracer
    means, values = instance.means, instance.values
    best = means.max()
    law = LAWS[instance.rewards]

    def noise(key, shape, counted):
        return law.counted_noise(key, shape) if counted else law.noise(key, shape)

    def reward(noise, move):
        if move.count is None:
            return law.reward(instance, noise, move.arm)
        return law.total(instance, noise, move.arm, move.count)

    def regret(move):
        count = 1 if move.count is None else move.count
        return (count * (best - means[move.arm])).sum()

    def correct(answer):
        if jnp.issubdtype(answer.dtype, jnp.bool_):
            worst = jnp.where(answer, values, jnp.inf).min()
            return (worst >= jnp.sort(values)[-answer.sum()] - epsilon) & answer.any()
        return values[answer] >= values.max() - epsilon

    def tied(answer):
        if not identifies:
            return jnp.array(False)
        least = TIED * jnp.abs(values).max()
        if jnp.issubdtype(answer.dtype, jnp.bool_):
            ranked, size = jnp.sort(values), answer.sum()
            gap = ranked[-size] - ranked[-size - 1]
            return (size > 0) & (size < values.size) & (gap <= least) & (epsilon <= 0)
        return ((values >= values.max() - least).sum() > 1) & (epsilon <= 0)

    def unsettled(answer):
        one = not jnp.issubdtype(answer.dtype, jnp.bool_)
        return ~_settled(instance.estimated, 1 if one else answer.sum(), epsilon)

    def regret_errors(arm_pulls):
        in_best = jnp.arange(means.size) == means.argmax()
        apart = jnp.where(in_best, arm_pulls.sum(), 0) - arm_pulls
        return jnp.where(apart == 0, 0.0, apart * instance.standard_errors)  # they can be infinite

    facts: dict[str, Any] = {"num_answers": values.shape[0], "tied": tied}
    if instance.estimated is not None:
        facts |= {"unsettled": unsettled, "regret_errors": regret_errors}
    return Env(noise, reward, regret, correct, means.shape[0], **facts)


@traced_once
def _settled(found, m, epsilon):
    return is_settled(found, m, epsilon, jnp)


class _Normal:
    noise = staticmethod(jax.random.normal)
    counted_noise = staticmethod(jax.random.normal)

    @staticmethod
    def reward(instance, noise, arm):
        return instance.means[arm] + jnp.sqrt(instance.noise_var) * noise

    @staticmethod
    def total(instance, noise, arm, count):
        return count * instance.means[arm] + jnp.sqrt(count * instance.noise_var) * noise


class _Keyed:
    """Sums whose law has no standardised form: their noise is the key of the draws."""

    @staticmethod
    def counted_noise(key, shape):
        return key


class _Bernoulli(_Keyed):
    noise = staticmethod(jax.random.uniform)

    @staticmethod
    def reward(instance, noise, arm):
        return (noise < instance.means[arm]).astype(instance.means.dtype)

    @staticmethod
    def total(instance, noise, arm, count):
        probability, dtype = instance.means[arm], instance.means.dtype
        drawn = jax.random.binomial(noise, count.astype(dtype), probability, dtype=dtype)
        return jnp.where(count > 0, drawn, 0.0)


class _Sign(_Keyed):
    """Rewards 1 and -1: twice a Bernoulli reward of probability (1 + mean) / 2, less one."""

    noise = staticmethod(jax.random.uniform)

    @staticmethod
    def reward(instance, noise, arm):
        return 2.0 * (noise < (1.0 + instance.means[arm]) / 2.0) - 1.0

    @staticmethod
    def total(instance, noise, arm, count):
        half = dataclasses.replace(instance, means=(1.0 + instance.means) / 2.0)
        return 2.0 * _Bernoulli.total(half, noise, arm, count) - count


class _Poisson(_Keyed):
    @staticmethod
    def noise(key, shape):
        return jax.random.split(key, shape)

    @staticmethod
    def reward(instance, noise, arm):
        # A move of one arm has one key, a batch of moves one key each.
        rate = instance.means[arm]
        return (poisson if rate.ndim == 0 else jax.vmap(poisson))(noise, rate)

    @staticmethod
    def total(instance, noise, arm, count):
        return poisson(noise, count * instance.means[arm])


class _Recorded(_Keyed):
    noise = staticmethod(jax.random.uniform)

    @staticmethod
    def reward(instance, noise, arm):
        size = instance.samples.shape[1]
        return instance.samples[arm, jnp.minimum((noise * size).astype(int), size - 1)]

    @staticmethod
    def total(instance, noise, arm, count):
        size, dtype = instance.samples.shape[1], instance.samples.dtype
        even = jnp.full((*count.shape, size), 1.0 / size, dtype)
        times = jax.random.multinomial(noise, count.astype(dtype), even, dtype=dtype)
        return (times * instance.samples[arm]).sum(-1)


LAWS: dict[str, Law] = {  # ty: ignore[invalid-assignment] static methods of classes
    "normal": _Normal,
    "bernoulli": _Bernoulli,
    "sign": _Sign,
    "poisson": _Poisson,
    "recorded": _Recorded,
    "simulated": Simulated,
    "heteroscedastic": Heteroscedastic,
    "student": Student,
}
