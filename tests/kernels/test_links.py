import functools

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from jaxbandits.kernels.estimate.links import FAMILIES, LARGEST, LINKS

GRID = np.linspace(-20.0, 20.0, 161)  # 0 and the kinks of max and min included
ORACLES = {  # partition, mean, variance
    "gaussian": (lambda z: z**2 / 2, lambda z: z, np.ones_like),
    "logistic": (
        lambda z: np.logaddexp(0, z),
        special.expit,
        lambda z: special.expit(z) * special.expit(-z),
    ),
    "poisson": (np.exp, np.exp, np.exp),
    "probit": (
        lambda z: z * stats.norm.cdf(z) + stats.norm.pdf(z),
        stats.norm.cdf,
        stats.norm.pdf,
    ),
}


MOST = 421  # points, so that each family and dtype has one program


@functools.partial(jax.jit, static_argnames="family")
def compiled(z, *, family):
    link = LINKS[family]
    return {
        "partition": link.partition(z),
        "mean": link.mean(z),
        "variance": link.variance(z),
        "both": link.both(z),
        "jet": link.jet(z),
        "slope": jax.vmap(jax.grad(link.partition))(z),
        "curvature": jax.vmap(jax.grad(link.mean))(z),
    }


def tables(family, z, dtype=np.float64):
    """The functions of a link at these points, by name, and derivatives of the first two."""
    z = np.atleast_1d(np.asarray(z, dtype))
    found = compiled(np.concatenate([z, np.zeros(MOST - len(z), dtype)]), family=family)
    return jax.tree.map(lambda table: np.asarray(table)[: len(z)], found)


@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("family", FAMILIES)
def test_links_equal_scipy(family, dtype, close):
    at = tables(family, GRID, dtype)
    for name, oracle in zip(("partition", "mean", "variance"), ORACLES[family], strict=True):
        assert at[name].dtype == dtype
        np.testing.assert_allclose(at[name], oracle(GRID), rtol=close, atol=1e-3 * close)


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_and_variance_are_derivatives(family):
    at = tables(family, GRID)
    np.testing.assert_allclose(at["slope"], at["mean"], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(at["curvature"], at["variance"], rtol=1e-10, atol=1e-14)
    assert (np.diff(at["mean"]) >= 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_partition_is_the_integral_of_the_mean(family):
    area, _ = integrate.quad(ORACLES[family][1], -3.0, 2.0, epsabs=1e-12)
    low, high = tables(family, [-3.0, 2.0])["partition"]
    np.testing.assert_allclose(high - low, area, 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_far_predictors_stay_finite(family, dtype):
    at = tables(family, [-1e4, -800.0, -100.0, 100.0, 800.0, 1e4], dtype)
    for name in LINKS[family]._fields:
        assert np.isfinite(at[name]).all()


def test_tails_keep_their_relative_precision():
    # p (1 - p) with p rounded to 1 would give 0
    at = tables("logistic", [-50.0, 50.0])
    np.testing.assert_allclose(at["variance"][1], np.exp(-50), 1e-12)
    np.testing.assert_allclose(at["partition"][0], np.exp(-50), 1e-12)


def test_poisson_continues_along_its_tangent():
    z = np.linspace(LARGEST - 2, LARGEST + 40, MOST)
    at = tables("poisson", z)
    values = at["partition"]
    assert (np.diff(values, 2) >= -1e-9 * values[1:-1]).all()
    beyond = z > LARGEST + 1e-9
    np.testing.assert_allclose(at["mean"][beyond], np.exp(LARGEST))
    np.testing.assert_array_equal(at["variance"][beyond], 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_and_jet_give_what_single_functions_do(family):
    at = tables(family, [*GRID, -700.0, 700.0])
    mean, variance = at["both"]
    np.testing.assert_allclose(mean, at["mean"], rtol=1e-14)
    np.testing.assert_allclose(variance, at["variance"], rtol=1e-14)
    partition, *rest = at["jet"]
    np.testing.assert_allclose(partition, at["partition"], rtol=1e-14)
    np.testing.assert_array_equal(rest, at["both"])
