"""Instances at random, of the shapes of a given one, as odd as data come: for laws of all cases."""

import dataclasses
from functools import partial
from typing import NamedTuple

import hypothesis.strategies as st
import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.instances.contextual import Labelled


class Oddities(NamedTuple):
    """What a data set may have; hypothesis draws it, a generator fills in the numbers."""

    seed: int
    duplicates: int  # arms that repeat the first
    lost: bool  # the last column is a sum of the others, as far as there are some
    tied: bool  # two best arms
    powers: tuple  # of two: sizes of the columns
    size: int  # power of ten: of all features
    noise: int  # power of ten: of noise_var
    delta: float
    budget: int


def oddities(dim):
    """Strategy."""
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
    """A table `[K, d]`."""
    rng = np.random.default_rng(odd.seed)
    arms = rng.normal(size=shape)
    repeated = min(odd.duplicates, len(arms) - 2)
    if repeated > 0:
        arms[-repeated:] = arms[0]
    if odd.lost and shape[1] > 1:
        arms[:, -1] = arms[:, :-1].sum(1)
    return arms


def instance(odd, like):
    """An instance of the structure and shapes of another."""
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
        return jb.instances.glm(arms, theta)  # whose means would be 0 or 1 in other units
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
    """A constructor like another, with options of the example."""
    options = dict(like.keywords) if isinstance(like, partial) else {}
    function = like.func if isinstance(like, partial) else like
    if "delta" in options:
        options["delta"] = odd.delta
    if "budget" in options:
        options["budget"] = odd.budget
    return partial(function, *like.args, **options) if isinstance(like, partial) else like


def in_units(made, columns):
    """The same instance where column i of the features is in units `columns[i]` times as small."""
    tables = {"arms": made.arms * columns, "targets": made.targets * columns}
    return dataclasses.replace(made, theta=made.theta / columns, **tables)


def in_reward_units(made, factor):
    """The same instance where rewards are `factor` times as large."""
    grown = {name: factor * getattr(made, name) for name in ("means", "values", "theta")}
    norm = None if made.theta_norm is None else factor * made.theta_norm
    return dataclasses.replace(made, noise_var=factor**2 * made.noise_var, theta_norm=norm, **grown)


def all_finite(tree):
    return all(np.isfinite(x).all() for x in jax.tree.leaves(tree) if np.issubdtype(x.dtype, float))
