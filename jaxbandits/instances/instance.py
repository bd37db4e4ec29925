"""The `Instance` and the builders that make one from data."""

import dataclasses
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..feature_tables import check_arms, check_entries, is_concrete, require
from ..kernels.estimate.links import LARGEST, LINKS
from ..parameters import Family, Nonnegative, Normal
from ..precision import check_real, double, floats, owned
from ..types import Pytree, Rows, Table
from .doubts import relative_error, warn_of_constants, warn_of_variances
from .options import check_room, checked
from .settled import Estimated

Number: TypeAlias = Float[Table, ""]
Means: TypeAlias = Float[Table, " K"]

LINEAR = 1e-9  # of the largest mean: less is rounding
MOST_FITTED = 1_000_000  # entries of arms whose means are compared with a linear fit, to be printed


@dataclasses.dataclass(frozen=True, repr=False)
class Instance:
    """A bandit instance: a pytree of float64 arrays, NumPy outside a trace.

    Constructors copy the arrays that they are given, and what they keep is read-only.

    Attributes:
      arms: `[K, d]` features.
      targets: `[M, d]` features of what may be answered; the arms unless transductive.
      means: `[K]` expected reward of each arm.
      values: `[M]` expected reward of each target.
      theta: `[d]` the parameter; zeros where the means are not linear in the features.
      noise_var: `[]` variance (or sub-Gaussian proxy) of a reward, given to the learner.
      theta_norm: `[]` a bound on the norm of theta, which the learner may know, or None: unknown.
      samples: `[K, N]` recorded rewards, or None.
      simulator: a pytree of arrays with a method `reward(key, arm)`, or None.
      stress: what the learner does not know, see `stressed`, or None.
      standard_errors: `[K]` of the means where these are estimated, else None; infinite where each
        rests on a single draw.
      draws: `[]` of each arm, from which means were estimated, or None.
      rewards: their law: "normal", "bernoulli", "sign" (1 or -1), "poisson", "recorded",
        "simulated", or under stress "heteroscedastic" or "student" (static).
      family: the generalised linear model a learner may assume (static).
      simulator_code: what the operations of the simulator's reward were when its means were taken,
        or None where nobody but this package can change them (static).

    >>> instance = linear([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.4])
    >>> instance
    Instance(2 arms in 2 dimensions, normal rewards with variance 1, best mean 0.9, next 0.4)
    >>> instance.means
    array([0.9, 0.4])
    """

    arms: Float[Table, "K d"]
    targets: Float[Table, "M d"]
    means: Means
    values: Float[Table, " M"]
    theta: Float[Table, " d"]
    noise_var: Number
    theta_norm: Number | None = None
    samples: Float[Table, "K N"] | None = None
    simulator: Pytree = None
    stress: Pytree = None
    rewards: str = "normal"
    family: str = "gaussian"
    standard_errors: Means | None = None
    draws: Int[Table, ""] | int | None = None
    simulator_code: str | None = None

    @property
    def estimated(self) -> Estimated | None:
        """The means as estimates, or None where they are known."""
        if self.standard_errors is None or self.draws is None:
            return None
        return Estimated(self.means, self.standard_errors, self.draws)

    def __repr__(self) -> str:
        """What kind of instance it is, in a line; the tables are the attributes."""
        tables = (self.arms, self.targets, self.means, self.values, self.noise_var)
        known = all(isinstance(x, np.ndarray | np.generic | float) for x in tables)
        if not known or np.shape(self.means) != np.shape(self.arms)[:1]:
            return f"Instance(of {self.rewards} rewards)"  # traced, or a tree of something else
        shape, values = np.shape(self.arms), np.sort(self.values, axis=None)
        parts = [f"{shape[0]} arms in {shape[-1]} dimensions"]
        if not np.array_equal(self.arms, self.targets):
            parts.append(f"{len(self.targets)} targets")
        parts.append(f"{self.rewards} rewards with variance {self.noise_var:.4g}")
        if len(values) > 1:
            parts.append(f"best mean {values[-1]:.4g}, next {values[-2]:.4g}")
        if self.estimated is not None:
            parts.append(_accuracy(self.estimated))
        apart = self._distance_from_linear()
        if apart > LINEAR * np.abs(self.means).max():
            parts.append(f"means up to {apart:.2g} from linear")
        return f"Instance({', '.join(parts)})"

    def _distance_from_linear(self) -> float:
        """The largest distance of a mean from their linear fit; 0 where none is expected."""
        if self.family != "gaussian" or np.any(self.theta) or self.arms.size > MOST_FITTED:
            return 0.0
        fit = self.arms @ np.linalg.lstsq(self.arms, self.means)[0]
        return float(np.abs(self.means - fit).max())


STATIC: list[str] = ["rewards", "family", "simulator_code"]
jax.tree_util.register_dataclass(
    Instance,
    data_fields=[f.name for f in dataclasses.fields(Instance) if f.name not in STATIC],
    meta_fields=STATIC,
)


def _accuracy(found):
    """The standard errors of estimated means, in words."""
    if found.draws < 2:
        return "each mean one draw"
    low, high = (f"{error:.2g}" for error in (found.errors.min(), found.errors.max()))
    width = low if low == high else f"{low} to {high}"
    return f"standard errors of means {width} ({found.draws:,} draws)"


def check_finite(name: str, array: Rows, shape: tuple[int, ...]) -> None:
    """Raise unless `array` has `shape` and, where it is not traced, only finite entries."""
    check_real(name, array)
    require(np.shape(array) == shape, f"{name} must have shape {shape}, got {np.shape(array)}")
    if is_concrete(array):
        check_entries(f"{name} must be finite", np.asarray(array, float))


def _check_computed(what, means, source):
    """Raise unless the means that follow from arguments, where they are known, are finite."""
    if is_concrete(means):
        check_entries(f"{source} must give finite {what}", np.asarray(means))


def built(arms, targets, means, values, theta, noise_var, theta_norm, **rest):
    """An `Instance` that owns its tables; `rest` are those of its fields that most do not have."""
    given = arms, arms if targets is None else targets, means, values, theta, noise_var
    # What is two of them, arms and targets say, is kept once.
    own = {key: owned(x) for key, x in {id(x): x for x in given}.items()}
    arms, targets, means, values, theta, noise_var = (own[id(x)] for x in given)
    theta_norm = None if theta_norm is None else owned(theta_norm)
    return Instance(arms, targets, means, values, theta, noise_var, theta_norm, **rest)


@checked
@double
def linear(
    arms: Rows, theta: Rows, *, noise_var: Normal = 1.0, targets: Rows | None = None
) -> Instance:
    """Normal rewards with means `arms @ theta`.

    Args:
      arms: `[K, d]`.
      theta: `[d]`.
      noise_var: variance of a reward.
      targets: `[M, d]`, the arms by default.
    Returns:
      An `Instance` whose `theta_norm` is the norm of theta.
    Raises:
      ValueError: wrong shapes, NaN, means beyond double precision, or a variance not above 0.

    >>> linear([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0]).means
    array([0.5, 0. ])
    """
    check_arms(arms, targets)
    check_finite("theta", theta, (np.shape(arms)[1],))
    arms, theta = floats(arms), floats(theta)
    targets = arms if targets is None else floats(targets)
    means, values, norm = _products(arms, None if targets is arms else targets, theta)
    _check_computed("means", means, "arms and theta")
    _check_computed("values", values, "targets and theta")
    return built(arms, targets, means, values, theta, noise_var, norm)


@jax.jit  # one program for all that is computed; a program for each operation takes longer
def _products(arms, targets, theta):
    means = jnp.matmul(arms, theta)
    values = means if targets is None else jnp.matmul(targets, theta)
    return means, values, jnp.linalg.norm(theta)


def _tables(arms: Rows | None, means: Rows | None) -> tuple[Rows, Rows]:
    """Arms and means; where no arms are given, the axes, one for each mean."""
    if means is None:
        raise ValueError(
            "means must be given, got None; arms without features are written means=[...]"
        )
    check_real("means", means)
    if arms is not None:
        return arms, means
    require(np.ndim(means) == 1, f"means must have shape (K,), got {np.shape(means)}")
    number = np.shape(means)[0]
    check_room(number, number, means=f"{number} of them")
    return np.eye(number), means


@checked
@double
def tabular(
    arms: Rows | None = None,
    means: Rows | None = None,
    *,
    noise_var: Normal = 1.0,
    targets: Rows | None = None,
    values: Rows | None = None,
    theta_norm: Nonnegative | None = None,
) -> Instance:
    """Normal rewards with any `means [K]`, linear in the features or not.

    Args:
      arms: `[K, d]` the features that the learner sees; by default K arms without features, which
        are the axes of K dimensions.
      means: `[K]`.
      noise_var: variance of a reward.
      targets, values: `[M, d]` and `[M]` together, or the arms and their means by default.
      theta_norm: a bound given to the learner, unknown by default.
    Returns:
      An `Instance`; its `theta` is not known, and stored as zeros.
    Raises:
      ValueError: wrong shapes, NaN, targets without values, a variance not above 0.

    >>> tabular(means=[0.3, 0.9, 0.5])
    Instance(3 arms in 3 dimensions, normal rewards with variance 1, best mean 0.9, next 0.5)
    """
    arms, means = _tables(arms, means)
    check_arms(arms, targets)
    check_finite("means", means, (np.shape(arms)[0],))
    require((targets is None) == (values is None), "values must be given with targets, got one")
    if targets is not None and values is not None:
        check_finite("values", values, (np.shape(targets)[0],))
    values = means if values is None else values
    theta = np.zeros(np.shape(arms)[1])
    return built(arms, targets, means, values, theta, noise_var, theta_norm)


@checked
@double
def glm(arms: Rows, theta: Rows, *, family: Family = "logistic") -> Instance:
    """A generalised linear model: means `mu(arms @ theta)`.

    Args:
      arms: `[K, d]`.
      theta: `[d]`.
      family: "logistic" or "probit" (Bernoulli rewards), "poisson", "gaussian" (variance 1).
    Returns:
      An `Instance` whose learner knows the family and the norm of theta; `noise_var` is 1/4
      for Bernoulli rewards, 1 for normal ones and the largest mean for Poisson ones.
    Raises:
      ValueError: wrong shapes, NaN, an unknown family, means beyond double precision, or a
        predictor `arms @ theta` above 30 for "poisson". Where arms or theta are traced, such a
        predictor counts as 30.

    >>> glm([[1.0, 0.0], [0.0, 1.0]], [0.0, 2.0]).means.round(2)
    array([0.5 , 0.88])
    """
    check_arms(arms)
    check_finite("theta", theta, (np.shape(arms)[1],))
    arms, theta = floats(arms), floats(theta)
    means, largest, norm, predictor = _means(family, arms, theta)
    if family == "poisson":
        _check_clip(predictor)
    _check_computed("means", means, "arms and theta")
    rewards = {"gaussian": "normal", "poisson": "poisson"}.get(family, "bernoulli")
    noise_var = largest if rewards == "poisson" else {"normal": 1.0, "bernoulli": 0.25}[rewards]
    return built(arms, arms, means, means, theta, noise_var, norm, rewards=rewards, family=family)


@partial(jax.jit, static_argnums=0)
def _means(family, arms, theta):
    predictors = jnp.matmul(arms, theta)
    means = LINKS[family].mean(predictors)
    return means, means.max(), jnp.linalg.norm(theta), predictors.max()


def _check_clip(predictor):
    """Raise where the largest predictor of Poisson rewards is known, and its mean clipped."""
    if is_concrete(predictor) and not predictor <= LARGEST:  # NaN is not either
        raise ValueError(
            f"theta must give predictors arms @ theta of at most {LARGEST:g} for family 'poisson', "
            f"whose mean is then {np.exp(LARGEST):.2g}, got {predictor:.6g}"
        )


@checked
@double
def bernoulli(
    arms: Rows | None = None, means: Rows | None = None, *, theta_norm: Nonnegative | None = None
) -> Instance:
    """Bernoulli rewards with any `means [K]` in [0, 1]; the family is "logistic".

    Args:
      arms: `[K, d]`; by default K arms without features, which are the axes of K dimensions.
      means: `[K]` success probabilities.
      theta_norm: a bound given to the learner, unknown by default.
    Raises:
      ValueError: wrong shapes, or a mean outside [0, 1].

    >>> bernoulli(means=[0.5, 0.4]).arms.shape
    (2, 2)
    """
    arms, means = _tables(arms, means)
    check_arms(arms)
    check_finite("means", means, (np.shape(arms)[0],))
    if is_concrete(means):
        low, high = np.min(means), np.max(means)
        require(low >= 0 and high <= 1, f"means must lie in [0, 1], got {low} to {high}")
    theta = np.zeros(np.shape(arms)[1])
    family = {"rewards": "bernoulli", "family": "logistic"}
    return built(arms, None, means, means, theta, 0.25, theta_norm, **family)


def _check_rows(samples):
    """Raise where arms have different numbers of records, of which NumPy says less."""
    if not isinstance(samples, list | tuple) or not all(hasattr(row, "__len__") for row in samples):
        return
    numbers = sorted({len(row) for row in samples})
    require(
        len(numbers) < 2,
        f"samples: the rows have {min(numbers, default=0)} to {max(numbers, default=0)} records; "
        "all must have as many, see 'Arms with different numbers of records' in 'Use data of your "
        "own'",
    )


def _doubt_samples(samples, noise_var):
    """Warn where records are not what learners are told, or each pull gives the same one."""
    varies, number = (samples != samples[:, :1]).any(1), samples.shape[1]
    warn_of_constants("samples", varies, number, "each pull gives this reward")
    if is_concrete(noise_var):
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (samples - samples.mean(1, keepdims=True)).T ** 2
            variances = np.where(varies, squares.mean(0), 0.0)
            errors = relative_error(squares)
        warn_of_variances("samples", variances, errors, number, float(noise_var))


@checked
@double
def recorded(
    arms: Rows, samples: Rows, *, noise_var: Normal, theta_norm: Nonnegative | None = None
) -> Instance:
    """A pull draws one recorded value of the arm, uniformly and with replacement.

    Args:
      arms: `[K, d]`.
      samples: `[K, N]` recorded rewards.
      noise_var: the variance given to the learner.
      theta_norm: a bound given to the learner, unknown by default.
    Returns:
      An `Instance` whose means are those of the samples; `theta` is not known, and stored as
      zeros.
    Raises:
      ValueError: wrong shapes, NaN, or means beyond double precision.
    Warns:
      UserWarning: once for each kind, naming an arm: its records have a variance above `noise_var`,
        or they are all equal, or there is one record of each arm. Each pull then gives that one.

    >>> recorded([[1.0, 0.0], [0.0, 1.0]], [[0.1, 0.3], [0.5, 0.7]], noise_var=0.25).means.round(2)
    array([0.2, 0.6])
    """
    check_arms(arms)
    _check_rows(samples)
    check_real("samples", samples)
    shape = np.shape(samples)
    require(
        len(shape) == 2 and shape[0] == np.shape(arms)[0] and shape[1] > 0,
        f"samples must be a table [{np.shape(arms)[0]}, N], got shape {shape}",
    )
    check_finite("samples", samples, shape)
    samples = jnp.array(samples, float)
    means, theta = samples.mean(1), np.zeros(np.shape(arms)[1])
    _check_computed("means", means, "samples")
    if is_concrete(samples):
        _doubt_samples(np.asarray(samples), noise_var)
    rest = {"samples": samples, "rewards": "recorded"}
    return built(arms, None, means, means, theta, noise_var, theta_norm, **rest)
