import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxbandits.kernels import selection

argmax, rank, top = jax.jit(selection.argmax), jax.jit(selection.rank), jax.jit(selection.top)
shared_equally, first_basis = jax.jit(selection.shared_equally), jax.jit(selection.first_basis)

few = settings(max_examples=40, deadline=None, derandomize=True)
tied_values = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, np.inf]), min_size=7, max_size=7)
orders = st.permutations(range(7))


def ranks(values, order):
    """Ranks from the top by sorting; among equal values the larger priority is first."""
    best_first = sorted(range(len(values)), key=lambda k: (-values[k], -order[k]))
    return np.argsort(best_first)


@few
@given(tied_values, orders)
def test_rank_and_argmax_agree_with_sorting(values, order):
    with jax.enable_x64(True):
        found = rank(np.array(values), np.array(order))
        first = argmax(np.array(values), np.array(order))
    expected = ranks(values, order)
    np.testing.assert_array_equal(found, expected)
    assert int(first) == int(np.flatnonzero(expected == 0)[0])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("num", [64, 65, 100])  # comparisons up to 64, sorting above
def test_rank_of_many_arms_agrees_with_sorting(num, dtype):
    rng = np.random.default_rng(num)
    values = np.asarray(rng.integers(0, 9, (5, num)), dtype)
    orders = np.array([rng.permutation(num) for _ in range(5)])
    together = np.asarray(jax.jit(jax.vmap(selection.rank))(values, orders))
    for row, value, order in zip(together, values, orders, strict=True):
        np.testing.assert_array_equal(row, ranks(value.tolist(), order.tolist()))


@few
@given(tied_values, orders, st.integers(0, 7))
def test_top_takes_exactly_the_m_largest(values, order, m):
    with jax.enable_x64(True):
        mask = np.asarray(top(np.array(values), np.array(order), m))
    np.testing.assert_array_equal(mask, ranks(values, order) < m)
    assert mask.sum() == m
    if 0 < m < 7:
        assert np.array(values)[mask].min() >= np.array(values)[~mask].max()


@few
@given(st.lists(st.booleans(), min_size=7, max_size=7).filter(any), st.integers(0, 500))
def test_shared_draws_are_as_equal_as_whole_numbers_allow(alive, total):
    with jax.enable_x64(True):
        counts = np.asarray(shared_equally(np.array(alive), total, jax.random.key(total)))
    alive = np.array(alive)
    assert counts.sum() == total
    assert (counts[~alive] == 0).all()
    assert np.ptp(counts[alive]) <= 1


@pytest.mark.parametrize("num_arms", [7, 100])
def test_the_remainder_favours_no_arm(num_arms):
    alive = np.arange(num_arms) % 3 > 0
    keys = jax.random.split(jax.random.key(1), 3000)
    counts = jax.jit(jax.vmap(lambda key: shared_equally(alive, 2, key)))(keys)
    assert (np.asarray(counts).sum(1) == 2).all()
    assert stats.chisquare(np.asarray(counts).sum(0)[alive]).pvalue > 1e-4


def test_ties_favour_no_index():
    keys = jax.random.split(jax.random.key(0), 5000)
    orders = np.asarray(jax.jit(jax.vmap(lambda key: selection.tie_order(key, 5)))(keys))
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(5), (5000, 1)))
    tied = np.array([1.0, 3.0, 3.0, 0.0, 3.0])
    winners = np.asarray(jax.jit(jax.vmap(selection.argmax, (None, 0)))(tied, orders))
    wins = np.bincount(winners, minlength=5)
    assert wins[[0, 3]].sum() == 0
    assert stats.chisquare(wins[[1, 2, 4]]).pvalue > 1e-4


def greedy_basis(arms):
    """In index order, the arms that raise the rank, by NumPy's SVD."""
    chosen = []
    for k in range(len(arms)):
        if np.linalg.matrix_rank(arms[[*chosen, k]], tol=1e-5) > len(chosen):
            chosen.append(k)
    return chosen


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_first_basis_skips_dependent_arms(dtype):
    rng = np.random.default_rng(1)
    a, b, c, d = rng.normal(size=(4, 4))
    arms = np.array([0 * a, a, -2 * a, b, a + b, a - 3 * b, c, a + b + c, d, b + d])
    found = np.asarray(first_basis(np.asarray(arms, dtype)))
    np.testing.assert_array_equal(found, [1, 3, 6, 8])
    assert greedy_basis(arms) == [1, 3, 6, 8]


def test_first_basis_of_random_order_equals_the_greedy_one():
    rng = np.random.default_rng(2)
    for _ in range(10):
        flat = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4))
        arms = rng.permutation(np.concatenate([flat, rng.normal(size=(5, 4))]))
        np.testing.assert_array_equal(first_basis(arms), greedy_basis(arms))


def test_furthest_behind_has_the_least_draws_per_share():
    behind = jax.jit(selection.furthest_behind)
    counts, shares = np.array([3, 8, 0, 1, 4]), np.array([0.2, 0.5, 0.0, 0.05, 0.25])
    later = np.array([4, 8, 0, 1, 4])
    assert int(behind(counts, shares)) == 0  # counts / shares: 15, 16, none, 20, 16
    assert int(behind(later, shares)) == 1  # 20, 16, none, 20, 16
    order = np.array([1, 0, 4, 2, 3])
    assert int(behind(counts, shares, order)) == 0
    assert int(behind(later, shares, order)) == 4
    assert int(behind(counts, shares, np.array([0, 1, 4, 2, 3]))) == 0  # the order is for ties


def test_first_basis_distinguishes_nearly_parallel_from_parallel():
    def pair(angle):
        return np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)], [0.0, 1.0]])

    np.testing.assert_array_equal(first_basis(pair(1e-4)), [0, 1])
    np.testing.assert_array_equal(first_basis(pair(1e-9)), [0, 2])


def test_first_basis_repeats_the_last_arm_where_the_arms_do_not_span():
    arms = np.array([[1.0, 0, 0], [2.0, 0, 0], [1.0, 1.0, 0], [0, 1.0, 0]])
    np.testing.assert_array_equal(first_basis(arms), [0, 2, 2])


def test_samples_follow_their_chances():
    chances, number = np.array([0.0, 3.0, 1.0, 0.0, 4.0, 0.0]), 40_000
    keys = jax.random.split(jax.random.key(0), number)
    samples = jax.jit(jax.vmap(selection.sample, (0, None)))(keys, chances)
    counts = np.bincount(samples, minlength=6)
    np.testing.assert_array_equal(counts > 0, chances > 0)
    expected = number * chances[[1, 2, 4]] / 8
    assert (np.abs(counts[[1, 2, 4]] - expected) < 5 * np.sqrt(expected)).all()


def test_most_drawn_breaks_ties_by_value_and_then_by_priority():
    most_drawn = jax.jit(selection.most_drawn)
    counts, order = np.array([3, 5, 5, 5, 1]), np.array([4, 0, 2, 1, 3])
    for values, expected in (
        ([9.0, 1, 2, 0, 9], 2),
        ([9.0, 2, 2, 2, 9], 2),
        ([0.0, 2, 1, 2, 0], 3),
    ):
        assert int(most_drawn(counts, np.array(values), order)) == expected


def test_rounding_breaks_no_tie():
    with jax.enable_x64(True):
        values = np.array([0.3, 0.1 + 0.2, 1e-17, 0.0, -0.5, 0.3 + 1e-9, 9.0])
        found = np.asarray(jax.jit(selection.comparable)(values, np.arange(7) < 6))
    assert found[0] == found[1] < found[5]
    assert found[4] < found[2] == found[3] < found[0]
    assert found[6] == -np.inf


@pytest.mark.parametrize(
    ("size", "number"), [(20_100, 35), (1050, 35), (999, 30), (1000, 5), (7, 5)]
)
@pytest.mark.parametrize("kind", ["distinct", "tied", "mostly absent", "few", "equal", "unknown"])
def test_largest_agrees_with_sorting(size, number, kind):
    """Also where only a few blocks of the values are sorted; ties keep their order."""
    generator = np.random.default_rng(3)
    values = generator.normal(size=size)
    if kind == "tied":
        values = np.round(values)
    elif kind == "mostly absent":
        values[generator.random(size) < 0.7] = -np.inf
    elif kind == "few":
        values[3:] = -np.inf
    elif kind == "equal":
        values[:] = 0.5
    elif kind == "unknown":
        values[generator.random(size) < 0.1] = np.nan
    wanted = np.argsort(-values, kind="stable")[:number]
    np.testing.assert_array_equal(selection.largest(jnp.asarray(values), number), wanted)
