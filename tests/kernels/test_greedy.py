import jax
import jax.numpy as jnp
import numpy as np
import pytest
from designs import benchmark, differences

from jaxbandits.kernels import selection
from jaxbandits.kernels.design import greedy

BIG = 10**9


def problem(seed, num_arms, dim):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(num_arms, dim))


def of_pairs(alive):
    """Which pairs have both arms alive."""
    first, second = np.triu_indices(len(alive), 1)
    return alive[first] & alive[second]


def squared_norms(arms, counts, pairs, v0=0.0):
    """`||y||^2` of the pairs in A^-1, by NumPy."""
    prior = v0 if np.ndim(v0) else v0 * np.eye(arms.shape[1])
    matrix = (arms.T * counts) @ arms + prior
    return np.einsum("pi,pi->p", pairs, np.linalg.solve(matrix, pairs.T).T)


@jax.jit
def allocated(arms, alive, initial, v0, aim, most, slope=0.0):
    def limit(draws):
        return aim + slope * draws

    return greedy.min_max(arms, alive, initial, limit, v0=v0, most=most)


def path(arms, alive, initial, v0, steps):
    """Counts after 0, 1, ... draws."""
    numbers = int(initial.sum()) + np.arange(steps + 1)
    return np.stack([allocated(arms, alive, initial, v0, 0.0, int(most)) for most in numbers])


SIZES = [(5, 3, 0.0), (4, 4, 1.0), (7, 2, 0.3), (greedy.LISTED + 7, 3, 0.1)]


@pytest.mark.parametrize(("num_arms", "dim", "v0"), SIZES)
def test_every_draw_is_the_best_one(num_arms, dim, v0):
    with jax.enable_x64(True):
        arms = problem(num_arms, num_arms, dim)
        pairs = differences(arms)
        alive = np.arange(num_arms) != 1
        initial, active = np.full(num_arms, int(v0 == 0)), of_pairs(alive)
        assert (active.sum() > greedy.FEW) == (num_arms > 5)
        counts = path(jnp.asarray(arms), jnp.asarray(alive), jnp.asarray(initial), v0, 60)
    changes = np.diff(counts, axis=0)
    assert (changes.sum(1) == 1).all()
    assert (changes >= 0).all()
    assert (counts[0] == initial).all()
    for before, change in zip(counts, changes, strict=False):
        tried = [
            squared_norms(arms, before + arm, pairs[active], v0).max() for arm in np.eye(num_arms)
        ]
        assert tried[change.argmax()] <= min(tried) * (1 + 1e-9)


def test_draws_end_once_every_norm_is_below_the_limit():
    arms, one = problem(3, 6, 3), np.ones(6, int)
    pairs = differences(arms)
    every = np.ones(6, bool)
    with jax.enable_x64(True):

        def found(aim, slope=0.0, most=BIG, alive=every):
            given = map(jnp.asarray, (arms, alive, one))
            return np.asarray(allocated(*given, 0.0, aim, most, slope))

        for aim in (0.1, 1e-3):  # the second needs several new inverses
            counts = found(aim)
            less = found(aim, most=int(counts.sum()) - 1)
            assert less.sum() == counts.sum() - 1
            assert (
                squared_norms(arms, counts, pairs).max()
                <= aim
                < squared_norms(arms, less, pairs).max()
            )
        assert counts.sum() > 2 * greedy.TRUSTED
        by_number = found(0.0, 1e-6)
        assert squared_norms(arms, by_number, pairs).max() <= 1e-6 * by_number.sum()
        assert found(1e9).sum() == 7
        np.testing.assert_array_equal(found(0.0, alive=~every), one)


def test_lanes_with_few_and_with_many_pairs_equal_single_calls():
    """Few pairs are solved as a smaller problem, which lanes with many pairs must not disturb."""
    arms, one = jnp.asarray(problem(5, 6, 3)), jnp.ones(6, int)
    every, few = np.ones(6, bool), np.arange(6) % 2 == 1
    assert of_pairs(few).sum() < greedy.FEW < of_pairs(every).sum()
    with jax.enable_x64(True):
        alive = jnp.asarray([few, every, ~every])
        one_by_one = [np.asarray(allocated(arms, row, one, 0.0, 0.01, BIG)) for row in alive]
        together = jax.vmap(lambda row: allocated(arms, row, one, 0.0, 0.01, BIG))(alive)
    np.testing.assert_array_equal(together, one_by_one)
    assert 6 == one_by_one[2].sum() < one_by_one[0].sum() < one_by_one[1].sum()


@pytest.mark.parametrize("angle", [0.3, 1e-2], ids=["easy", "ill-conditioned"])
def test_long_allocations_come_near_the_optimal_design(angle):
    """The optimum over all pairs is 2 d here; that of one pair is a squared L1 norm (Elfving)."""
    dim, draws = 4, 20_000
    arms = benchmark(dim, angle)
    pairs = differences(arms)
    close = np.arange(dim + 1) % dim == 0  # the first arm and the last
    one, every = np.ones(dim + 1, int), np.ones(dim + 1, bool)
    with jax.enable_x64(True):
        counts, even = (
            np.asarray(allocated(jnp.asarray(arms), jnp.asarray(alive), one, 0.0, 0.0, draws))
            for alive in (close, every)
        )
    assert counts.sum() == even.sum() == draws
    optimum = (1 - np.cos(angle) + np.sin(angle)) ** 2
    reached = draws * squared_norms(arms, counts, pairs[of_pairs(close)])[0]
    assert optimum * (1 - 1e-9) <= reached <= 1.01 * optimum
    # Ties are broken at random, so that some draws go to arms that do not help.
    assert 2 * dim <= draws * squared_norms(arms, even, pairs).max() <= 1.3 * 2 * dim


def test_ties_between_basis_arms_end_in_equal_counts():
    """While all pairs have equal norms, no single draw lowers the largest one."""
    with jax.enable_x64(True):
        arms = jnp.eye(4)
        everything, initial = jnp.ones(4, bool), jnp.ones(4, int)
        counts = np.asarray(allocated(arms, everything, initial, 0.0, 2.0005e-3, BIG))
        np.testing.assert_array_equal(counts, 1000)
        first = path(arms, everything, initial, 0.0, 1)[1] - 1
        assert first.sum() == 1


def test_scattered_priorities_favour_no_arm():
    with jax.enable_x64(True):
        number, num_arms = 30_000, 5
        table = jax.vmap(lambda n: selection.scattered(n, num_arms))(jnp.arange(number))
        table = np.asarray(table)
    assert table.min() >= 0
    assert (np.diff(np.sort(table, axis=1), axis=1) > 0).all()
    winner = table.argmax(1)
    among_three = table[:, 1:4].argmax(1)
    for wins, size in ((winner, 5), (among_three, 3), (winner[1:] * 5 + winner[:-1], 25)):
        expected = len(wins) / size
        square = ((np.bincount(wins, minlength=size) - expected) ** 2 / expected).sum()
        assert square < size - 1 + 6 * np.sqrt(2 * size)


g_allocation = jax.jit(greedy.g_allocation)


def drawn_one_by_one(arms, active, total, v0):
    """Counts when each draw tries every arm; for each draw, which arms tie for the best."""
    counts, path = np.zeros(len(arms)), []
    for _ in range(total):
        tried = [
            squared_norms(arms, counts + arm, arms[active], v0).max() for arm in np.eye(len(arms))
        ]
        tried = np.where(active, tried, np.inf)
        tied = tried <= tried.min() * (1 + 1e-10)
        path.append(tied)
        counts = counts + (np.arange(len(arms)) == tied.argmax())
    return counts, np.array(path)


@pytest.mark.parametrize(("num_alive", "v0"), [(9, None), (5, 0.3), (2, None)], ids=str)
def test_g_allocation_makes_the_best_draws(num_alive, v0):
    """For nine, five and two active arms out of nine the kernel runs different loops."""
    arms, active = problem(8, 9, 3), np.arange(9) % 9 < num_alive
    dim = arms.shape[1]
    used = np.diag(1e-3 * dim * (arms[active] ** 2).mean(0)) if v0 is None else v0 * np.eye(dim)
    counts, path = drawn_one_by_one(arms, active, 60, used)
    assert (path.sum(1) == 1).all()
    with jax.enable_x64(True):
        given = jnp.asarray(arms), jnp.asarray(active), jnp.asarray(60)
        found = g_allocation(*given) if v0 is None else g_allocation(*given, v0=v0)
    np.testing.assert_array_equal(found, counts)


def test_g_allocation_continues_from_a_recomputed_inverse():
    arms = problem(1, 6, 3)
    with jax.enable_x64(True):
        given = jnp.asarray(arms), jnp.ones(6, bool)
        paths = [np.asarray(g_allocation(*given, jnp.asarray(n))) for n in (2500, 2501)]
    assert paths[0].sum() == 2500
    change = paths[1] - paths[0]
    tried = [squared_norms(arms, paths[0] + arm, arms, 0.0).max() for arm in np.eye(6)]
    assert tried[change.argmax()] <= min(tried) * (1 + 1e-6)


def test_ties_of_g_allocation_favour_no_arm():
    """Each unit vector is drawn once before any is drawn twice, in a new order each time."""
    with jax.enable_x64(True):
        paths = [g_allocation(jnp.eye(6), jnp.ones(6, bool), jnp.asarray(n)) for n in range(19)]
    steps = np.diff(np.stack(paths), axis=0)
    np.testing.assert_array_equal(paths[-1], 3)
    orders = steps.argmax(1).reshape(3, 6)
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("num_targets", [5, greedy.LISTED + 5])
def test_one_draw_is_the_best_one_for_targets(num_targets):
    """Each draw in turn, by all pairs and by those that can matter."""
    arms, targets = problem(1, 12, 3), problem(2, num_targets, 3)
    pairs, draw = differences(targets), jax.jit(greedy.min_max_one)
    with jax.enable_x64(True):
        counts = np.ones(12)
        for number in range(30):
            inverse = np.linalg.inv((arms.T * counts) @ arms)
            moved, apart = arms @ inverse, targets[:, None] - targets[None, :]
            sqdist = np.einsum("ijk,kl,ijl->ij", apart, inverse, apart)
            given = (moved * arms).sum(1), moved @ targets.T, sqdist, np.asarray(number)
            arm = int(draw(*map(jnp.asarray, given)))
            tried = [squared_norms(arms, counts + one, pairs).max() for one in np.eye(12)]
            assert tried[arm] <= min(tried) * (1 + 1e-9)
            counts[arm] += 1
        assert (counts > 1).sum() > 2
