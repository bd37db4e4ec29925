"""Radii for maximum likelihood in logistic models, against simulation and exact tails."""

import jax
import numpy as np
from scipy import optimize, special, stats

from jaxbandits.kernels.confidence import radius


def compiled(function):
    """The compiled function; all arguments become one dtype, so that one program serves all."""
    program = jax.jit(function)

    def call(*numbers):
        with jax.enable_x64(True):
            return np.asarray(program(*(np.asarray(x, float) for x in numbers)))

    return call


logistic, logistic_reach, noise_length, self_concordant = (
    compiled(getattr(radius, name))
    for name in ("logistic", "logistic_reach", "noise_length", "self_concordant")
)


def logistic_by_hand(level, dim, reach):
    """The radius for maximum likelihood by the lines of its proof, in plain floats."""
    exponent = level**2 / 2
    a, b, c = 1.0, -3 * reach * exponent, -2 * exponent * (1 + 2 * reach * np.sqrt(dim))
    length = np.sqrt(dim) + max(np.roots([a, b, c]).real)
    if reach * length >= 1:
        return length, np.inf
    bound = -np.log(1 - reach * length)
    for _ in range(100):
        norm = length * bound / (1 - np.exp(-bound))
        width = np.sqrt(2 * exponent) + reach * exponent / 3
        width += ((np.exp(bound) - 1) / bound - 1) * norm
        bound = min(bound, reach * width)
    return length, width


def test_the_radius_of_maximum_likelihood_follows_its_proof():
    level = np.sqrt(2 * np.log(1e4))
    with jax.enable_x64(True):
        for dim in (2, 10):
            close = float(logistic_reach(level, dim))
            for reach in (0.1 * close, close):
                length, width = logistic_by_hand(level, dim, reach)
                np.testing.assert_allclose(noise_length(level, dim, reach), length)
                np.testing.assert_allclose(logistic(level, dim, reach), width, rtol=1e-3)
                assert logistic(level, dim, reach) >= width * (1 - 1e-9)
            np.testing.assert_allclose(close * noise_length(level, dim, close), 0.5)
            assert 1.5 < logistic(level, dim, close) / level < 1.8
            np.testing.assert_allclose(logistic(level, dim, 1e-9), level, rtol=1e-6)
            assert np.isinf(logistic(level, dim, 3 * close))


def fits(arms, counts, sums, theta):
    """Maximum likelihood for each row of sums, by Newton steps that move no predictor by over 1."""
    theta = np.tile(theta, (len(sums), 1))
    for _ in range(30):
        mean = special.expit(theta @ arms.T)
        hessian = np.einsum("rk,ki,kj->rij", counts * mean * (1 - mean), arms, arms)
        gradient = (counts * mean - sums) @ arms
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        theta = theta - step / np.maximum(1, np.abs(step @ arms.T).max(1))[:, None]
    assert np.abs(gradient).max() < 1e-6 * counts.sum()
    return theta


def logistic_problem(rng, level):
    """A problem whose reach is half or all of the largest one that the radius allows."""
    dim, num_arms = rng.integers(2, 4), rng.integers(4, 7)
    arms, theta = rng.normal(size=(num_arms, dim)), rng.normal(size=dim)
    theta *= rng.uniform(0, 3) / np.linalg.norm(theta)
    shares = rng.dirichlet(np.ones(num_arms))
    chance = special.expit(arms @ theta)
    one = np.einsum("k,ki,kj->ij", shares * chance * (1 - chance), arms, arms)
    most = np.einsum("ki,ij,kj->k", arms, np.linalg.inv(one), arms).max()
    goal = float(logistic_reach(level, dim)) * rng.choice([0.5, 1.0])
    counts = np.ceil(shares * most / goal**2)
    matrix = np.einsum("k,ki,kj->ij", counts * chance * (1 - chance), arms, arms)
    inverse = np.linalg.inv(matrix)
    reach = np.sqrt(np.einsum("ki,ij,kj->k", arms, inverse, arms).max())
    return arms, theta, counts, chance, inverse, reach


def test_the_radius_covers_maximum_likelihood():
    """Arms and all their differences at once, with as few draws as the radius allows."""
    rng, delta, runs = np.random.default_rng(4), 0.1, 300
    broken, narrow, exceeded, shorter, total = 0, 0, 0, 0, 0
    with jax.enable_x64(True):
        for _ in range(20):
            level = np.sqrt(2 * np.log(50 / delta))  # 2 * 21 + 1 bounds at most
            arms, theta, counts, chance, inverse, reach = logistic_problem(rng, level)
            sums = rng.binomial(counts.astype(int), chance, size=(runs, len(arms))).astype(float)
            found = fits(arms, counts, sums, theta) - theta
            pairs = (arms[:, None] - arms[None])[np.triu_indices(len(arms), 1)]
            vectors = np.concatenate([arms, pairs])
            norms = np.sqrt(np.einsum("ki,ij,kj->k", vectors, inverse, vectors))
            width = float(logistic(level, len(theta), reach))
            worst = (np.abs(found @ vectors.T) / norms).max(1)
            broken += (worst > width).sum()
            narrow += (worst > width / 4).sum()
            noise = (sums - counts * chance) @ arms
            lengths = np.sqrt(np.einsum("ri,ij,rj->r", noise, inverse, noise))
            length = float(noise_length(np.sqrt(2 * np.log(1 / delta)), len(theta), reach))
            exceeded += (lengths > length).sum()
            shorter += (lengths > length / 2).sum()
            total += runs
    allowed = stats.binom.ppf(1 - 1e-6, total, delta)
    assert max(broken, exceeded) <= allowed
    assert min(narrow, shorter) > allowed


def test_self_concordance_holds_for_any_noise():
    """No reward is drawn: C covers a noise vector z of any length and direction."""
    rng, tightest = np.random.default_rng(5), 0.0
    with jax.enable_x64(True):
        for _ in range(30):
            arms, theta, counts, chance, inverse, reach = logistic_problem(rng, 4.0)
            root = np.linalg.cholesky(np.linalg.inv(inverse))
            direction = rng.normal(size=(20, len(theta)))
            share = rng.uniform(0.02, 0.9, size=(20, 1))
            noise = (
                share
                / reach
                * direction
                / np.linalg.norm(direction, axis=1, keepdims=True)
                @ root.T
            )
            extra = noise @ np.linalg.pinv(arms)  # sums with `extra @ arms = noise`
            found = fits(arms, counts, counts * chance + extra, theta) - theta
            norms = np.sqrt(np.einsum("ki,ij,kj->k", arms, inverse, arms))
            factor = (np.abs(noise @ inverse @ arms.T) / norms).max(1)
            length = np.sqrt(np.einsum("ri,ij,rj->r", noise, inverse, noise))
            widths = self_concordant(factor, length, reach)
            ratio = (np.abs(found @ arms.T) / norms).max(1) / widths
            assert ratio.max() <= 1 + 1e-9
            tightest = max(tightest, ratio.max())
    assert tightest > 0.95


def test_one_arm_is_covered_at_any_level():
    """Exact binomial tails down to 1e-40, with rare rewards and barely enough draws."""
    tightest = 0.0
    for chance in (0.5, 0.1, 1e-4):
        for exponent in (2.0, 5.0, 20.0, 90.0):
            level = np.sqrt(2 * exponent)
            for share in (0.1, 0.5, 0.95):  # of the largest allowed reach times length
                reach = optimize.brentq(
                    lambda x, aim=share, at=level: x * noise_length(at, 1, x) - aim, 1e-9, 1
                )
                draws = np.ceil(1 / (reach**2 * chance * (1 - chance)))
                reach = 1 / np.sqrt(draws * chance * (1 - chance))
                width = float(logistic(level, 1, reach)) * reach
                ends = special.expit(special.logit(chance) + np.array([-width, width]))
                few, many = np.ceil(draws * ends[0]) - 1, np.floor(draws * ends[1])
                below = stats.binom.logcdf(
                    max(few, 0), draws, chance
                )  # no estimate without success
                above = stats.binom.logsf(min(many, draws - 1), draws, chance)
                assert np.logaddexp(below, above) <= np.log(3) - exponent
                tightest = max(tightest, np.logaddexp(below, above) - np.log(3) + exponent)
    assert tightest > -5
