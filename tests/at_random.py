"""Random instances with the shapes of a given one and the oddities of real data.

The tests check the laws of all cases on them.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import hypothesis.strategies as st
import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.instances.contextual import Labelled


class Oddities(NamedTuple):
    """The oddities of a data set. Hypothesis draws them; a generator fills in the numbers."""

    seed: int
    duplicates: int  # number of arms that equal the first
    lost: bool  # whether the last column is the sum of the others
    tied: bool  # whether two arms are best
    powers: tuple  # column i is scaled by 2^powers[i]
    size: int  # all features are scaled by 10^size
    noise: int  # noise_var is 10^noise
    delta: float
    budget: int


def oddities(dim):
    """The strategy that draws `Oddities`."""
    return st.builds(
        Oddities,
        seed=st.integers(0, 2**31),
        duplicates=st.sampled_from([0, 0, 0, 1, 3]),
        lost=st.sampled_from([False, False, False, True]),
        tied=st.sampled_from([False, False, False, True]),
        powers=st.tuples(*dim * [st.integers(-26, 26)]),
        size=st.sampled_from([0, 0, -8, -3, 3, 8]),
        noise=st.sampled_from([0, 0, -12, -4, 4, 12]),
        delta=st.sampled_from([1e-12, 1e-3, 0.05, 0.5, 0.99]),
        budget=st.integers(1, 400),
    )


def features(odd, shape):
    """A table of features with this shape."""
    rng = np.random.default_rng(odd.seed)
    arms = rng.normal(size=shape)
    repeated = min(odd.duplicates, len(arms) - 2)
    if repeated > 0:
        arms[-repeated:] = arms[0]
    if odd.lost and shape[1] > 1:
        arms[:, -1] = arms[:, :-1].sum(1)
    return arms


def instance(odd, like):
    """A random instance with the structure and the shapes of `like`."""
    if isinstance(like, Labelled):
        points = features(odd, like.features.shape) * 2.0 ** np.array(odd.powers)
        return dataclasses.replace(like, features=points * 10.0**odd.size)
    arms = features(odd, like.arms.shape)
    theta = np.random.default_rng(odd.seed + 1).normal(size=arms.shape[1])
    if odd.tied:
        first, second = np.argsort(-(arms @ theta))[:2]
        arms[second] = arms[first]
    size = 10.0**odd.size
    same = np.array_equal(like.arms, like.targets)
    if like.rewards == "bernoulli":
        return jb.instances.glm(arms, theta)  # other units would make the means 0 or 1
    targets = None if same else features(odd._replace(seed=odd.seed + 2), like.targets.shape)
    made = jb.instances.linear(
        arms * size,
        theta / size,
        noise_var=10.0**odd.noise,
        targets=None if same else targets * size,
    )
    return dataclasses.replace(
        made, theta_norm=None if like.theta_norm is None else made.theta_norm
    )


def build(odd, like):
    """The constructor `like` with the `delta` and `budget` of the example."""
    options = dict(like.keywords) if isinstance(like, partial) else {}
    function = like.func if isinstance(like, partial) else like
    if "delta" in options:
        options["delta"] = odd.delta
    if "budget" in options:
        options["budget"] = odd.budget
    return partial(function, *like.args, **options) if isinstance(like, partial) else like


def in_units(made, columns):
    """The same instance with column i of the features multiplied by `columns[i]`."""
    tables = {"arms": made.arms * columns, "targets": made.targets * columns}
    return dataclasses.replace(made, theta=made.theta / columns, **tables)


def in_reward_units(made, factor):
    """The same instance with rewards multiplied by `factor`."""
    names = ("means", "values", "theta", "theta_norm", "samples")
    given = {name: getattr(made, name) for name in names}
    grown = {name: factor * value for name, value in given.items() if value is not None}
    return dataclasses.replace(made, noise_var=factor**2 * made.noise_var, **grown)


def options_in_reward_units(build, names, factor):
    """The constructor with those of its options multiplied by `factor`."""
    given = {name: factor * build.keywords[name] for name in names}
    return partial(build, **given) if given else build


def all_finite(tree):
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree) if np.issubdtype(x.dtype, float))
