import jax
import jax.numpy as jnp
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


@pytest.mark.parametrize(("dtype", "close"), [(jnp.float32, 2e-5), (jnp.float64, 1e-12)])
@pytest.mark.parametrize("family", FAMILIES)
def test_values(family, dtype, close):
    z = jnp.array(GRID, dtype)
    link = LINKS[family]
    functions = (link.partition, link.mean, link.variance)
    for function, oracle in zip(functions, ORACLES[family], strict=True):
        found = function(z)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, oracle(GRID), rtol=close, atol=1e-3 * close)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives(family):
    link, z = LINKS[family], jnp.array(GRID)
    slope = jax.vmap(jax.grad(link.partition))(z)
    np.testing.assert_allclose(slope, link.mean(z), rtol=1e-10, atol=1e-14)
    curvature = jax.vmap(jax.grad(link.mean))(z)
    np.testing.assert_allclose(curvature, link.variance(z), rtol=1e-10, atol=1e-14)
    assert (np.diff(link.mean(z)) >= 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_partition_is_the_integral_of_the_mean(family):
    mean, partition = ORACLES[family][1], LINKS[family].partition
    area, _ = integrate.quad(mean, -3.0, 2.0, epsabs=1e-12)
    np.testing.assert_allclose(partition(jnp.array(2.0)) - partition(jnp.array(-3.0)), area, 1e-9)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_far_predictors_stay_finite(family, dtype):
    far = jnp.array([-1e4, -800.0, -100.0, 100.0, 800.0, 1e4], dtype)
    for function in LINKS[family]:
        assert np.isfinite(np.asarray(function(far))).all()


def test_tails_keep_their_relative_precision():
    # p (1 - p) with p rounded to 1 would give 0
    np.testing.assert_allclose(LINKS["logistic"].variance(jnp.array(50.0)), np.exp(-50), 1e-12)
    np.testing.assert_allclose(LINKS["logistic"].partition(jnp.array(-50.0)), np.exp(-50), 1e-12)


def test_poisson_goes_on_along_its_tangent():
    z = jnp.linspace(LARGEST - 2, LARGEST + 40, 421)
    values = np.asarray(LINKS["poisson"].partition(z))
    assert (np.diff(values, 2) >= -1e-9 * values[1:-1]).all()
    beyond = z > LARGEST + 1e-9
    np.testing.assert_allclose(LINKS["poisson"].mean(z[beyond]), np.exp(LARGEST))
    np.testing.assert_array_equal(LINKS["poisson"].variance(z[beyond]), 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_and_variance_at_once_are_those_by_themselves(family):
    link, z = LINKS[family], jnp.array([*GRID, -700.0, 700.0])
    mean, variance = link.both(z)
    np.testing.assert_allclose(mean, link.mean(z), rtol=1e-14)
    np.testing.assert_allclose(variance, link.variance(z), rtol=1e-14)
