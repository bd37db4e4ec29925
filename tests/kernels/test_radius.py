import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import stats

from jaxbandits.kernels.confidence import radius
from jaxbandits.kernels.estimate import least_squares

DELTA, VARIANCE, V0, NORM = 0.05, 4.0, 0.5, 3.0


def drawn(num_arms=6, dim=3, draws=40):
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(num_arms, dim))
    counts = rng.multinomial(draws, np.full(num_arms, 1 / num_arms))
    matrix = V0 * np.eye(dim) + np.einsum("k,ki,kj->ij", counts, arms, arms)
    facts = radius.facts(jnp.array(arms), delta=DELTA, noise_var=VARIANCE, v0=V0, theta_norm=NORM)
    return arms, facts, draws, matrix


def test_facts_hold_the_shape_and_the_longest_arm():
    arms, facts, _, _ = drawn()
    assert (facts.num_arms, facts.dim) == arms.shape
    np.testing.assert_allclose(facts.max_sqnorm, max(x @ x for x in arms))


def test_each_radius_is_its_formula():
    arms, facts, t, matrix = drawn()
    num_arms, dim = arms.shape
    ratio = np.linalg.det(matrix) / V0**dim
    bias = np.sqrt(V0) / np.sqrt(VARIANCE) * NORM
    longest = max(np.linalg.norm(x) for x in arms)
    expected = {
        "self_normalised_det": np.sqrt(2 * np.log(np.sqrt(ratio) / DELTA)) + bias,
        "self_normalised": np.sqrt(
            2 * np.log(1 / DELTA) + dim * np.log(1 + t * longest**2 / (V0 * dim))
        )
        + bias,
        "self_normalised_printed": np.sqrt(
            2 * np.log(1 / DELTA) + dim * np.log(1 + (t + 1) * longest**2 / (V0**2 * dim))
        )
        + bias,
        "self_normalised_code": np.sqrt(
            2 * np.log(1 / DELTA) + dim * np.log(1 + t * longest**2 * 400 / (VARIANCE * dim))
        )
        + NORM / 20,
        "pairwise": np.sqrt(2 * np.log(num_arms**2 * np.sqrt(ratio) / DELTA)) + bias,
        "lucb1": np.sqrt(2 * np.log(5 * num_arms * t**4 / (4 * DELTA))),
        "heuristic": np.sqrt(2 * np.log((1 + np.log(t)) / DELTA)),
    }
    assert set(radius.THRESHOLDS) == set(expected)
    for name, function in radius.THRESHOLDS.items():
        found = function(facts, jnp.asarray(t), jnp.log(ratio))
        np.testing.assert_allclose(found, expected[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("t", [55_109, 65_536, 10**7, 2**40])
def test_whole_numbers_of_draws_do_not_overflow(t):
    """Powers of a count, against Python's integers of any size."""
    with jax.enable_x64(True):
        facts = radius.facts(jnp.eye(3), delta=DELTA, noise_var=1.0, v0=1.0, theta_norm=1.0)
        count = jnp.asarray(t)
        assert jnp.issubdtype(count.dtype, jnp.integer)
        found = radius.lucb1(facts, count, 0.0)
        expected = math.sqrt(2 * math.log(5 * 3 * t**4 / (4 * DELTA)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        found = radius.soare(DELTA, count, 4)
        expected = 2 * math.sqrt(2 * math.log(6 * 4 * t**2 / (math.pi**2 * DELTA)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for function in radius.THRESHOLDS.values():
            assert np.isfinite(function(facts, count, jnp.asarray(9.0)))


def test_radii_that_need_the_norm_fail_without_it():
    _, facts, t, _ = drawn()
    for name, function in radius.THRESHOLDS.items():
        if name in radius.NEED_THETA_NORM:
            with pytest.raises(TypeError):
                function(facts._replace(theta_norm=None), t, 1.0)
        else:
            assert np.isfinite(function(facts._replace(theta_norm=None), t, 1.0))


def test_closed_form_is_never_below_the_determinant():
    rng = np.random.default_rng(1)
    for _ in range(50):
        arms = rng.normal(size=(5, 3))
        facts = radius.facts(
            jnp.array(arms), delta=DELTA, noise_var=VARIANCE, v0=V0, theta_norm=NORM
        )
        counts = rng.integers(0, 50, 5)
        matrix = np.eye(3) + np.einsum("k,ki,kj->ij", counts, arms, arms) / V0
        logdet, t = np.linalg.slogdet(matrix)[1], counts.sum()
        exact = radius.self_normalised_det(facts, t, logdet)
        assert radius.self_normalised(facts, t, logdet) >= exact - 1e-12


def test_large_times_stay_finite_in_single_precision():
    with jax.enable_x64(False):
        arms = jnp.eye(3)
        facts = radius.facts(arms, delta=DELTA, noise_var=1.0, v0=1e-3, theta_norm=1.0)
        for function in radius.THRESHOLDS.values():
            found = function(facts, jnp.asarray(1e7), jnp.asarray(40.0))
            assert found.dtype == jnp.float32
            assert np.isfinite(found)


def violations(shrink):
    """Runs of 300 rounds in which some arm ever leaves its interval of `shrink` times C."""
    rounds, theta = 300, jnp.array([0.6, -0.8])
    angles = jnp.arange(4) * jnp.pi / 4
    arms = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    facts = radius.facts(arms, delta=0.1, noise_var=1.0, v0=0.01, theta_norm=1.0)

    def run(noise):
        def play(carry, inputs):
            state, broken = carry
            t, eps = inputs
            arm = t % 4
            state = least_squares.observe(
                state, arms, arm, arms[arm] @ theta + eps, arm_space=False
            )
            limit = shrink * radius.self_normalised_det(facts, t + 1, state.logdet)
            off = jnp.abs(state.means - arms @ theta) > limit * jnp.sqrt(state.variances)
            return (state, broken | off.any()), None

        begin = (least_squares.ridge(arms, 0.01, arm_space=False), jnp.array(False))
        (_, broken), _ = lax.scan(play, begin, (jnp.arange(rounds), noise))
        return broken

    noise = jax.random.normal(jax.random.key(0), (1000, rounds))
    return int(jax.jit(jax.vmap(run))(noise).sum())


def test_intervals_cover_and_those_of_half_the_width_do_not():
    allowed = stats.binom.ppf(1 - 1e-6, 1000, 0.1)
    assert violations(1.0) <= allowed
    assert violations(0.5) > allowed


def test_static_radii_spend_at_most_delta():
    # A union bound over all ordered pairs at every phase, with one-sided normal tails.
    phases = np.arange(1, 2000)
    for log_factor, spends in ((2.0, 0.83), (1.0, 1.65)):
        width = radius.static(DELTA, phases, 81, log_factor)
        np.testing.assert_allclose(
            width, np.sqrt(2 * np.log(log_factor * 81 * phases**2 / DELTA)), rtol=1e-12
        )
        bound = (81 * np.exp(-(np.asarray(width) ** 2) / 2)).sum()
        np.testing.assert_allclose(bound, spends * DELTA, rtol=0.01)
        assert (81 * stats.norm.sf(width)).sum() < bound


def test_the_radius_of_soare_et_al_is_its_formula():
    draws = np.array([1.0, 6.0, 1e9])
    found = radius.soare(DELTA, jnp.asarray(draws), 36)
    expected = 2 * np.sqrt(2) * np.sqrt(np.log(6.0 * 36 / (np.pi**2 * DELTA)) + 2 * np.log(draws))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # A union bound over directions and numbers of draws, with one-sided sub-Gaussian tails.
    width = np.asarray(radius.soare(DELTA, jnp.arange(1, 2000), 36))
    assert (36 * np.exp(-(width**2) / 2)).sum() < DELTA


def test_the_radius_of_least_squares_is_its_formula():
    matrix, u, c = np.diag([3.0, 8.0]), 0.2, 2.5
    beta = 1.2 * np.log(np.sqrt(np.linalg.det(np.eye(2) + matrix / (u * c))) / DELTA)
    logdet = np.linalg.slogdet(np.eye(2) + matrix / (u * c))[1]
    np.testing.assert_allclose(radius.least_squares(DELTA, u, logdet), np.sqrt(2 * beta))


def uncovered(shrink):
    """Runs of 300 rounds in which the estimate ever leaves `shrink` times the ellipsoid."""
    rounds, u, c, delta = 300, 0.1, 1.0, 0.1
    angles = jnp.arange(4) * jnp.pi / 4
    arms = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    pulled = arms[jnp.arange(rounds) % 4]
    matrices = jnp.cumsum(pulled[:, :, None] * pulled[:, None, :], 0)[3:]  # from A >= I on
    logdets = jnp.linalg.slogdet(jnp.eye(2) + matrices / (u * c))[1]
    limits = shrink * radius.least_squares(delta, u, logdets)
    noise = jax.random.normal(jax.random.key(1), (1000, rounds))
    sums = jnp.cumsum(noise[:, :, None] * pulled, 1)[:, 3:]
    lengths = jnp.sqrt(jnp.einsum("rti,tij,rtj->rt", sums, jnp.linalg.inv(matrices), sums))
    return int((lengths > limits).any(1).sum())


def test_the_ellipsoid_covers_and_that_of_half_the_size_does_not():
    allowed = stats.binom.ppf(1 - 1e-6, 1000, 0.1)
    assert uncovered(1.0) <= allowed
    assert uncovered(0.5) > allowed


def test_widths_of_alba_are_their_formulas():
    rng = np.random.default_rng(2)
    n, d, norm, e = 90.0, 4, 1.7, 0.25
    v, length, moment = rng.random((3, 6))
    gap = rng.normal(size=6)
    noise = np.sqrt(2 * ((v**2 / n) * np.sqrt(3 * d / n) + v**2 / n))
    worst = np.sqrt(2) * norm * v / np.sqrt(n) + 2 * norm * (length + v * np.sqrt(d)) / (3 * n)
    learnt = np.sqrt(2 * moment / n)
    learnt += (2 * (np.abs(gap) + e / 2) + norm * v * np.sqrt(d)) / (3 * n)
    facts = n, v, norm, d
    found = radius.alba_worst_case(*facts, length)
    np.testing.assert_allclose(found, worst + noise, rtol=1e-6)
    found = radius.alba_empirical(*facts, moment, gap, e)
    np.testing.assert_allclose(found, learnt + noise, rtol=1e-6)


def test_widths_of_alba_cover_and_a_quarter_of_them_does_not():
    """In each run, `n log(1 / delta)` arms are drawn at random from a design."""
    rng, level, n = np.random.default_rng(3), 0.1, 60.0
    arms, weights = np.array([[1.0, 0], [0, 1], [0.6, 0.8]]), np.array([0.3, 0.4, 0.3])
    theta, y = np.array([0.8, -0.6]), np.array([1.0, -1.0])
    inverse = np.linalg.inv(np.einsum("k,ki,kj->ij", weights, arms, arms))
    total, runs, e = int(np.ceil(n * np.log(1 / level))), 4000, 0.25
    counts = rng.multinomial(total, weights, size=runs)
    sums = counts * (arms @ theta) + np.sqrt(counts) * rng.normal(size=counts.shape)
    estimates = sums @ arms @ inverse / total
    gaps, reach = estimates @ y, np.abs(estimates @ arms.T) + e / 2
    moments = ((arms @ inverse @ y * reach) ** 2) @ weights
    facts = n, np.sqrt(y @ inverse @ y), 1.0, 2
    worst = radius.alba_worst_case(*facts, np.sqrt(2.0))
    learnt = radius.alba_empirical(*facts, moments, gaps, e)
    allowed = stats.binom.ppf(1 - 1e-6, runs, level)
    for width in (np.asarray(worst), np.asarray(learnt)):
        off = gaps - theta @ y
        assert (off > width).sum() <= allowed
        assert (off > width / 4).sum() > allowed


def test_widths_of_the_sequential_baselines_are_their_formulas():
    np.testing.assert_allclose(radius.lin_ucb(0.001), 1 + np.sqrt(np.log(2000) / 2), rtol=1e-12)
    found = radius.lin_ts(0.05, jnp.asarray(7), 3)
    np.testing.assert_allclose(found, np.sqrt(27 * np.log(140)), rtol=1e-12)
    # sigma 1/2 and slope 1/4 over 50,000 rounds, error probability 1/50,000.
    for dim, published in ((5, 11.93), (10, 15.08), (20, 19.60)):
        np.testing.assert_allclose(2 * radius.ucb_glm(2e-5, 50_000, dim), published, atol=5e-3)
    prior, gaps, e = np.array([4.0, 2.0, 0.0]), np.array([0.5, 0.5, 0.01]), 0.1
    hardness = sum(max((g + e) / 2, e) ** -2 for g in gaps)
    expected = np.sqrt((40 / 0.5 + 1 / 4 + 1 / 2) / (4 * hardness))
    found = radius.bayes_gap(40, 0.5, jnp.asarray(prior), jnp.asarray(gaps), e)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
