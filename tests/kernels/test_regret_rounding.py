import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from plain import greedy, in_two_parts, leader, worst

from jaxbandits.kernels.allocate import efficient_rounding, regret_rounding
from jaxbandits.kernels.design import d_optimal

NUM_ARMS = 24
regret, swap = jax.jit(regret_rounding.regret), jax.jit(regret_rounding.swap)
efficient = jax.jit(efficient_rounding.efficient)


@jax.jit
def settled(matrix, kept, above):
    return regret_rounding._settle(matrix, kept, regret_rounding._at(matrix, kept, above))


def problem(seed, dim, num_arms=NUM_ARMS):
    """Arms and a design of few large and many small weights, some of them zero."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(num_arms, 0.3))
    weights[weights < 1e-4] = 0.0
    return rng.normal(size=(num_arms, dim)), weights / weights.sum()


def guarantee(dim, total):
    return 1 - 3 * math.sqrt(dim / total)


@pytest.mark.parametrize("total", [7, 12, 60, 400])
def test_counts_equal_those_by_eigendecompositions(total):
    for seed in range(3):
        arms, weights = problem(seed, 3)
        found = regret(arms, weights, jnp.asarray(total))
        np.testing.assert_array_equal(found.counts, in_two_parts(arms, weights, total))
        assert bool(found.certified)


@pytest.mark.parametrize("dim", [3, 5, 8])
def test_the_guaranteed_lambda_min_is_reached(dim):
    for seed in range(10):
        arms, weights = problem(seed, dim)
        for total in (2 * dim, 10 * dim, 12 * dim, 40 * dim, 100 * dim, 10_000 * dim, 10**13):
            found = regret(arms, weights, jnp.asarray(total))
            counts = np.asarray(found.counts)
            assert bool(found.certified)
            assert counts.sum() == total
            assert (counts[weights == 0] == 0).all()
            assert counts.min() >= 0
            assert worst(arms, weights, counts) >= guarantee(dim, total) - 1e-9
            assert int(found.steps) <= 4 * dim + NUM_ARMS  # the first attempt was good enough


@pytest.mark.parametrize("dim", params([3, 5, 8], always=["5"]))
def test_the_greedy_fallback_reaches_the_guarantee(dim, changed):
    """The fallback where no faster attempt is certified."""
    changed.setattr(regret_rounding, "_reaches", lambda *_: jnp.array(False))
    arms, weights = problem(dim, dim)
    total = 12 * dim
    found = jax.jit(lambda *args: regret_rounding.regret(*args))(arms, weights, jnp.asarray(total))
    np.testing.assert_array_equal(found.counts, greedy(arms, total * weights, total))
    assert worst(arms, weights, np.asarray(found.counts)) >= guarantee(dim, total)
    assert int(found.steps) >= total + 4 * dim
    assert not bool(found.certified)


def test_few_draws_of_many_arms_reach_the_guarantee():
    """Efficient rounding draws the arms of smallest index, which are nearly equal."""
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(400, 3))
    arms[:100] = [1.0, 0.0, 0.0] + 0.01 * arms[:100]
    weights, total = np.full(400, 1 / 400), 60
    apportioned = np.asarray(efficient(weights, jnp.asarray(total)))
    assert worst(arms, weights, apportioned) < 0.01 < guarantee(3, total)
    found = regret(arms, weights, jnp.asarray(total))
    assert worst(arms, weights, np.asarray(found.counts)) >= 0.8


def test_no_worse_than_efficient_rounding():
    ratios = []
    for seed in range(8):
        arms, weights = problem(100 + seed, 5)
        for total in (30, 60, 150, 1000):
            counts = np.asarray(regret(arms, weights, jnp.asarray(total)).counts)
            other = np.asarray(efficient(weights, jnp.asarray(total)))
            ratios.append(worst(arms, weights, counts) / worst(arms, weights, other))
    assert min(ratios) > 0.99
    assert max(ratios) > 1.2


def test_bad_scaling_and_tiny_weights_keep_the_guarantee():
    arms, weights = problem(3, 5)
    weights[np.argsort(weights)[-3:]] *= 1e9  # the others have about 1e-9 in total
    weights /= weights.sum()
    scale = np.logspace(0, -5, 5)
    for total in (100, 10_000_000):
        found = regret(arms * scale, weights, jnp.asarray(total))
        counts = np.asarray(found.counts)
        assert bool(found.certified)
        assert counts.sum() == total
        assert worst(arms, weights, counts) >= guarantee(5, total)


def test_a_support_of_lower_rank_keeps_the_guarantee():
    rng = np.random.default_rng(4)
    arms, weights = rng.normal(size=(NUM_ARMS, 5)), np.zeros(NUM_ARMS)
    frame = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    arms[:10] = rng.normal(size=(10, 2)) @ frame.T
    weights[:10] = rng.dirichlet(np.ones(10))
    for total in (0, 1, 7, 30, 5000):
        found = regret(arms, weights, jnp.asarray(total))
        counts = np.asarray(found.counts)
        assert bool(found.certified)
        assert counts.sum() == counts[:10].sum() == total
        if total >= 7:
            plane = arms[:10] @ frame
            assert worst(plane, weights[:10], counts[:10]) >= max(0.5, guarantee(2, total))


def test_one_arm_gets_all_draws():
    found = regret(np.ones((1, 3)), np.ones(1), jnp.asarray(5))
    assert (int(found.counts[0]), bool(found.certified)) == (5, True)


def test_nan_weights_are_not_certified():
    arms, weights = problem(5, 3)
    found = regret(arms, weights * np.nan, jnp.asarray(20))
    assert not bool(found.certified)


def test_vmap_equals_a_python_loop():
    rng = np.random.default_rng(6)
    arms, weights = rng.normal(size=(NUM_ARMS, 3)), rng.dirichlet(np.full(NUM_ARMS, 0.3), 5)
    totals = np.array([4, 11, 60, 900, 10**7])
    together = jax.jit(jax.vmap(regret_rounding.regret, (None, 0, 0)))(arms, weights, totals)
    for row in range(5):
        alone = regret(arms, weights[row], jnp.asarray(int(totals[row])))
        np.testing.assert_array_equal(together.counts[row], alone.counts)
        assert int(together.steps[row]) == int(alone.steps)


def test_single_precision_meets_the_total():
    arms, weights = problem(7, 3)
    with jax.enable_x64(False):
        found = jax.jit(regret_rounding.regret)(
            jnp.array(arms, jnp.float32), jnp.array(weights, jnp.float32), jnp.asarray(300)
        )
    counts = np.asarray(found.counts)
    assert counts.dtype == np.int32
    assert counts.sum() == 300
    assert worst(arms, weights, counts) >= guarantee(3, 300)


@pytest.mark.parametrize("decades", [0.0, 4.0, 9.0])
def test_the_leader_equals_eigenvalues_and_bisection(decades):
    rng = np.random.default_rng(8)
    kept = np.arange(6) < 5
    for alpha in (4.0, 50.0, 3000.0):
        frame = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        matrix = np.zeros((6, 6))
        matrix[:5, :5] = (frame * np.logspace(0, -decades, 5)) @ frame.T
        found = settled(alpha * matrix, kept, np.sqrt(5.0))
        expected = leader(matrix[:5, :5], alpha)
        np.testing.assert_allclose(found.trace, 1.0, atol=2e-8)
        np.testing.assert_allclose(found.root[:5, :5], expected, atol=1e-6)
        assert not np.asarray(found.root)[5].any()


@pytest.mark.parametrize("dim", params([3, 5, 8], always=["3"]))
def test_swaps_reach_the_guaranteed_lambda_min(dim):
    arms, weights = problem(20 + dim, dim)
    for total in (50 * dim, 130 * dim):
        error = math.sqrt(5 * dim / total)
        start = np.zeros(NUM_ARMS, int)
        start[np.argmax(weights)] = total  # no other arm at all
        found = swap(arms, weights, jnp.array(start))
        counts = np.asarray(found.counts)
        assert bool(found.certified)
        assert counts.sum() == total
        assert counts.min() >= 0
        assert (counts[weights == 0] == 0).all()
        assert worst(arms, weights, counts) >= 1 - 3 * error - 1e-9
        assert 0 < int(found.steps) <= total / error


def test_no_swap_where_none_is_needed():
    arms, weights = problem(9, 3)
    start = np.asarray(efficient(weights, jnp.asarray(900)))
    found = swap(arms, weights, start)
    assert (int(found.steps), bool(found.certified)) == (0, True)
    np.testing.assert_array_equal(found.counts, start)


topped_up, optimal = jax.jit(regret_rounding.topped_up), jax.jit(d_optimal.d_optimal)


def inflation(arms, counts):
    """`max ||x||^2_{A(n)^-1} N / d`, 1 for an optimal design without rounding."""
    matrix = (arms.T * np.asarray(counts)) @ arms
    widths = np.einsum("ki,ij,kj->k", arms, np.linalg.pinv(matrix), arms)
    return widths.max() * counts.sum() / arms.shape[1]


@pytest.mark.parametrize(
    ("num_arms", "dim", "total", "most"),
    [
        (16, 4, 4, 3.0),
        pytest.param(16, 4, 20, 1.2, marks=pytest.mark.slow),
        pytest.param(64, 10, 10, 3.5, marks=pytest.mark.slow),
        pytest.param(64, 10, 50, 1.2, marks=pytest.mark.slow),
        (64, 10, 300, 1.04),
    ],
)
def test_topped_up_gives_whole_shares_first_and_the_rest_one_by_one(num_arms, dim, total, most):
    rng = np.random.default_rng(num_arms)
    arms = rng.normal(size=(num_arms, dim))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    weights = np.asarray(optimal(arms, np.ones(num_arms, bool)).weights)
    counts = np.asarray(topped_up(arms, weights, total))
    assert counts.sum() == total
    assert (counts >= np.floor(total * weights * (1 - 1e-12))).all()
    assert (counts[weights == 0] == 0).all()
    assert inflation(arms, counts) <= most
    if total == dim:  # efficient rounding fails for few draws of many supported arms
        other = np.asarray(efficient(weights, jnp.asarray(total)))
        assert inflation(arms, other) > 2 * most


def test_topped_up_equals_a_plain_loop():
    """The leader's matrix by eigenvalues and bisection, each draw by trying every arm."""
    rng = np.random.default_rng(7)
    arms, weights, total = rng.normal(size=(9, 3)), rng.dirichlet(np.ones(9)), 14
    matrix = total * (arms.T * weights) @ arms
    points = np.linalg.solve(np.linalg.cholesky(matrix), arms.T).T
    counts = np.floor(total * weights).astype(int)
    alpha = max(4 * np.sqrt(3), np.sqrt(2 * total))
    while counts.sum() < total:
        values, vectors = np.linalg.eigh(alpha * (points.T * counts) @ points)
        low, high = -values[0], -values[0] + np.sqrt(3)
        for _ in range(80):
            c = 0.5 * (low + high)
            low, high = (c, high) if (1 / (c + values) ** 2).sum() > 1 else (low, c)
        root = (vectors / (high + values)) @ vectors.T
        squares = np.einsum("ki,ij,kj->k", points, root @ root, points)
        halves = np.einsum("ki,ij,kj->k", points, root, points)
        counts[np.argmax(squares / (1 + alpha * halves))] += 1
    np.testing.assert_array_equal(topped_up(arms, weights, total), counts)


def plain_leader(points, counts, alpha):
    """`Q^{1/2}`, by eigenvalues and bisection for its c."""
    values, vectors = np.linalg.eigh(alpha * (points.T * counts) @ points)
    low, high = -values[0], -values[0] + math.sqrt(len(values))
    for _ in range(80):
        c = 0.5 * (low + high)
        low, high = (c, high) if (1 / (c + values) ** 2).sum() > 1 else (low, c)
    return (vectors / (high + values)) @ vectors.T


def plain_swaps(arms, weights, counts):
    """Counts by the formulas of `swap`, and the number of swaps."""
    total, rank = counts.sum(), arms.shape[1]
    matrix = total * (arms.T * weights) @ arms
    points = np.linalg.solve(np.linalg.cholesky(matrix), arms.T).T
    error = math.sqrt(5 * rank / total)
    alpha, counts, steps = math.sqrt(rank) / error, counts.copy(), 0
    while np.linalg.eigvalsh((points.T * counts) @ points)[0] < 1 - 3 * error:
        root = plain_leader(points, counts, alpha)
        squares = np.einsum("ki,ij,kj->k", points, root @ root, points)
        halves = np.einsum("ki,ij,kj->k", points, root, points)
        free = 1 - 2 * alpha * halves
        may_leave = (counts > 0) & (free > 0)
        counts[np.argmin(np.where(may_leave, squares / free, np.inf))] -= 1
        counts[np.argmax(np.where(weights > 0, squares / (1 + 2 * alpha * halves), -np.inf))] += 1
        steps += 1
    return counts, steps


@pytest.mark.parametrize("dim", params([1, 2, 3], always=["2"]))
def test_swaps_equal_a_plain_loop(dim):
    arms, weights = problem(30 + dim, dim, num_arms=9)
    rng, total, most = np.random.default_rng(dim), 300 * dim, 0
    for start in (
        np.where(np.arange(9) == np.argmax(weights), total, 0),
        *(rng.multinomial(total, rng.dirichlet(np.full(9, 0.2))) for _ in range(5)),
    ):
        found = swap(arms, weights, jnp.array(start))
        counts, steps = plain_swaps(arms, weights, start)
        most = max(most, steps)
        assert int(found.steps) == steps
        np.testing.assert_array_equal(found.counts, counts)
    assert most > 10 or dim == 1


def test_the_leader_in_one_dimension_has_its_closed_form():
    kept, alpha = np.arange(6) < 1, 7.0
    information, expected_root = np.zeros((6, 6)), np.zeros((6, 6))
    information[0, 0], expected_root[0, 0] = alpha * 3.0, 1.0
    found = settled(information, kept, np.float64(1.0))
    np.testing.assert_allclose(found.root, expected_root, atol=1e-7)
    np.testing.assert_allclose(found.shift, 1.0 - alpha * 3.0, atol=1e-6)
