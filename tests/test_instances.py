"""Builders, the papers' problems and the readers of local files, against their formulas."""

import dataclasses
import os
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import jaxbandits as jb

make = jb.instances


def check(instance):
    """What every instance holds."""
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
        (lambda: make.recorded(np.eye(2), [[1, np.nan]] * 2, noise_var=1.0), "samples .*finite"),
        (lambda: make.glm(np.eye(2), [0.0, 1.0], family="gamma"), "family .*got 'gamma'"),
        (lambda: make.linear(np.eye(2), [0.0, 1.0], noise_var=0.0), "noise_var .*got 0.0"),
        (lambda: make.transductive(5), "dim must be even, got 5"),
        (lambda: make.soare(1), "dim must be .*got 1"),
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


def test_directions_on_the_sphere_favour_none():
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


def car(weight=2000, width=65.0, size=100, city=25, highway=30, price="10000"):
    row = ["0"] * 26
    row[13], row[11], row[16] = str(weight), str(width), str(size)
    row[23], row[24], row[25] = str(city), str(highway), price
    return ",".join(row)


CARS = [
    car(price="5000"),
    car(weight=3000, price="?"),
    car(weight=4000, width=70.0, size=300, city=15, highway=20, price="25000"),
    car(weight=3000, width=66.0, size=150, city=20, highway=28, price="15000"),
]


def test_automobile_drops_missing_prices_and_rescales(tmp_path):
    (tmp_path / "imports-85.data").write_text("\n".join(CARS) + "\n")
    for path in (tmp_path, tmp_path / "imports-85.data", str(tmp_path)):
        instance = check(make.automobile(jax.random.key(0), path, 3))
    order = np.argsort(instance.means)
    np.testing.assert_allclose(instance.means[order], [0.0, 0.5, 1.0])
    expected = [[0, 0, 0, 1, 1], [0.5, 0.2, 0.25, 0.5, 0.8], [1, 1, 1, 0, 0]]
    np.testing.assert_allclose(instance.arms[order], expected)
    assert float(instance.noise_var) == 0.1
    with pytest.raises(ValueError, match="num_arms must be at most 3, got 4"):
        make.automobile(jax.random.key(0), tmp_path, 4)
    drawn = {tuple(make.automobile(jax.random.key(k), tmp_path, 2).means) for k in range(40)}
    assert len(drawn) == 6  # every ordered pair, never the same car twice


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*CARS, "1,2,3"], "row 4 does not have 26 columns"),
        ([*CARS, car(weight="heavy")], "holds a value that is no number: .*heavy"),
        (CARS[:1], "is too small"),
        ([], "is too small|no"),
    ],
    ids=["short row", "word", "one car", "empty"],
)
def test_malformed_cars_are_a_value_error(rows, message, tmp_path):
    (tmp_path / "imports-85.data").write_text("\n".join(rows))
    with pytest.raises(ValueError, match=rf"path: .*imports-85.data.*({message})"):
        make.automobile(jax.random.key(0), tmp_path, 2)


def test_a_missing_file_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match=r"path: no file .*imports-85.data"):
        make.automobile(jax.random.key(0), tmp_path, 2)
    with pytest.raises(ValueError, match=r"path: no file .*features_71x10.csv"):
        make.drug_repurposing(tmp_path)


def write_drugs(folder, features, rewards, *, names="ABC", other="ABC"):
    rows = [",".join(["gene", *names])]
    rows += [",".join([f"g{i}", *map(str, row)]) for i, row in enumerate(features)]
    (folder / "features_71x10.csv").write_text("\n".join(rows) + "\n")
    rows = [",".join(other), *(",".join(map(str, row)) for row in rewards)]
    (folder / "rewards_named.csv").write_text("\n".join(rows) + "\n")


def test_drug_tables(tmp_path):
    rng = np.random.default_rng(2)
    features, rewards = rng.normal(size=(7, 3)), rng.random((5, 3))
    write_drugs(tmp_path, features, rewards)
    instance = check(make.drug_repurposing(tmp_path, noise_var=0.5))
    np.testing.assert_allclose(instance.arms, features.T)
    np.testing.assert_allclose(instance.samples, rewards.T)
    np.testing.assert_allclose(instance.means, rewards.mean(0))
    np.testing.assert_allclose(instance.theta, np.linalg.pinv(features.T) @ rewards.mean(0))
    np.testing.assert_allclose(instance.theta_norm, np.linalg.norm(instance.theta))
    assert (float(instance.noise_var), instance.rewards) == (0.5, "recorded")


@pytest.mark.parametrize("fault", ["names", "word", "ragged", "rows"])
def test_malformed_drug_tables_are_a_value_error(fault, tmp_path):
    features, rewards = np.ones((7, 3)).tolist(), np.ones((5, 3)).tolist()
    if fault == "word":
        features[2][1] = "high"
    if fault == "ragged":
        rewards[3] = rewards[3][:2]
    write_drugs(tmp_path, features, rewards, other="ABD" if fault == "names" else "ABC")
    if fault == "rows":
        (tmp_path / "rewards_named.csv").write_text("A,B,C\n")
    with pytest.raises(ValueError, match=r"path: |samples must be"):
        make.drug_repurposing(tmp_path)


DATA = os.environ.get("JAXBANDITS_DATA")
real = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")


@real
def test_the_real_cars():
    cars = check(make.automobile(jax.random.key(0), Path(DATA) / "automobile", 201))
    np.testing.assert_array_equal(cars.arms.min(0), np.zeros(5))
    np.testing.assert_array_equal(cars.arms.max(0), np.ones(5))
    assert (cars.means.min(), cars.means.max()) == (0.0, 1.0)
    np.testing.assert_allclose(5118 + 40282 * cars.means.mean(), 13207.13, atol=0.005)
    theta, *_ = np.linalg.lstsq(cars.arms, cars.means)
    residual = cars.means - cars.arms @ theta
    assert np.linalg.matrix_rank(cars.arms) == 5
    np.testing.assert_allclose(residual.std(), 0.088, atol=0.002)
    np.testing.assert_allclose(np.abs(residual).max(), 0.37, atol=0.005)
    np.testing.assert_allclose(1 - residual.var() / cars.means.var(), 0.80, atol=0.01)
    with pytest.raises(ValueError, match="num_arms must be at most 201, got 202"):
        make.automobile(jax.random.key(0), Path(DATA) / "automobile", 202)


@real
def test_the_real_drugs():
    drugs = check(make.drug_repurposing(Path(DATA) / "drug_repurposing"))
    assert drugs.arms.shape == (10, 71)
    assert drugs.samples.shape == (10, 18)
    np.testing.assert_allclose(np.linalg.norm(drugs.arms, axis=1), 1.0, atol=1e-6)
    assert np.linalg.matrix_rank(drugs.arms) == 10
    means = [0.49150, 0.48488, 0.48174, 0.47798, 0.46501, 0.38178, 0.38260, 0.39274, 0.39677]
    np.testing.assert_allclose(drugs.means, [*means, 0.39856], atol=6e-6)
    np.testing.assert_allclose(drugs.arms @ drugs.theta, drugs.means, atol=1e-10)
    np.testing.assert_allclose(drugs.theta_norm, 1.8121, atol=1e-4)
    assert 0.0315 < drugs.samples.std(1).min() < drugs.samples.std(1).max() < 0.0535
    np.testing.assert_allclose(
        (drugs.samples.min(), drugs.samples.max()), (0.306, 0.531), atol=6e-4
    )
    assert float(drugs.noise_var) == 0.25


def test_instances_are_plain_trees():
    instance = make.soare(3)
    leaves, tree = jax.tree.flatten(instance)
    again = jax.tree.unflatten(tree, leaves)
    for field in dataclasses.fields(instance):
        np.testing.assert_array_equal(getattr(instance, field.name), getattr(again, field.name))
