"""Regret bounds of GLM-TSL and GLM-FPL against the formulas written out again."""

import math

import jax
import numpy as np
import pytest
from counting import compilations
from programs import QUICK

import jaxbandits as jb

BOTH = pytest.mark.parametrize(
    "bound", [jb.theory.glm_tsl_regret_bound, jb.theory.glm_fpl_regret_bound]
)


def cube(dim, num_arms=100):
    return jb.instances.logistic_cube(jax.random.key(1), num_arms, dim, half_width=1.0)


@BOTH
@pytest.mark.parametrize(
    ("dim", "leading"),
    [
        (5, 8.6e5),
        pytest.param(10, 1.5e6, marks=pytest.mark.slow),
        pytest.param(20, 2.6e6, marks=pytest.mark.slow),
    ],
)
def test_leading_term(bound, dim, leading):
    """50,000 rounds, 100 arms, noise of sigma 1/2, slope of the link at most 1/4."""
    assert abs(bound(cube(dim), 50_000).leading / leading - 1) < 0.04


def test_all_terms_agree_with_the_formulas():
    instance, n, dim, num_arms = cube(3, 8), 1000, 3, 8
    q = dim * math.log(n / dim) + 2 * math.log(n)
    first = math.sqrt(0.25) / 0.2 * math.sqrt(q)
    second = first * math.sqrt(2 * 0.3 / 0.2 * math.log(num_arms * n))
    total = math.sqrt(2 * dim * n * math.log(2 * n / dim))
    leading = 0.3 * (first + second) * (1 + 2 / (0.15 - 1 / n)) * total
    gap = instance.means.max() - instance.means.min()
    found = jb.theory.glm_tsl_regret_bound(instance, n, kappa=0.2, lipschitz=0.3, exploration=50)
    np.testing.assert_allclose(found.leading, leading, rtol=1e-9)
    np.testing.assert_allclose(found.value, leading + 53 * gap, rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalue, q * 0.25 / 0.04, rtol=1e-9)
    other = jb.theory.glm_fpl_regret_bound(instance, n, kappa=0.2, lipschitz=0.3, exploration=50)
    third = first * 0.3 / 0.2 * math.sqrt(2 * math.log(num_arms * n))
    leading = 0.3 * (first + third) * (1 + 2 / (0.15 - 2 / n)) * total
    np.testing.assert_allclose(other.value, leading + 54 * gap, rtol=1e-9)
    wanted = max(4 * first**2, 8 * (first * 0.3 / 0.2) ** 2 * math.log(n))
    np.testing.assert_allclose(other.eigenvalue, wanted, rtol=1e-9)


@BOTH
@pytest.mark.parametrize("sigma", [0.01, 30.0])
def test_the_bound_of_normal_rewards_is_in_their_unit(bound, sigma):
    """Once the eigenvalue that the theorem asks for grew with the variance."""
    arms, theta = np.eye(3), np.array([0.5, 0.2, 0.0])
    plain = bound(jb.instances.linear(arms, theta), 1000)
    found = bound(jb.instances.linear(arms, sigma * theta, noise_var=sigma**2), 1000)
    np.testing.assert_allclose([found.value, found.leading], sigma * np.array(plain[:2]))
    np.testing.assert_allclose(found[2:], plain[2:])


def test_the_safe_form():
    """It bounds two-sided events, and the norm of a normal vector instead of one entry."""
    instance, n, dim, num_arms = cube(3, 8), 1000, 3, 8
    first = 2 * math.sqrt(dim * math.log(n / dim) + 2 * math.log(n))
    wide = first * math.sqrt(2 * math.log(2 * num_arms * n))  # slopes of 1/4 cancel
    total = math.sqrt(2 * dim * n * math.log(2 * n / dim))
    bounds = jb.theory.glm_tsl_regret_bound, jb.theory.glm_fpl_regret_bound
    for failures, bound in enumerate(bounds, 1):
        found = bound(instance, n, form="safe", exploration=0)
        leading = 0.25 * (first + wide) * (1 + 2 / (0.15 - failures / n)) * total
        np.testing.assert_allclose(found.leading, leading, rtol=1e-9)
    length = 0.25 * first * (math.sqrt(dim) + math.sqrt(2 * math.log(n)))
    np.testing.assert_allclose(found.eigenvalue, 4 * (length / 0.25) ** 2, rtol=1e-9)


@BOTH
def test_exploration_reaches_the_required_eigenvalue(bound):
    instance = cube(4, 20)
    found = bound(instance, 50_000)
    gram = instance.arms[:4].T @ instance.arms[:4]
    least = np.linalg.eigvalsh(gram)[0]
    assert found.exploration % 4 == 0
    assert found.exploration / 4 * least >= found.eigenvalue
    assert (found.exploration / 4 - 1) * least < found.eigenvalue
    with compilations() as seen:
        assert bound(instance, 50_000, form="safe").value > found.value
    assert seen == []


@BOTH
def test_measured_regret_is_below_the_bound(bound):
    """The bound is far from tight: measured regret is about a hundredth of it."""
    instance = cube(3, 10)
    build = {"glm_tsl": jb.glm_tsl, "glm_fpl": jb.glm_fpl}[bound.__name__[:7]]

    def play(arms, horizon):
        return build(arms, a="theory", horizon=horizon)

    runs = jb.simulate(instance, play, replications=20, horizon=300, engine=QUICK)
    assert runs.regret[:, -1].mean() < 0.1 * bound(instance, 300).value


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 1}, "horizon must be a whole number, 2 or above, got 1"),
        ({"horizon": 100, "form": "large"}, "form must be one of 'paper', 'safe', got 'large'"),
        ({"horizon": 100, "kappa": 0.0}, "kappa must be a finite number above 0, got 0.0"),
        ({"horizon": 100, "kappa": 0.5}, "kappa must be at most lipschitz, 0.25, got 0.5"),
        ({"horizon": 5}, "horizon must be above"),
    ],
)
def test_bad_input(bound, options, message):
    with pytest.raises(ValueError, match=message):
        bound(cube(2, 4), **options)


@BOTH
def test_the_error_message_names_the_least_valid_horizon(bound):
    with pytest.raises(ValueError, match="horizon must be above") as refusal:
        bound(cube(2, 4), 5, exploration=1)
    least = int(str(refusal.value).split("above ")[1].split(",")[0])
    with pytest.raises(ValueError, match=f"horizon must be above {least}, got {least}"):
        bound(cube(2, 4), least, exploration=1)
    assert bound(cube(2, 4), least + 1, exploration=1).value > 0


@BOTH
def test_cases_that_no_theorem_covers_are_refused(bound):
    """Fewer rounds than dimensions make the logarithm negative; arms on a line do not span."""
    with pytest.raises(ValueError, match="horizon must be 20 or above in 20 dimensions, got 12"):
        bound(cube(20), 12, exploration=5)
    line = jb.instances.glm(np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]), [1.0, 0.0])
    with pytest.raises(ValueError, match=r"arms must span R\^2"):
        bound(line, 1000)
