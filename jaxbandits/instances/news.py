"""Arms drawn from a log of clicks on news: a stand-in without data, and the log itself."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..kernels.linalg import subspace
from ..parameters import Normal, choice, require
from ..precision import double, floats, numpy_for
from ..types import Key, Scalar
from .data.click_logs import SIDE, read_click_log
from .instance import Instance, linear
from .options import Pair, check_room, checked

GAP: float = 0.01  # RAGE: between the best arm and any other
BEST: float = -0.88  # LinGapE: the mean of the best arm is above it
OTHERS: tuple[float, float] = (-1.0, -0.93)  # LinGapE: the range of the other means
DRAWS: int = 16  # of sets of arms from a log, to find one of full rank


class Protocol(NamedTuple):
    """How a paper uses the log."""

    rewards: str  # with and without a click: 1 and 0, or 1 and -1
    noise_var: Scalar  # the variance given to the learners
    means: tuple[float, float]  # the range of the stand-in's rows


PROTOCOLS: dict[str, Protocol] = {
    "rage": Protocol("bernoulli", 1.0, (0.005, 0.1)),
    "lingape": Protocol("sign", 4.0, (-0.99, -0.8)),
}
Named: TypeAlias = Annotated[str, choice(*PROTOCOLS)]


@checked
@double
def clicks(
    key: Key, num_arms: Pair = 40, *, protocol: Named = "rage", noise_var: Normal | None = None
) -> Instance:
    """Stand-in for the licensed log of clicks on news of Fiez et al. (2019) and LinGapE.

    A user and an article have a constant and five weights each, and a row of the log is their outer
    product: d = 36, the constant first. Here 32 K rows are drawn with uniform weights (five of six
    that sum to 1), and theta is normal, then shifted and scaled so that the means of the rows fill
    the range of the log. Means are linear in the features; arm 0 is the best.

    Args:
      key: a JAX random key.
      num_arms: K; from 36 on the arms span R^36.
      protocol: "rage": rewards 1 and 0, rows with means of 0.005 to 0.1; the best row and K - 1
        random ones whose gap is 0.01 at least. "lingape": rewards 1 and -1, rows with means of
        -0.99 to -0.8; a random one above -0.88 and K - 1 random ones in (-1, -0.93).
      noise_var: the variance given to the learner; by default as in the papers, whose learners
        assume 1-sub-Gaussian ("rage") and 2-sub-Gaussian noise ("lingape"): 1 and 4. The proved
        value is a quarter of these.
    Raises:
      ValueError: fewer than 2 arms, an unknown protocol, a variance not above 0.
    Deviations:
      The rows are synthetic, as we may not distribute the log. In the log the five weights sum to 1
      up to their sixth decimal, so that the rank is 25 up to rounding; here it is 36. Where too few
      rows have such means (in none of 2000 draws) the rows with the lowest means are added.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, section 5. https://arxiv.org/abs/1906.08399
      L. Xu, J. Honda, M. Sugiyama, "A fully adaptive algorithm for pure exploration in linear
      bandits", AISTATS 2018, appendix A. https://arxiv.org/abs/1710.05552

    >>> instance = clicks(jax.random.key(0))
    >>> instance.arms.shape, bool(instance.means[1:].max() <= instance.means[0] - 0.01)
    ((40, 36), True)
    """
    check_room(2, 32 * num_arms, SIDE, num_arms=num_arms)
    used = _protocol(protocol, noise_var)
    rows_key, theta_key, arms_key = jax.random.split(key, 3)
    amounts = jax.random.exponential(rows_key, (2, 32 * num_arms, SIDE))
    weights = floats(amounts / amounts.sum(-1, keepdims=True))
    users, articles = numpy_for(key).where(np.arange(SIDE) == 0, 1.0, weights)
    theta, means = _click_rates(theta_key, users, articles, *used.means)
    rows = _chosen(arms_key, means, *_candidates(means, protocol), num_arms)
    arms = (users[rows][:, :, None] * articles[rows][:, None, :]).reshape(num_arms, -1)
    return _instance(arms, theta.ravel(), used)


def _click_rates(key, users, articles, low, high):
    """A normal theta, shifted and scaled so that the means `u^T theta v` fill [low, high]."""
    xp, theta = numpy_for(key), floats(jax.random.normal(key, (SIDE, SIDE)))
    drawn = floats(jnp.einsum("ni,ij,nj->n", users, theta, articles))
    least, most = drawn.min(), drawn.max()
    # Few articles are popular: where the long tail is at the low rates, reverse the order.
    few_are_low = floats(jnp.mean(drawn)) > (least + most) / 2.0
    scale = xp.where(few_are_low, low - high, high - low) / (most - least)
    shift = low - scale * xp.where(few_are_low, most, least)
    shifts = np.arange(SIDE**2).reshape(SIDE, SIDE) == 0
    return xp.where(shifts, scale * theta + shift, scale * theta), scale * drawn + shift


@checked
def yahoo_r6a(
    key: Key,
    path: Path | str,
    num_arms: Pair,
    *,
    protocol: Named = "rage",
    noise_var: Normal | None = None,
) -> Instance:
    """Arms from a day of the Yahoo! log of clicks on news, R6A (Fiez et al., 2019; LinGapE).

    theta is a ridge estimate from the whole file. It takes a minute or two for the four to five
    million lines of a day, once in a process. Arms are rows of the file, drawn for each key; arm 0
    is the best.

    Args:
      key: a JAX random key.
      path: the log as text or gzip, or the folder with `ydata-fp-td-clicks-v1_0.20090501[.gz]`.
      num_arms: K; 40 in the RAGE paper.
      protocol: "rage": rewards 1 and 0; the row of the largest mean and K - 1 random ones whose
        gap is 0.01 at least. "lingape": rewards 1 and -1; a random row with a mean above -0.88
        and K - 1 random ones in (-1, -0.93).
      noise_var: the variance given to the learner, see `clicks`.
    Raises:
      ValueError: the file is missing, damaged or not of the log, or has too few such rows.
    Deviations:
      The best row is that of the whole file, the others come from a uniform sample of 10,000.
      RAGE's program draws until the rank is 36: here, of 16 draws, the first with the largest rank
      is taken. Weights of the log sum to 1 up to their sixth decimal, so that this rank comes from
      rounding, with a condition number of 1e14; with "rage" the two constants are therefore
      replaced by 1 minus the sum of the weights, in units of its root mean square. Means, least
      squares and its designs are the same in these coordinates; a ridge is not. Rows with a mean
      that is impossible for the rewards (outside [0, 1] or [-1, 1]) are left out; the day of the
      papers has none. The papers do not say which row above -0.88 is taken.
    Reference:
      See `clicks`; the data are described in L. Li, W. Chu, J. Langford, R. Schapire, "A
      contextual-bandit approach to personalized news article recommendation", WWW 2010.

    >>> yahoo_r6a(jax.random.key(0), "nowhere", 40)
    Traceback (most recent call last):
        ...
    ValueError: path: no file nowhere; it is 1 May 2009 of R6A, ...
    """
    used = _protocol(protocol, noise_var)
    log = read_click_log(path, signed=used.rewards == "sign")
    means = log.features @ log.theta
    best, others = _candidates(means, protocol)
    require(best.any(), f"path: {path} has no row with a mean above {BEST}")
    most = 1 + others.sum()
    require(num_arms <= most, f"num_arms must be at most {most} with this log, got {num_arms}")
    rows, theta = log.features, log.theta
    if protocol == "rage":
        rows, theta = _with_remainders(rows, theta)
    return _from_log(key, rows, theta, means, best, others, num_arms, used)


def _with_remainders(rows, theta):
    """The same means in coordinates where remainders of the weights replace the constants."""
    tables = rows.reshape(-1, SIDE, SIDE)
    users, articles = tables[:, :, 0], tables[:, 0] / tables[:, :1, 0]
    users, user_change = _with_remainder(users)
    articles, article_change = _with_remainder(articles)
    rows = np.einsum("ni,nj->nij", users, articles).reshape(rows.shape)
    return rows, (user_change.T @ theta.reshape(SIDE, SIDE) @ article_change).ravel()


def _with_remainder(sides):
    """`(changed, change)` with `sides = changed @ change.T`; the remainder in units of its size."""
    remainder = sides[:, 0] - sides[:, 1:].sum(1)
    unit = np.sqrt((remainder**2).mean()) or 1.0
    change = np.eye(SIDE)
    change[0] = [unit, *np.ones(SIDE - 1)]
    return np.column_stack([remainder / unit, sides[:, 1:]]), change


@double
def _from_log(key, rows, theta, means, best, others, num_arms, used):
    return _instance(_drawn(key, rows, means, best, others, num_arms), theta, used)


@partial(jax.jit, static_argnums=5)  # one program instead of thirty
def _drawn(key, rows, means, best, others, num_arms):
    """Of several choices of rows the first of the largest rank, `[K, d]`."""
    keys = jax.random.split(key, DRAWS)
    draws = jax.vmap(lambda key: rows[_chosen(key, means, best, others, num_arms)])(keys)
    return draws[jax.vmap(subspace.rank)(draws).argmax()]


def _protocol(protocol, noise_var):
    used = PROTOCOLS[protocol]
    return used if noise_var is None else used._replace(noise_var=noise_var)


def _candidates(means, protocol):
    """Masks of the rows that may be the best arm, and of those that may be another one."""
    if protocol == "rage":
        return means == means.max(), means <= means.max() - GAP
    low, high = OTHERS
    return means > BEST, (means > low) & (means < high)


def _chosen(key, means, best, others, num_arms):
    """One of `best` and `num_arms - 1` of `others`, at random.

    Where there are too few, those with the nearest means are added.
    """
    xp, uniforms = numpy_for(key), floats(jax.random.uniform(key, (2, means.size)))
    first = xp.where(best, uniforms[0], 1.0 + means.max() - means).argmin()
    rest = xp.where(others, uniforms[1], 1.0 + means - means.min())
    rest = xp.where(np.arange(means.size) == first, np.inf, rest)
    return xp.append(first, xp.argsort(rest, stable=True)[: num_arms - 1])


def _instance(arms, theta, used):
    instance = linear(arms, theta, noise_var=used.noise_var)
    return dataclasses.replace(instance, rewards=used.rewards)
