"""Regret bounds of randomised algorithms in generalised linear bandits, as their paper prints them.

For less than millions of rounds they exceed the regret of always playing the worst arm; they are
useful for the rate at which they grow.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..feature_tables import check_spans, require
from ..instances import Instance
from ..instances.options import check_option
from ..kernels import selection
from ..kernels.confidence import glm_radius
from ..parameters import choice, count, nonnegative, positive
from ..precision import on_host
from ..system.jax_options import pinned
from ..system.kept_calls import kept
from .given import given, instance_of, plain

__all__ = ["RegretBound", "glm_fpl_regret_bound", "glm_tsl_regret_bound"]

Form: TypeAlias = Literal["paper", "safe"]

FORMS: tuple[Form, ...] = ("paper", "safe")
OPTIMISM: float = 0.15  # least probability of a sample above the truth: P(N(0, 1) > 1) is 0.159


class RegretBound(NamedTuple):
    """A bound of the expected regret of n rounds.

    >>> import jaxbandits as jb
    >>> arms = jb.instances.soare(2, angle=0.5).arms
    >>> glm_tsl_regret_bound(jb.instances.glm(arms, [1.0, 0.0]), 50_000).exploration
    336
    """

    value: float  #: leading + the cost of exploration and of rare events
    leading: float
    eigenvalue: float  #: that the least one of `sum of x x^T` has to reach
    exploration: int  #: rounds that this takes
    widths: float  #: the sum over the arms drawn afterwards: see `jaxbandits.watched`


@on_host
def glm_tsl_regret_bound(
    instance: Instance,
    horizon: int,
    *,
    exploration: int | None = None,
    noise_var: float | None = None,
    kappa: float | None = None,
    lipschitz: float | None = None,
    form: Form = "paper",
) -> RegretBound:
    """A regret bound of GLM-TSL (Kveton et al., 2020, Section 4.3).

    Of `glm_tsl` with both `a="theory"` and `exploration="theory"`, and `begin="basis"`, for arms of
    norm 1 at most, where the slope of the mean function is at least kappa within distance 1 of
    theta. For "logistic" it is below the default kappa. What is proved is the form "safe".

    `lipschitz (c_1 + c_2) (1 + 2 / (0.15 - 1 / n)) sqrt(2 d n log(2 n / d)) + (tau + 3) D`, `c_1 =
    (sigma / kappa) sqrt(d log(n / d) + 2 log n)`, `c_2 = c_1 sqrt(2 (lipschitz / kappa) log(K n))`,
    D the largest gap, tau the rounds of exploration.

    Args:
      instance: an `Instance`.
      horizon: n.
      exploration: tau; by default the rounds until the least eigenvalue of `sum of x x^T` is what
        the theorem requires, if the first d independent arms are drawn equally often.
      noise_var: sub-Gaussian variance of a reward; the instance's by default. Bounds for the family
        "gaussian" are those of rewards in units of its root, as `glm_tsl` takes them, times that
        root.
      kappa, lipschitz: least and largest slope of the mean function near theta, by default both
        that at 0, as in the paper's experiments.
      form: "paper", or "safe" with `log(2 K n)` in c_2, which a two-sided event needs.
    Returns:
      A `RegretBound`.
    Raises:
      ValueError: names the argument, what it was and what is allowed.

    >>> import jaxbandits as jb
    >>> arms = jb.instances.soare(2, angle=0.5).arms
    >>> bound = glm_tsl_regret_bound(jb.instances.glm(arms, [1.0, 0.0]), 50_000)
    >>> bound.leading < bound.value, bound.exploration
    (True, 336)
    """
    facts = _facts(instance, horizon, exploration, noise_var, kappa, lipschitz, form)
    a = _scale(glm_radius.glm_tsl, *facts.model)
    wide = a * facts.kappa**-0.5 * facts.normal  # in the norm of G^-1, where H >= kappa G
    eigenvalue = _scale(glm_radius.tsl_exploration, *facts.model)
    return _bound(facts, wide, eigenvalue, failures=1, extra=3)


@on_host
def glm_fpl_regret_bound(
    instance: Instance,
    horizon: int,
    *,
    exploration: int | None = None,
    noise_var: float | None = None,
    kappa: float | None = None,
    lipschitz: float | None = None,
    form: Form = "paper",
) -> RegretBound:
    """A regret bound of GLM-FPL (Kveton et al., 2020, Section 4.4).

    That of `glm_tsl_regret_bound` with `2 / n`, `(tau + 4) D` and
    `c_2 = c_1 (lipschitz / kappa) sqrt(2 log(K n))`. The theorem is for arms with at most one entry
    that is not 0, under the same conditions. Arguments, errors and result are those of
    `glm_tsl_regret_bound`; "safe" also corrects the eigenvalue that the perturbation requires, to
    `4 a^2 (sqrt(d) + sqrt(2 log n))^2 / kappa^2`. `exploration="theory"` reaches the printed one;
    for the corrected one give `glm_fpl` the `exploration` of this bound.

    >>> import jaxbandits as jb
    >>> arms = jb.instances.soare(2, angle=0.5).arms
    >>> bound = glm_fpl_regret_bound(jb.instances.glm(arms, [1.0, 0.0]), 50_000)
    >>> bound.leading < bound.value
    True
    """
    facts = _facts(instance, horizon, exploration, noise_var, kappa, lipschitz, form)
    a, dim = _scale(glm_radius.glm_fpl, *facts.model), facts.dim
    eigenvalue = _scale(glm_radius.fpl_exploration, *facts.model)
    if form == "safe":
        length = math.sqrt(dim) + math.sqrt(2.0 * math.log(facts.horizon))
        eigenvalue = max(4.0 * facts.least, 4.0 * (a * length / facts.kappa) ** 2)
    wide = a / facts.kappa * facts.normal
    return _bound(facts, wide, eigenvalue, failures=2, extra=4)


def _scale(formula, *model):
    with pinned():
        return float(formula(*model))


class _Facts(NamedTuple):
    arms: Float[np.ndarray, "K d"]
    worst: float  # the largest gap, in the unit
    unit: float  # of the rewards in `model`; 1 for all families but "gaussian"
    horizon: int
    exploration: int | None
    model: tuple[float, ...]  # the arguments of `glm_radius`
    kappa: float
    lipschitz: float
    normal: float  # sqrt(2 log(K n)), or of 2 K n: bounds K n standard normal draws

    @property
    def dim(self):
        return self.arms.shape[1]

    @property
    def least(self):
        """c_1^2: the eigenvalue at which an estimate is within 1 of theta, if it is above 1."""
        return _scale(glm_radius.estimate, *self.model[:4]) ** 2


def _facts(instance, horizon, exploration, noise_var, kappa, lipschitz, form):
    instance = instance_of(instance)
    horizon = given(count(2), horizon=horizon)
    check_option(count(0), exploration=exploration)
    check_option(nonnegative, noise_var=noise_var)
    check_option(positive, kappa=kappa)
    check_option(positive, lipschitz=lipschitz)
    given(choice(*FORMS), form=form)
    arms, means = np.asarray(instance.arms), np.asarray(instance.means)
    check_spans(arms)
    dim = arms.shape[1]
    require(horizon >= dim, f"horizon must be {dim} or above in {dim} dimensions, got {horizon}")
    with pinned():
        slopes = glm_radius.slopes(instance.family, kappa, lipschitz)
        least, largest = (float(slope) for slope in slopes)
    require(least <= largest, f"kappa must be at most lipschitz, {largest}, got {least}")
    variance = float(instance.noise_var if noise_var is None else noise_var)
    normal = instance.family == "gaussian" and variance > 0
    unit = math.sqrt(variance) if normal else 1.0
    sides = 2 if form == "safe" else 1
    return _Facts(
        arms,
        float(means.max() - means.min()) / unit,
        unit,
        int(horizon),
        plain(exploration),
        (horizon, dim, 1.0 if normal else variance, least, largest),
        least,
        largest,
        math.sqrt(2.0 * math.log(sides * len(arms) * horizon)),
    )


def _bound(facts, wide, eigenvalue, *, failures, extra):
    eigenvalue, n, dim = max(eigenvalue, 1.0), facts.horizon, facts.dim
    rare = failures / n
    radius = math.sqrt(facts.least) + wide
    total = math.sqrt(2.0 * dim * n * math.log(2.0 * n / dim))
    require(rare < OPTIMISM, f"horizon must be above {math.floor(failures / OPTIMISM)}, got {n}")
    leading = facts.unit * facts.lipschitz * radius * (1.0 + 2.0 / (OPTIMISM - rare)) * total
    explored = _rounds(facts.arms, eigenvalue) if facts.exploration is None else facts.exploration
    value = leading + facts.unit * (explored + extra) * facts.worst
    return RegretBound(value, leading, eigenvalue, explored, total)


_first_basis = kept(selection.first_basis)  # else each call compiles its loop


def _rounds(arms, eigenvalue):
    """Rounds until the eigenvalue is reached, if the first independent arms are drawn equally."""
    with pinned():
        basis = arms[np.asarray(_first_basis(jnp.asarray(arms)))]
    return len(basis) * math.ceil(eigenvalue / np.linalg.eigvalsh(basis.T @ basis)[0])
