"""Arms drawn from a log of clicks on news: a stand-in that needs no data, and the log itself."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..kernels.linalg import subspace
from ..parameters import choice, positive, require, size
from ..precision import double
from .data.click_logs import SIDE, read_click_log
from .instance import check_option, linear

GAP = 0.01  # RAGE: between the best arm and any other
LEADER, FOLLOWERS = -0.88, (-1.0, -0.93)  # LinGapE: means of one arm and of the others
DRAWS = 16  # of arms from a log, to choose one of full rank from


class Protocol(NamedTuple):
    """How a paper plays the log."""

    rewards: str  # of a click and of none: 1 and 0, or 1 and -1
    noise_var: float  # what its learners are told
    means: tuple  # the range of the stand-in's rows


PROTOCOLS = {
    "rage": Protocol("bernoulli", 1.0, (0.005, 0.1)),
    "lingape": Protocol("sign", 4.0, (-0.99, -0.8)),
}


@double
def clicks(key, num_arms=40, *, protocol="rage", noise_var=None):
    """Stand-in for a licensed log of clicks on news: what Fiez et al. (2019) and LinGapE play.

    A user and an article have a constant and five weights each, and a row of the log the outer
    product of the two: d = 36, the constant first. Here 32 K rows are drawn, the weights uniform
    (five of six that sum to 1), and theta is normal, then moved and scaled so that the means of
    the rows fill the log's range. Means are linear in the features; arm 0 is the best.

    Args:
      key: a JAX random key.
      num_arms: K; from 36 on the arms span R^36.
      protocol: "rage": rewards 1 and 0, rows with means of 0.005 to 0.1; the best row and K - 1
        random ones whose gap is 0.01 at least. "lingape": rewards 1 and -1, rows with means of
        -0.99 to -0.8; a random one above -0.88 and K - 1 random ones in (-1, -0.93).
      noise_var: what the learner is told; by default as in the papers, whose learners take noise
        to be 1- ("rage") and 2-sub-Gaussian ("lingape"), 1 and 4. For certain it is a quarter of
        that.
    Raises:
      ValueError: fewer than 2 arms, an unknown protocol, a variance not above 0.
    Deviations:
      Everything about the rows, as the log is not ours to give. In the log the five weights sum
      to 1 but for their sixth decimal, and 36 dimensions are 25 and rounding; here they are 36.
      Where too few rows have the means asked for (in none of 2000 draws) the lowest fill up.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019, section 5. https://arxiv.org/abs/1906.08399
      L. Xu, J. Honda, M. Sugiyama, "A fully adaptive algorithm for pure exploration in linear
      bandits", AISTATS 2018, appendix A. https://arxiv.org/abs/1710.05552

    >>> instance = clicks(jax.random.key(0))
    >>> instance.arms.shape, bool(instance.means[1:].max() <= instance.means[0] - 0.01)
    ((40, 36), True)
    """
    check_option(size(2), num_arms=num_arms)
    asked = _asked(protocol, noise_var)
    rows_key, theta_key, arms_key = jax.random.split(key, 3)
    amounts = jax.random.exponential(rows_key, (2, 32 * num_arms, SIDE))
    weights = amounts / amounts.sum(-1, keepdims=True)
    users, articles = weights.at[..., 0].set(1.0)
    theta, means = _click_rates(theta_key, users, articles, *asked.means)
    rows = _chosen(arms_key, means, *_sought(means, protocol), num_arms)
    arms = jnp.einsum("ki,kj->kij", users[rows], articles[rows]).reshape(num_arms, -1)
    return _played(arms, theta.ravel(), asked)


def _click_rates(key, users, articles, low, high):
    """A normal theta, then moved and scaled: its means `u^T theta v` fill [low, high]."""
    theta = jax.random.normal(key, (SIDE, SIDE))
    drawn = jnp.einsum("ni,ij,nj->n", users, theta, articles)
    least, most = drawn.min(), drawn.max()
    # Few articles are popular: where the long tail is that of the low rates, turn round.
    few_are_low = drawn.mean() > (least + most) / 2.0
    scale = jnp.where(few_are_low, low - high, high - low) / (most - least)
    shift = low - scale * jnp.where(few_are_low, most, least)
    return (scale * theta).at[0, 0].add(shift), scale * drawn + shift


def yahoo_r6a(key, path, num_arms, *, protocol="rage", noise_var=None):
    """Arms from a day of the Yahoo! log of clicks on news, R6A (Fiez et al., 2019; LinGapE).

    theta is a ridge estimate from the whole file, which takes a minute or two for the four to
    five million lines of a day, once in a process. Arms are rows of the file, drawn afresh for
    each key; arm 0 is the best.

    Args:
      key: a JAX random key.
      path: the log as text or gzip, or the folder with `ydata-fp-td-clicks-v1_0.20090501[.gz]`.
      num_arms: K; 40 in the RAGE paper.
      protocol: "rage": rewards 1 and 0; the row of the largest mean and K - 1 random ones whose
        gap is 0.01 at least. "lingape": rewards 1 and -1; a random row with a mean above -0.88
        and K - 1 random ones in (-1, -0.93).
      noise_var: what the learner is told, see `clicks`.
    Raises:
      ValueError: the file is missing, damaged or not of the log, or has too few such rows.
    Deviations:
      The best row is that of the whole file, the others come from a uniform sample of 10,000.
      RAGE's program draws until the rank is 36: here the first of 16 draws with the largest rank
      among them is taken. Weights of the log sum to 1 but for their sixth decimal, so that this
      rank rests on rounding, with a condition number of 1e14; with "rage" the two constants are
      therefore replaced by what the weights lack to 1, in units of its root mean square. Means,
      least squares and its designs are the same in these coordinates; a ridge is not. Rows with
      a mean that no coin has (outside [0, 1] or [-1, 1]) are left out; the papers' day has none.
      The papers do not say which row above -0.88 is taken.
    Reference:
      See `clicks`; the data are described in L. Li, W. Chu, J. Langford, R. Schapire, "A
      contextual-bandit approach to personalized news article recommendation", WWW 2010.

    >>> yahoo_r6a(jax.random.key(0), "nowhere", 40)
    Traceback (most recent call last):
        ...
    ValueError: path: no file nowhere; it is 1 May 2009 of R6A, ...
    """
    check_option(size(2), num_arms=num_arms)
    asked = _asked(protocol, noise_var)
    log = read_click_log(path, signed=asked.rewards == "sign")
    means = log.features @ log.theta
    best, others = _sought(means, protocol)
    require(best.any(), f"path: {path} has no row with a mean above {LEADER}")
    most = 1 + others.sum()
    require(num_arms <= most, f"num_arms must be at most {most} with this log, got {num_arms}")
    rows, theta = log.features, log.theta
    if protocol == "rage":
        rows, theta = _apart(rows, theta)
    return _from_log(key, rows, theta, means, best, others, num_arms, asked)


def _apart(rows, theta):
    """The same means in other coordinates: for each constant, what its weights lack to it."""
    tables = rows.reshape(-1, SIDE, SIDE)
    users, articles = tables[:, :, 0], tables[:, 0] / tables[:, :1, 0]
    users, user_change = _lack_for_constant(users)
    articles, article_change = _lack_for_constant(articles)
    rows = np.einsum("ni,nj->nij", users, articles).reshape(rows.shape)
    return rows, (user_change.T @ theta.reshape(SIDE, SIDE) @ article_change).ravel()


def _lack_for_constant(sides):
    """`(changed, change)` with `sides = changed @ change.T`; the lack in units of its own size."""
    lack = sides[:, 0] - sides[:, 1:].sum(1)
    unit = np.sqrt((lack**2).mean()) or 1.0
    change = np.eye(SIDE)
    change[0] = [unit, *np.ones(SIDE - 1)]
    return np.column_stack([lack / unit, sides[:, 1:]]), change


@double
def _from_log(key, rows, theta, means, best, others, num_arms, asked):
    rows, tables = jnp.asarray(rows), (jnp.asarray(means), jnp.asarray(best), jnp.asarray(others))
    keys = jax.random.split(key, DRAWS)
    draws = jax.vmap(lambda key: rows[_chosen(key, *tables, num_arms)])(keys)
    ranks = jax.vmap(subspace.rank)(draws)
    return _played(draws[ranks.argmax()], theta, asked)


def _asked(protocol, noise_var):
    check_option(choice(*PROTOCOLS), protocol=protocol)
    check_option(positive, noise_var=noise_var)
    asked = PROTOCOLS[protocol]
    return asked if noise_var is None else asked._replace(noise_var=noise_var)


def _sought(means, protocol):
    """Which rows may be the best arm, and which the others; NumPy in, NumPy out."""
    if protocol == "rage":
        return means == means.max(), means <= means.max() - GAP
    low, high = FOLLOWERS
    return means > LEADER, (means > low) & (means < high)


def _chosen(key, means, best, others, num_arms):
    """One of `best` and `num_arms - 1` of `others`, at random; the nearest fill up."""
    lots = jax.random.uniform(key, (2, means.size))
    first = jnp.where(best, lots[0], 1.0 + means.max() - means).argmin()
    rest = jnp.where(others, lots[1], 1.0 + means - means.min()).at[first].set(jnp.inf)
    return jnp.concatenate([first[None], jax.lax.top_k(-rest, num_arms - 1)[1]])


def _played(arms, theta, asked):
    instance = linear(arms, theta, noise_var=asked.noise_var)
    return dataclasses.replace(instance, rewards=asked.rewards)
