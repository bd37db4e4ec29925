"""Instances whose rewards violate what a learner assumes: one option for each violation."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.random import fold_in
from jaxtyping import Array, Float, Int

from ..messages import brief
from ..parameters import (
    Option,
    converted,
    is_concrete,
    nonnegative,
    positive,
    real,
    require,
)
from ..precision import double
from ..real_numbers import fault, is_flag
from ..signatures import hinting
from ..types import Key, Pytree, Rows, Scalar, Table
from ..whole_numbers import allowed_whole, is_whole, shown
from .instance import Instance

Number: TypeAlias = Float[Table, ""]
Means: TypeAlias = Float[Table, " K"]

DEVIATION: int = 0x5DE71A  # of the key that draws signs
DRIFT: int = 0x5D21F7  # of the key that draws phases
# Of a mean.
RANGES: dict[str, tuple[float, float]] = {
    "bernoulli": (0.0, 1.0),
    "sign": (-1.0, 1.0),
    "poisson": (0.0, np.inf),
}
# Rewards whose variance does not follow from their mean.
FREE: tuple[str, ...] = ("normal", "recorded", "simulated")


class Drift(NamedTuple):
    """The mean of arm k at pull t is `means_k + size sin(2 pi (t / period + phase_k))`."""

    size: Number
    period: Number  # in pulls
    phases: Means  # in [0, 1)


@dataclasses.dataclass(frozen=True)
class Stress:
    """What an environment does without the learner's knowledge; a pytree.

    Attributes:
      variances: `[K]` variance of each arm's reward (of Student's t with `df` above 2), or None.
      df: `[]` degrees of freedom of Student's t, or None.
      drift: a `Drift`, or None.
      delay: rounds by which rewards are late (static).
    """

    variances: Means | None = None
    df: Number | None = None
    drift: Drift | None = None
    delay: int = 0


jax.tree_util.register_dataclass(
    Stress, data_fields=["variances", "df", "drift"], meta_fields=["delay"]
)


class Scaled(NamedTuple):
    """A simulator with shifted rewards and scaled deviations from their mean."""

    simulator: Pytree
    means: Means  # of the simulator
    factors: Means
    shifts: Means

    def reward(self, key: Key, arm: Int[Array, ""]) -> Float[Array, ""]:
        """One draw."""
        deviation = self.simulator.reward(key, arm) - self.means[arm]
        return self.means[arm] + self.shifts[arm] + self.factors[arm] * deviation


def _table(value):
    return np.asarray(value, float)


def _ratios(value):
    if fault(value) is not None or is_flag(value):
        return False
    table = np.asarray(value, float)
    return table.ndim < 2 and bool(((table > 0) & (table < np.inf)).all())


LARGEST_SEED: int = 2**32 - 1  # what `jax.random.fold_in` takes
MOST_LATE: int = 100_000  # rounds, whose moves are kept for each replication that runs


def _up_to(most):
    """A whole number from 0 on."""
    return Option(allowed_whole(0, most), lambda v: is_whole(v, 0, most), int, shown=shown)


LATE: Option = _up_to(MOST_LATE)
OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "variance_ratio": Option("a finite number above 0, or one for each arm", _ratios, _table),
        "df": real("a finite number above 1", lambda v: 1 < v < np.inf),
        "deviation": nonnegative,
        "noise_var_factor": positive,
        "drift": nonnegative,
        "period": positive,
        "delay": LATE,
        "seed": _up_to(LARGEST_SEED),
    }
)
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    dict.fromkeys(OPTIONS) | {"period": 10_000.0, "delay": 0, "seed": 0}
)


@hinting
def stressed(
    instance: Instance | Callable[..., Instance],
    *,
    variance_ratio: Scalar | Rows | None = None,
    df: Scalar | None = None,
    deviation: Scalar | None = None,
    noise_var_factor: Scalar | None = None,
    drift: Scalar | None = None,
    period: Scalar = DEFAULTS["period"],
    delay: int = 0,
    seed: int = 0,
) -> Instance | Callable[..., Instance]:
    """Any instance under stress: noise, means or delays that a learner does not expect.

    Each option violates one assumption; they can be combined, and without any the rewards do not
    change. The learner gets the same facts as without stress, except for `noise_var_factor`. Draws
    stay a pure function of seed, replication and round.

    Args:
      instance: an `Instance`; or a constructor of instances or `functools.partial` of one, random
        or not. In a sweep file `instance = "soare"` names it, beside its own options.
      variance_ratio: unequal noise. The variance of arm k is `variance_ratio ** (k / (K - 1))`
        times the original one, so that of the first arm stays; or `[K]`, a factor for each arm.
      df: heavy tails. Normal noise becomes Student's t with this many degrees of freedom, any
        number above 1. Above 2 it is scaled to the same variance. At 2 or below the variance is
        infinite, and t is multiplied by the original standard deviation.
      deviation: misspecified means. Each mean is moved up or down by so many units of a reward,
        with random signs that are fixed for the instance. Where the features can express the moves,
        the means stay linear.
      noise_var_factor: the learner gets this many times the original `noise_var`. The law of the
        rewards stays.
      drift: of the means, in units of a reward. That of arm k at pull t is `means_k + drift sin(2
        pi (t / period + phase_k))`, with random phases that are fixed for the instance.
      period: pulls.
      delay: rounds that pass before a learner sees a reward, for algorithms that draw an arm or a
        batch of arms a round. Until the first reward arrives it repeats its first move; the
        rewards of the last `delay` rounds are never seen. At most 100,000: the moves without a
        reward are kept, and the time of a round grows with their number.
      seed: of signs and phases; those of a random instance also depend on its key.
    Returns:
      An `Instance`; or a constructor of one, which takes its own options and these.
    Raises:
      ValueError: a bad option, or one that the rewards cannot have: `variance_ratio` where the
        mean gives the variance (0 and 1, 1 and -1, Poisson), `df` where rewards are not normal.
        During simulation: a delay for an algorithm that plays phases.
    Deviations:
      `means`, `values` and the correct answers are those of the true rewards: with `deviation`
      those after it (values too, unless the targets are not the arms), with `drift` their averages
      over a period, while the regret is against the best arm at the time. Means that would leave
      the range of a probability, or fall below 0 for Poisson rewards, are clipped, which changes
      their average. Within a phase or a batch the means are constant, those of its middle pull.
      Sums of Student's t are made draw by draw: they are exact, and a phase of 10^6 draws takes
      some 20 ms; beyond 2^26 draws in one phase the sum is NaN. `theta` is that of the linear
      part. An algorithm that counts its draws counts those it has seen: with a budget it makes
      `delay` more.
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> soare = jb.instances.soare(3, angle=0.5)
      >>> heavy = jb.instances.stressed(soare, df=3.0, delay=8)
      >>> heavy.rewards, heavy.stress.delay
      ('student', 8)
      >>> runs = jb.simulate(heavy, partial(jb.lingape, delta=0.1), replications=10)
      >>> bool(runs.stopped.all())
      True
    """
    given = {"variance_ratio": variance_ratio, "df": df, "deviation": deviation}
    given |= {"noise_var_factor": noise_var_factor, "drift": drift, "period": period}
    given |= {"delay": delay, "seed": seed}
    if isinstance(instance, Instance):
        return _under_stress(instance, None, **converted(OPTIONS, given))
    got = type(instance).__name__
    require(callable(instance), f"instance must be an Instance or make one, got {got}")
    own = {name: value for name, value in given.items() if value is not DEFAULTS[name]}
    if not isinstance(instance, functools.partial):
        return functools.partial(Stressed(instance), **own)
    inner = Stressed(instance.func)
    return functools.partial(inner, *instance.args, **(instance.keywords | own))


@dataclasses.dataclass(frozen=True)
class Stressed:
    """The constructor of instances `inner`, with the options of `stressed` added to its own."""

    inner: Callable[..., Instance]
    outer: ClassVar[str] = "stressed"
    revisions: ClassVar[tuple[str, ...]] = ()  # its own; the inner constructor keeps those it has

    @property
    def __name__(self) -> str:
        """The name of the constructor in messages."""
        return f"{self.outer}({getattr(self.inner, '__name__', repr(self.inner))})"

    @property
    def __signature__(self) -> inspect.Signature:
        named = list(inspect.signature(self.inner).parameters.values())
        own = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in DEFAULTS.items()
        ]
        return inspect.Signature([p for p in named if p.name not in OPTIONS] + own)

    def convert(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Check and convert concrete values."""
        return dict(keywords) | converted(OPTIONS, _own(keywords))

    def __call__(self, *args: Any, **keywords: Any) -> Instance:
        """The `Instance`; the first argument is the key where the inner constructor takes one."""
        own = {**DEFAULTS} | _own(keywords)
        rest = {name: value for name, value in keywords.items() if name not in own}
        instance = self.inner(*args, **rest)
        fits = isinstance(instance, Instance)
        require(fits, f"instance must be an Instance, got {type(instance).__name__}")
        first = next(iter(inspect.signature(self.inner).parameters), None)
        bound = inspect.signature(self.inner).bind(*args, **rest).arguments
        key = None if first is None else bound.get(first)
        key = key if _is_key(key) else None
        return _under_stress(instance, key, **converted(OPTIONS, own))


def _own(keywords):
    return {name: value for name, value in keywords.items() if name in OPTIONS}


def _is_key(value):
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


@double
def _under_stress(
    instance,
    key,
    *,
    variance_ratio,
    df,
    deviation,
    noise_var_factor,
    drift,
    period,
    delay,
    seed,
):
    require(
        instance.stress is None, "instance is under stress already: give all options in one call"
    )
    key = jax.random.key(0, impl="threefry2x32") if key is None else key
    instance = jax.tree.map(jnp.asarray, instance)
    if deviation is not None:
        instance = _deviating(instance, deviation, fold_in(fold_in(key, DEVIATION), seed))
    if variance_ratio is not None:
        instance = _with_factors(instance, _factors(variance_ratio, instance.means.size))
    if df is not None:
        require(
            instance.rewards in ("normal", "heteroscedastic"),
            "df must go with normal rewards",
            instance.rewards,
        )
        instance = _with(
            _with_own_variances(instance), df=jnp.asarray(df, float), rewards="student"
        )
    if noise_var_factor is not None:
        instance = _with_own_variances(instance)
        noise_var = instance.noise_var * noise_var_factor
        instance = dataclasses.replace(instance, noise_var=noise_var)
    if drift is not None:
        shape = (instance.means.size,)
        phases = jax.random.uniform(fold_in(fold_in(key, DRIFT), seed), shape, float)
        size, period = jnp.asarray(drift, float), jnp.asarray(period, float)
        instance = _with(instance, drift=Drift(size, period, phases))
    return _with(instance, delay=delay) if delay else instance


def _with(instance, rewards=None, **more):
    """The instance with more of `Stress`."""
    stress = dataclasses.replace(instance.stress or Stress(), **more)
    return dataclasses.replace(instance, stress=stress, rewards=rewards or instance.rewards)


def _with_own_variances(instance):
    """The instance whose normal rewards have variances of their own, equal to `noise_var`."""
    if instance.rewards != "normal":
        return instance
    variances = jnp.broadcast_to(instance.noise_var, instance.means.shape)
    return _with(instance, variances=variances, rewards="heteroscedastic")


def _factors(ratio, num_arms):
    ratio = jnp.asarray(ratio, float)
    if ratio.ndim == 0:
        return ratio ** jnp.linspace(0.0, 1.0, num_arms)
    fits = ratio.shape == (num_arms,)
    require(fits, f"variance_ratio must have shape {(num_arms,)}, got {ratio.shape}")
    return ratio


def _with_factors(instance, factors):
    """The instance with each arm's variance multiplied."""
    rewards = instance.rewards
    require(
        rewards in FREE,
        f"variance_ratio must go with rewards of one of {FREE}, got {brief(rewards)}, "
        "whose variance is given by the mean",
    )
    if rewards == "normal":
        instance = _with_own_variances(instance)
        return _with(instance, variances=instance.stress.variances * factors)
    return _mapped(instance, jnp.sqrt(factors), jnp.zeros_like(factors))


def _deviating(instance, deviation, key):
    """The instance with each mean moved up or down."""
    signs = 2.0 * jax.random.bernoulli(key, 0.5, instance.means.shape) - 1.0
    means = clipped(instance.rewards, instance.means + deviation * signs)
    shifts, values = means - instance.means, instance.values
    instance = _mapped(instance, jnp.ones_like(shifts), shifts)
    same = instance.targets.shape == instance.arms.shape
    if same and is_concrete(instance.targets) and is_concrete(instance.arms):
        same = np.array_equal(instance.targets, instance.arms)
    return dataclasses.replace(instance, means=means, values=means if same else values)


def _mapped(instance, factors, shifts):
    """The instance with scaled and shifted rewards, where a table or a simulator gives them."""
    if instance.rewards == "recorded":
        deviations = instance.samples - instance.means[:, None]
        samples = (instance.means + shifts)[:, None] + factors[:, None] * deviations
        return dataclasses.replace(instance, samples=samples)
    if instance.rewards == "simulated":
        simulator = Scaled(instance.simulator, instance.means, factors, shifts)
        errors = instance.standard_errors
        errors = None if errors is None else factors * errors
        return dataclasses.replace(instance, simulator=simulator, standard_errors=errors)
    return instance


def clipped(rewards: str, means: Means) -> Float[Array, " K"]:
    """Means within the range that such rewards can have."""
    low, high = RANGES.get(rewards, (-np.inf, np.inf))
    return jnp.clip(means, low, high)
