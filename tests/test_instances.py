"""Constructors of instances, and the instances of papers, against their formulas."""

import dataclasses
import itertools
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chisquare, norm

import jaxbandits as jb
from jaxbandits.instances import papers

make = jb.instances


def check(instance):
    """The instance, after checks that hold for every instance."""
    num_arms, dim = instance.arms.shape
    num_targets = len(instance.targets)
    shapes = {
        "arms": (num_arms, dim),
        "targets": (num_targets, dim),
        "means": (num_arms,),
        "values": (num_targets,),
        "theta": (dim,),
        "noise_var": (),
    }
    for name, shape in shapes.items():
        table = getattr(instance, name)
        assert isinstance(table, np.ndarray)
        assert (name, table.shape, table.dtype) == (name, shape, np.float64)
        assert np.isfinite(table).all()
    return instance


def test_linear():
    rng = np.random.default_rng(0)
    arms, theta, targets = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(6, 3))
    instance = check(make.linear(arms.astype(np.float32), theta, noise_var=2, targets=targets))
    arms = arms.astype(np.float32).astype(float)
    np.testing.assert_allclose(instance.means, arms @ theta, rtol=1e-12)
    np.testing.assert_allclose(instance.values, targets @ theta, rtol=1e-12)
    np.testing.assert_allclose(instance.theta_norm, np.linalg.norm(theta))
    assert (instance.noise_var, instance.rewards, instance.family) == (2.0, "normal", "gaussian")


def test_tabular():
    instance = check(make.tabular(np.eye(2), [3.0, 4.0]))
    np.testing.assert_array_equal(instance.values, [3.0, 4.0])
    np.testing.assert_array_equal(instance.theta, [0.0, 0.0])
    assert instance.theta_norm is None
    other = check(make.tabular(np.eye(2), [3.0, 4.0], targets=[[1.0, 1.0]], values=[9.0]))
    assert list(other.values) == [9.0]
    assert float(make.tabular(np.eye(2), [3.0, 4.0], theta_norm=5.0).theta_norm) == 5.0
    with pytest.raises(ValueError, match="values must be given with targets"):
        make.tabular(np.eye(2), [3.0, 4.0], targets=np.eye(2))


@pytest.mark.parametrize(
    ("family", "mean", "rewards", "noise_var"),
    [
        ("logistic", expit, "bernoulli", 0.25),
        ("probit", norm.cdf, "bernoulli", 0.25),
        ("poisson", np.exp, "poisson", None),
        ("gaussian", lambda z: z, "normal", 1.0),
    ],
)
def test_glm(family, mean, rewards, noise_var):
    rng = np.random.default_rng(1)
    arms, theta = rng.normal(size=(5, 2)), np.array([0.3, -0.8])
    instance = check(make.glm(arms, theta, family=family))
    means = mean(arms @ theta)
    np.testing.assert_allclose(instance.means, means, rtol=1e-9)
    np.testing.assert_allclose(instance.noise_var, means.max() if noise_var is None else noise_var)
    assert (instance.rewards, instance.family) == (rewards, family)
    np.testing.assert_allclose(instance.theta_norm, np.hypot(0.3, 0.8))


def test_the_largest_predictor_of_poisson_rewards_is_that_of_the_clip():
    most = make.glm(np.eye(2), [30.0, -1e3], family="poisson")
    np.testing.assert_allclose(most.means, [np.exp(30.0), 0.0])
    assert np.isfinite(make.glm(np.eye(2), [40.0, 35.0], family="gaussian").means).all()
    drawn = jax.jit(lambda theta: make.glm(np.eye(2), theta, family="poisson").means)
    np.testing.assert_allclose(drawn(jnp.array([40.0, 0.0])), [np.exp(30.0), 1.0], rtol=1e-5)


def test_bernoulli_and_recorded():
    instance = check(make.bernoulli(np.eye(2), [0.2, 0.7]))
    assert (float(instance.noise_var), instance.rewards) == (0.25, "bernoulli")
    samples = np.array([[1.0, 2.0, 6.0], [0.0, 0.0, 1.0]])
    played = check(make.recorded(np.eye(2), samples, noise_var=0.5, theta_norm=2.0))
    np.testing.assert_allclose(played.means, [3.0, 1 / 3])
    assert (float(played.noise_var), float(played.theta_norm)) == (0.5, 2.0)
    np.testing.assert_array_equal(played.samples, samples)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make.bernoulli(np.eye(2), [0.2, 1.2]), r"means must lie in \[0, 1\], got 0.2 to"),
        (lambda: make.recorded(np.eye(2), np.ones((3, 4)), noise_var=1.0), r"samples .*\[2, N\]"),
        (
            lambda: make.recorded(np.eye(2), [np.ones(3), np.ones(5)], noise_var=1.0),
            "samples: the rows have 3 to 5 records; .*'Arms with different numbers of records'",
        ),
        (lambda: make.recorded(np.eye(2), [[1, np.nan]] * 2, noise_var=1.0), "samples .*finite"),
        (
            lambda: make.recorded(np.eye(2), [[1e308] * 3, [1, 2, 3]], noise_var=1.0),
            r"samples must give finite means, got infinity at \[0\]",
        ),
        (
            lambda: make.linear(np.eye(2) * 1e150, [1.0, -1e200]),
            r"arms and theta must give finite means, got -infinity at \[1\]",
        ),
        (
            lambda: make.linear(np.eye(2), [1.0, 1e200], targets=[[1.0, 0.0], [0.0, 1e150]]),
            r"targets and theta must give finite values, got infinity at \[1\]",
        ),
        (
            lambda: make.glm(np.eye(2) * 1e150, [1.0, 1e200], family="gaussian"),
            r"arms and theta must give finite means, got infinity at \[1\]",
        ),
        (
            lambda: make.glm(np.eye(2), [35.5, 40.0], family="poisson"),
            "theta must give predictors arms @ theta of at most 30 for family 'poisson', .*got 40",
        ),
        (lambda: make.linear([[10**400, 1], [0, 1]], [1, 0]), "arms must be .* too large"),
        (lambda: make.linear(np.eye(2), [1, 10**400]), "theta must be .* too large"),
        (lambda: make.glm(np.eye(2), [0.0, 1.0], family="gamma"), "family .*got 'gamma'"),
        (lambda: make.linear(np.eye(2), [0.0, 1.0], noise_var=0.0), "noise_var .*got 0.0"),
        (lambda: make.transductive(5), "dim must be even, got 5"),
        (lambda: make.soare(1), "dim must be .*got 1"),
        (lambda: make.moderate_gaps(jax.random.key(0), 2), "num_arms must be .*got 2"),
        (lambda: make.moderate_gaps(jax.random.key(0), 9, spread="wide"), "spread .*got 'wide'"),
        (lambda: make.corner(jax.random.key(0), 2), "num_arms must be .*got 2"),
        (lambda: make.multivariate(jax.random.key(0), 0), "factors must be .*got 0"),
        (lambda: make.multivariate(jax.random.key(0), 2, weights="x"), "weights .*got 'x'"),
        (lambda: make.clicks(jax.random.key(0), 1), "num_arms must be .*got 1"),
        (lambda: make.clicks(jax.random.key(0), protocol="x"), "protocol .*'rage'.*got 'x'"),
        (lambda: make.clicks(jax.random.key(0), noise_var=0.0), "noise_var .*got 0.0"),
        (lambda: make.classic_top_m(4, 3, angle=1.0), "m must be at most num_arms - 2 = 2, got 3"),
    ],
)
def test_bad_numbers_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_soare():
    instance = check(make.soare(4, angle=0.3, scale=2.0, noise_var=0.5))
    extra = [np.cos(0.3), np.sin(0.3), 0.0, 0.0]
    np.testing.assert_allclose(instance.arms, np.vstack([np.eye(4), extra]))
    np.testing.assert_allclose(instance.means, [2.0, 0.0, 0.0, 0.0, 2 * np.cos(0.3)])
    assert (float(instance.theta_norm), float(instance.noise_var)) == (2.0, 0.5)


def test_canonical():
    instance = check(make.canonical(3, gap=0.4))
    np.testing.assert_array_equal(instance.arms, np.eye(3))
    np.testing.assert_array_equal(instance.means, [0.4, 0.0, 0.0])


def test_transductive():
    instance = check(make.transductive(6, angle=0.2))
    basis = np.eye(6)
    near = np.cos(0.2) * basis[:3] + np.sin(0.2) * basis[3:]
    np.testing.assert_array_equal(instance.arms, basis)
    np.testing.assert_allclose(instance.targets, np.vstack([basis[:3], near]))
    np.testing.assert_allclose(instance.values, [1, 0, 0, np.cos(0.2), 0, 0])
    np.testing.assert_array_equal(instance.theta, basis[0])


def test_classic_top_m():
    instance = check(make.classic_top_m(6, 3, angle=0.7))
    basis = np.eye(5)
    rows = [basis[0], basis[0] + basis[1], basis[0] + basis[2]]
    rows += [np.cos(0.7) * basis[0] + np.sin(0.7) * basis[3], basis[3], basis[4]]
    np.testing.assert_allclose(instance.arms, rows)
    np.testing.assert_allclose(instance.means, [1, 1, 1, np.cos(0.7), 0, 0])
    assert float(instance.noise_var) == 0.25
    small = make.classic_top_m(3, 1, angle=0.1)
    np.testing.assert_allclose(small.arms, [[1, 0], [np.cos(0.1), np.sin(0.1)], [0, 1]])


@pytest.mark.parametrize(
    ("spread", "centre", "deviation"),
    [
        ("uniform", 0.83, 0.1 / np.sqrt(12)),
        ("normal_std", np.pi / 4, 0.09),
        ("normal_var", np.pi / 4, 0.3),
    ],
)
def test_moderate_gaps(spread, centre, deviation):
    instance = check(make.moderate_gaps(jax.random.key(5), 2002, spread=spread, noise_var=2.0))
    np.testing.assert_array_equal(instance.arms[0], [1.0, 0.0])
    np.testing.assert_allclose(instance.arms[1], [-np.sqrt(0.5), np.sqrt(0.5)])
    np.testing.assert_allclose(np.linalg.norm(instance.arms, axis=1), 1.0)
    angles = np.arctan2(*instance.arms[2:, ::-1].T)
    np.testing.assert_allclose(angles.mean(), centre, atol=5 * deviation / np.sqrt(2000))
    np.testing.assert_allclose(angles.std(), deviation, rtol=5 / np.sqrt(4000))
    if spread == "uniform":
        assert 0.78 < angles.min() < 0.781 < 0.879 < angles.max() < 0.88
    np.testing.assert_array_equal(instance.theta, [1.0, 0.0])
    assert (instance.means.argmax(), float(instance.noise_var)) == (0, 2.0)
    other = make.moderate_gaps(jax.random.key(6), 2002, spread=spread)
    assert not np.isin(other.arms[2:], instance.arms).any()


def test_corner_is_moderate_gaps_in_another_order():
    instance = check(make.corner(jax.random.key(2), 7, noise_var=3.0))
    other = make.moderate_gaps(jax.random.key(2), 7, spread="normal_std")
    np.testing.assert_allclose(instance.arms, other.arms[[0, 2, 3, 4, 5, 6, 1]])
    np.testing.assert_array_equal(instance.theta, [1.0, 0.0])
    assert float(instance.noise_var) == 3.0


@pytest.mark.parametrize("factors", [1, 4])
def test_arms_of_multivariate_are_layouts_and_products_of_their_pairs(factors):
    instance = check(make.multivariate(jax.random.key(0), factors))
    layouts = np.array(list(itertools.product([-1.0, 1.0], repeat=factors)))
    pairs = [layouts[:, k] * layouts[:, j] for k, j in itertools.combinations(range(factors), 2)]
    expected = np.column_stack([np.ones(2**factors), layouts, *pairs])
    np.testing.assert_array_equal(instance.arms, expected)


def test_the_uniform_design_of_layouts_is_best():
    """The uniform design attains a lower bound that the longest differences give for any design."""
    arms = make.multivariate(jax.random.key(0), 4).arms
    np.testing.assert_array_equal(arms.T @ arms / 16, np.eye(11))
    differences = (arms[:, None] - arms).reshape(-1, 11)
    lengths = (differences**2).sum(1)
    widest = differences[lengths == lengths.max()]
    moment = widest.T @ widest / len(widest)
    bound = np.trace(moment) ** 2 / np.einsum("ki,ij,kj->k", arms, moment, arms).max()
    np.testing.assert_allclose([lengths.max(), bound], 24.0)


@pytest.mark.parametrize("weights", ["program", "paper"])
def test_weights_of_layouts_are_uniform_and_give_no_tie(weights):
    def draw(key):
        instance = make.multivariate(key, 3, weights=weights)
        return instance.theta, instance.means

    with jax.enable_x64(True):
        thetas, means = jax.vmap(draw)(jax.random.split(jax.random.key(4), 3000))
    thetas, means = np.asarray(thetas), np.asarray(means)
    second, first = np.sort(means, axis=1)[:, -2:].T
    assert (first - second).min() > 1e-3  # no two are best
    scale = np.full(7, 100.0)
    scale[4 : 5 if weights == "program" else None] = 200.0
    hundredths = thetas * scale
    np.testing.assert_allclose(hundredths, hundredths.round(), atol=1e-9)
    low, high = (-10, 9) if weights == "program" else (-30, 30)
    columns = hundredths.round().astype(int).T - low
    assert (columns.min(1) == 0).all()
    assert (columns.max(1) == high - low).all()
    # Ties do not depend on the constant, so that it stays uniform when ties are rejected.
    assert chisquare(np.bincount(columns[0])).pvalue > 1e-4


def test_the_first_draw_without_a_tie_is_taken(monkeypatch):
    draws = np.array([[1, 0, 0, 0], [2, 3, 0, 0], [5, 4, 3, 0], [6, 5, 4, 0]])
    assert papers.DRAWS == 32
    monkeypatch.setattr(jax.random, "randint", lambda key, shape, low, high: jnp.array(draws))
    instance = make.multivariate(jax.random.key(0), 2)
    np.testing.assert_allclose(instance.theta, [0.05, 0.04, 0.03, 0.0])


@pytest.mark.parametrize("mix", [0.0, 0.01, 0.3])
def test_sphere(mix):
    instance = check(make.sphere(jax.random.key(3), 12, 4, mix=mix))
    np.testing.assert_allclose(np.linalg.norm(instance.arms, axis=1), 1.0)
    cosines = np.triu(instance.arms @ instance.arms.T, 1) - np.tril(np.full((12, 12), 2.0))
    i, j = np.unravel_index(np.argmax(cosines), cosines.shape)
    expected = instance.arms[i] + mix * (instance.arms[j] - instance.arms[i])
    np.testing.assert_allclose(instance.theta, expected)
    assert np.argmax(instance.means) == i
    assert not np.array_equal(make.sphere(jax.random.key(4), 12, 4).arms, instance.arms)
    np.testing.assert_array_equal(make.sphere(jax.random.key(3), 12, 4).arms, instance.arms)


@pytest.mark.parametrize("cosines", [300, 2400, 5000])
def test_the_closest_pair_of_a_sphere_needs_no_table_of_all_pairs(monkeypatch, cosines):
    """By 5 and by 40 of 60 rows, which are no whole blocks, and all at once."""
    monkeypatch.setattr(papers, "COSINES", cosines)
    monkeypatch.setattr(papers, "_closest", jax.jit(papers._closest.__wrapped__))
    instance = make.sphere(jax.random.key(7), 60, 3, mix=0.25)
    arms = np.asarray(instance.arms)
    table = np.triu(arms @ arms.T, 1) - 2 * np.tri(60)
    first, second = np.unravel_index(table.argmax(), table.shape)
    expected = arms[first] + 0.25 * (arms[second] - arms[first])
    np.testing.assert_allclose(instance.theta, expected, rtol=1e-12)


def test_directions_on_the_sphere_are_uniform():
    arms = make.sphere(jax.random.key(0), 4000, 3).arms
    np.testing.assert_allclose(arms.mean(0), 0.0, atol=5 * np.sqrt(1 / 3 / 4000))
    np.testing.assert_allclose(arms.T @ arms / 4000, np.eye(3) / 3, atol=5 * 0.3 / np.sqrt(4000))


@pytest.mark.parametrize(("half_width", "theta_var"), [(0.5, None), (1.0, 0.02)])
def test_logistic_cube(half_width, theta_var):
    keys = jax.random.split(jax.random.key(1), 200)
    drawn = [
        make.logistic_cube(key, 20, 3, half_width=half_width, theta_var=theta_var) for key in keys
    ]
    first = check(drawn[0])
    np.testing.assert_allclose(first.means, expit(first.arms @ first.theta))
    arms, thetas = np.stack([i.arms for i in drawn]), np.stack([i.theta for i in drawn])
    assert 0.99 * half_width < np.abs(arms).max() <= half_width
    np.testing.assert_allclose(arms.var(), half_width**2 / 3, rtol=0.05)
    variance = 1.0 if theta_var is None else theta_var  # 3/d
    np.testing.assert_allclose(thetas.var(), variance, rtol=5 * np.sqrt(2 / 600))


@pytest.mark.parametrize(
    ("dim", "lost"),
    [(5, 0.38), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((10, 0.40), (20, 0.415)))],
)
def test_random_play_on_the_cube_has_the_regret_of_the_paper(dim, lost):
    """The best of a hundred means minus their average."""

    def gap(key):
        means = make.logistic_cube(key, 100, dim, half_width=1.0).means
        return means.max() - means.mean()

    with jax.enable_x64(True):
        gaps = jax.jit(jax.vmap(gap))(jax.random.split(jax.random.key(2), 2000))
        np.testing.assert_allclose(gaps.mean(), lost, atol=0.01)


def test_instances_are_pytrees():
    instance = make.soare(3)
    leaves, tree = jax.tree.flatten(instance)
    again = jax.tree.unflatten(tree, leaves)
    for field in dataclasses.fields(instance):
        np.testing.assert_array_equal(getattr(instance, field.name), getattr(again, field.name))


@pytest.mark.parametrize("build", [make.bernoulli, make.tabular])
def test_arms_without_features_are_the_axes(build):
    means = [0.9, 0.2, 0.4]
    instance = check(build(means=means))
    np.testing.assert_array_equal(instance.arms, np.eye(3))
    np.testing.assert_array_equal(instance.means, means)
    with pytest.raises(ValueError, match="means must be given, got None"):
        build(np.eye(3))
    with pytest.raises(ValueError, match=r"means must have shape \(K,\), got \(1, 2\)"):
        build(means=[[0.5, 0.5]])


class Tossed(NamedTuple):
    """A simulator of coins."""

    chances: Any

    def reward(self, key, arm):
        return 1.0 * jax.random.bernoulli(key, self.chances[arm])


@pytest.mark.parametrize(
    ("build", "given"),
    [
        (make.linear, (np.eye(3), np.array([0.9, 0.2, 0.4]))),
        (make.linear, (np.eye(3, dtype=np.float32), np.array([1, 0, 0]))),
        (partial(make.linear, np.eye(3), targets=np.eye(3)), (np.array([0.9, 0.2, 0.4]),)),
        (make.tabular, (np.eye(3), np.array([0.9, 0.2, 0.4]))),
        (make.glm, (np.eye(3), np.array([0.9, 0.2, 0.4]))),
        (make.bernoulli, (np.eye(3), np.array([0.9, 0.2, 0.4]))),
        (
            partial(make.recorded, noise_var=1.0),
            (np.eye(3), np.linspace(0.0, 1.0, 48).reshape(3, -1)),
        ),
        (
            lambda arms, chances: make.simulated(arms, Tossed(chances), noise_var=0.25, draws=200),
            (np.eye(3), np.array([0.9, 0.2, 0.4])),
        ),
        (partial(make.labelled, shown=2), (np.eye(3), np.array([0, 1, 1]))),
    ],
)
def test_arrays_that_change_later_change_no_instance(build, given):
    instance = build(*given)
    before = jax.tree.map(np.array, instance)
    for table in given:
        table += 1
    jax.tree.map(np.testing.assert_array_equal, instance, before)
    for name in ("arms", "targets", "means", "values", "theta", "noise_var", "theta_norm"):
        table = getattr(instance, name, None)
        assert table is None or not table.flags.writeable


def test_a_table_that_is_arms_and_targets_is_kept_once():
    arms = np.eye(3)
    for targets in (None, arms):
        instance = make.linear(arms, arms[0], targets=targets)
        assert instance.targets is instance.arms


def test_an_instance_is_shown_in_a_line():
    assert repr(make.canonical(4, gap=0.5)) == (
        "Instance(4 arms in 4 dimensions, normal rewards with variance 1, best mean 0.5, next 0)"
    )
    transductive = make.tabular(np.eye(2), [0.9, 0.1], targets=np.eye(2)[:1], values=[0.9])
    assert "1 targets, normal rewards" in repr(transductive)
    assert len(repr(make.sphere(jax.random.key(0), num_arms=1000, dim=9))) < 120
    shapes = jax.eval_shape(lambda: make.canonical(4, gap=0.5))
    assert repr(shapes) == "Instance(of normal rewards)"
    assert "Instance(of" in repr(jax.tree.map(lambda x: None, shapes))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.instances.linear(np.eye(2), [1.0, 0.0], noise_var=None), "noise_var must be"),
        (lambda: jb.instances.soare(None, angle=0.1), "dim must be"),
        (lambda: jb.instances.glm(np.eye(2), [1.0, 0.0], family=None), "family must be"),
    ],
)
def test_none_is_no_number(make, message):
    with pytest.raises(ValueError, match=f"{message}.*, got None"):
        make()


def test_a_norm_may_be_unknown():
    assert jb.instances.bernoulli(np.eye(2), [0.2, 0.5], theta_norm=None).theta_norm is None
