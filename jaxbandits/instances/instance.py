"""The `Instance` and the builders that make one from data."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..feature_tables import check_arms, check_real, is_concrete, require
from ..kernels.estimate.links import FAMILIES, LINKS
from ..parameters import check, choice, count, nonnegative, positive, size
from ..precision import double
from .simulator_means import sampled_means


@dataclasses.dataclass(frozen=True)
class Instance:
    """A problem: a plain pytree of float64 arrays, NumPy outside a trace.

    Attributes:
      arms: `[K, d]` features.
      targets: `[M, d]` features of what may be answered; the arms unless transductive.
      means: `[K]` expected reward of each arm.
      values: `[M]` expected reward of each target.
      theta: `[d]` the parameter; zeros where the means are not linear in the features.
      noise_var: `[]` variance (or sub-Gaussian proxy) of a reward, as the learner is told.
      theta_norm: `[]` a bound on the norm of theta a learner may be told, or None: unknown.
      samples: `[K, N]` recorded rewards, or None.
      simulator: a pytree of arrays with a method `reward(key, arm)`, or None.
      stress: what a learner is not told, see `stressed`, or None.
      rewards: what draws them: "normal", "bernoulli", "sign" (1 or -1), "poisson", "recorded",
        "simulated", or under stress "heteroscedastic" or "student" (static).
      family: the generalised linear model a learner may assume (static).
    """

    arms: jax.Array
    targets: jax.Array
    means: jax.Array
    values: jax.Array
    theta: jax.Array
    noise_var: jax.Array
    theta_norm: jax.Array | None = None
    samples: jax.Array | None = None
    simulator: Any = None
    stress: Any = None
    rewards: str = "normal"
    family: str = "gaussian"


jax.tree_util.register_dataclass(
    Instance,
    data_fields=[f.name for f in dataclasses.fields(Instance)][:10],
    meta_fields=["rewards", "family"],
)


def check_option(option, **value):
    """Raise unless the one named value (or None) is what `option` allows."""
    ((name, number),) = value.items()
    if number is not None:
        check(name, option, number)
        whole = option.convert is not int or hasattr(number, "__index__")
        require(whole, f"{name} must be written as a whole number here, got {number!r}")


def check_finite(name, array, shape):
    """Raise unless `array` has `shape` and, where it can be looked at, only finite entries."""
    check_real(name, array)
    require(np.shape(array) == shape, f"{name} must have shape {shape}, got {np.shape(array)}")
    if is_concrete(array):
        require(np.isfinite(np.asarray(array, float)).all(), f"{name} must be finite, got NaN")


def _build(arms, targets, means, values, theta, noise_var, theta_norm, **rest):
    arms = jnp.asarray(arms, float)
    targets = arms if targets is None else jnp.asarray(targets, float)
    theta_norm = None if theta_norm is None else jnp.asarray(theta_norm, float)
    numbers = (jnp.asarray(x, float) for x in (means, values, theta, noise_var))
    return Instance(arms, targets, *numbers, theta_norm, **rest)


@double
def linear(arms, theta, *, noise_var=1.0, targets=None):
    """Normal rewards with means `arms @ theta`.

    Args:
      arms: `[K, d]`.
      theta: `[d]`.
      noise_var: variance of a reward.
      targets: `[M, d]`, the arms by default.
    Returns:
      An `Instance` whose `theta_norm` is the norm of theta.
    Raises:
      ValueError: wrong shapes, NaN, or a variance not above 0.

    >>> linear([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0]).means
    array([0.5, 0. ])
    """
    check_arms(arms, targets)
    check_finite("theta", theta, (np.shape(arms)[1],))
    check_option(positive, noise_var=noise_var)
    arms, theta = jnp.asarray(arms, float), jnp.asarray(theta, float)
    targets = arms if targets is None else jnp.asarray(targets, float)
    norm = jnp.linalg.norm(theta)
    return _build(arms, targets, arms @ theta, targets @ theta, theta, noise_var, norm)


@double
def tabular(arms, means, *, noise_var=1.0, targets=None, values=None, theta_norm=None):
    """Normal rewards with any `means [K]`, linear in the features or not.

    Args:
      arms: `[K, d]` what the learner sees.
      means: `[K]`.
      noise_var: variance of a reward.
      targets, values: `[M, d]` and `[M]` together, or the arms and their means by default.
      theta_norm: what a learner is told, unknown by default.
    Returns:
      An `Instance` with `theta` zero.
    Raises:
      ValueError: wrong shapes, NaN, targets without values, a variance not above 0.
    """
    check_arms(arms, targets)
    check_finite("means", means, (np.shape(arms)[0],))
    check_option(positive, noise_var=noise_var)
    check_option(nonnegative, theta_norm=theta_norm)
    require((targets is None) == (values is None), "values must be given with targets, got one")
    if values is not None:
        check_finite("values", values, (np.shape(targets)[0],))
    values = means if values is None else values
    theta = jnp.zeros(np.shape(arms)[1])
    return _build(arms, targets, means, values, theta, noise_var, theta_norm)


@double
def glm(arms, theta, *, family="logistic"):
    """A generalised linear model: means `mu(arms @ theta)`.

    Args:
      arms: `[K, d]`.
      theta: `[d]`.
      family: "logistic" or "probit" (Bernoulli rewards), "poisson", "gaussian" (variance 1).
    Returns:
      An `Instance` whose learner is told the family and the norm of theta; `noise_var` is 1/4
      for Bernoulli rewards, 1 for normal ones and the largest mean for Poisson ones.
    Raises:
      ValueError: wrong shapes, NaN, an unknown family.
    """
    check_arms(arms)
    check_finite("theta", theta, (np.shape(arms)[1],))
    check_option(choice(*FAMILIES), family=family)
    arms, theta = jnp.asarray(arms, float), jnp.asarray(theta, float)
    means = LINKS[family].mean(arms @ theta)
    rewards = {"gaussian": "normal", "poisson": "poisson"}.get(family, "bernoulli")
    noise_var = {"normal": 1.0, "poisson": means.max(), "bernoulli": 0.25}[rewards]
    norm = jnp.linalg.norm(theta)
    return _build(arms, arms, means, means, theta, noise_var, norm, rewards=rewards, family=family)


@double
def bernoulli(arms, means, *, theta_norm=None):
    """Bernoulli rewards with any `means [K]` in [0, 1]; the learner is told "logistic".

    Args:
      arms: `[K, d]`.
      means: `[K]` success probabilities.
      theta_norm: what a learner is told, unknown by default.
    Raises:
      ValueError: wrong shapes, or a mean outside [0, 1].
    """
    check_arms(arms)
    check_finite("means", means, (np.shape(arms)[0],))
    check_option(nonnegative, theta_norm=theta_norm)
    if is_concrete(means):
        low, high = np.min(means), np.max(means)
        require(low >= 0 and high <= 1, f"means must lie in [0, 1], got {low} to {high}")
    theta = jnp.zeros(np.shape(arms)[1])
    family = {"rewards": "bernoulli", "family": "logistic"}
    return _build(arms, None, means, means, theta, 0.25, theta_norm, **family)


@double
def recorded(arms, samples, *, noise_var, theta_norm=None):
    """A pull draws one recorded value of the arm, uniformly and with replacement.

    Args:
      arms: `[K, d]`.
      samples: `[K, N]` recorded rewards.
      noise_var: what the learner is told.
      theta_norm: what the learner is told, unknown by default.
    Returns:
      An `Instance` whose means are those of the samples; `theta` is zero.
    Raises:
      ValueError: wrong shapes or NaN.
    """
    check_arms(arms)
    check_real("samples", samples)
    shape = np.shape(samples)
    require(
        len(shape) == 2 and shape[0] == np.shape(arms)[0] and shape[1] > 0,
        f"samples must be a table [{np.shape(arms)[0]}, N], got shape {shape}",
    )
    check_finite("samples", samples, shape)
    check_option(positive, noise_var=noise_var)
    check_option(nonnegative, theta_norm=theta_norm)
    samples = jnp.asarray(samples, float)
    means, theta = samples.mean(1), jnp.zeros(np.shape(arms)[1])
    rest = {"samples": samples, "rewards": "recorded"}
    return _build(arms, None, means, means, theta, noise_var, theta_norm, **rest)


def _check_simulator(simulator, key):
    """Raise unless it is a pytree whose `reward(key, arm)` is a single number."""
    leaves = jax.tree.leaves(simulator)
    is_tree = all(isinstance(x, np.ndarray | np.generic | jax.Array | float | int) for x in leaves)
    require(is_tree, f"simulator must be a pytree of arrays, got {type(simulator).__name__}")
    method = callable(getattr(simulator, "reward", None))
    require(method, "simulator must have a method `reward(key, arm)`, got none")
    reward = jax.eval_shape(lambda x, *args: x.reward(*args), simulator, key, jnp.zeros((), int))
    shape = getattr(reward, "shape", None)
    require(shape == (), f"simulator: a reward must be a single number, got shape {shape}")
    check_real("simulator: a reward", reward)


@double
def simulated(arms, simulator, *, noise_var, draws=2000, seed=0, theta_norm=None):
    """Rewards from a simulator; the mean of each arm is estimated from draws.

    What is a right answer is told by these estimates, so the standard error of a mean,
    `sd / sqrt(draws)`, has to be small beside the gaps that matter.

    Args:
      arms: `[K, d]` features.
      simulator: a pytree of arrays with a method `reward(key, arm) -> []`, pure, for one arm
        given as a traced integer. It is compiled together with the algorithm.
      noise_var: what the learner is told.
      draws: of each arm, for the means.
      seed: of these draws alone; the same one gives the same means.
      theta_norm: what the learner is told, unknown by default.
    Returns:
      An `Instance` with `theta` zero.
    Raises:
      ValueError: wrong shapes, NaN, a variance not above 0, no draws, a simulator that is no
        pytree or whose reward is not a single number.

    >>> from typing import Any, NamedTuple
    >>> class Dice(NamedTuple):
    ...     sides: Any
    ...     def reward(self, key, arm):
    ...         return 1.0 + jax.random.randint(key, (), 0, self.sides[arm])
    >>> dice = simulated([[1.0, 0.0], [0.0, 1.0]], Dice(jnp.array([5, 19])), noise_var=100.0)
    >>> dice.means.round()
    array([ 3., 10.])
    """
    check_arms(arms)
    check_option(positive, noise_var=noise_var)
    check_option(nonnegative, theta_norm=theta_norm)
    check_option(size(1), draws=draws)
    check_option(count(0), seed=seed)
    arms = jnp.asarray(arms, float)
    key = jax.random.key(seed, impl="threefry2x32")
    _check_simulator(simulator, key)
    means = sampled_means(simulator, key, len(arms), int(draws))
    finite = not is_concrete(means) or np.isfinite(means).all()
    require(finite, "simulator: its rewards must be finite, got NaN or infinity")
    rest = {"simulator": simulator, "rewards": "simulated"}
    theta = jnp.zeros(arms.shape[1])
    return _build(arms, None, means, means, theta, noise_var, theta_norm, **rest)
