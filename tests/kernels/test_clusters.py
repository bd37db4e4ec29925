import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans

from jaxbandits.kernels.allocate import clusters

KEY = jax.random.key(4)


@jax.jit
def grouped(arms, active, number):
    return clusters.k_means(arms, active, number, most=4)


shared = jax.jit(clusters.shared)


def clouds(seed, sizes=(5, 9, 3, 7), deviation=0.3):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(len(sizes), 3)) * 2
    return np.vstack(
        [c + deviation * rng.normal(size=(n, 3)) for n, c in zip(sizes, centers, strict=True)]
    )


@pytest.mark.parametrize("number", [2, 3, 4])
def test_clusters_are_those_of_scikit_learn_from_the_same_start(number):
    arms, one = clouds(number, deviation=1.0), jnp.ones(24, bool)
    allowed = jnp.arange(4) < number
    start = np.asarray(clusters._seeds(jnp.asarray(arms), one, allowed)[0])[:number]
    found = grouped(arms, one, number)
    assert bool(found.converged)
    assert (np.linalg.norm(start[:, None] - arms, axis=2).min(1) < 1e-12).all()
    other = KMeans(number, init=start, n_init=1, algorithm="lloyd", tol=0, max_iter=50).fit(arms)
    labels = np.asarray(found.labels)
    np.testing.assert_array_equal(labels, other.labels_)
    ours = sum(((arms[labels == c] - arms[labels == c].mean(0)) ** 2).sum() for c in range(number))
    np.testing.assert_allclose(ours, other.inertia_, rtol=1e-9)


def test_only_active_arms_make_clusters():
    arms = clouds(1)
    active = np.arange(24) % 2 > 0
    found = grouped(arms, active, 3)
    alone = KMeans(3, init=np.asarray(found.centers)[:3], n_init=1).fit(arms[active])
    np.testing.assert_allclose(found.centers[:3], alone.cluster_centers_, atol=1e-9)


def test_equal_arms_make_one_cluster():
    found = grouped(np.ones((24, 3)), np.ones(24, bool), 4)
    assert int(found.found.sum()) == 1
    counts = np.asarray(shared(KEY, found, jnp.ones(24, bool), jnp.asarray(50)))
    assert counts.sum() == 50
    assert set(counts) == {2, 3}


@pytest.mark.parametrize("total", [1, 5, 40, 101])
def test_draws_are_equal_among_clusters_and_within_each(total):
    arms, active = clouds(2), np.arange(24) != 11
    found = grouped(arms, active, 4)
    labels = np.asarray(found.labels)
    table = []
    for key in jax.random.split(KEY, 20):
        counts = np.asarray(shared(key, found, jnp.asarray(active), jnp.asarray(total)))
        assert counts.sum() == total
        assert counts[11] == 0
        parts = [counts[(labels == c) & active] for c in range(4)]
        assert np.ptp([part.sum() for part in parts]) <= 1
        assert max(np.ptp(part) for part in parts) <= 1
        table.append(counts)
    assert np.ptp(table, axis=0).max() == 1  # the remainder goes to random arms


def test_a_cluster_of_one_arm_gets_as_many_draws_as_one_of_many():
    """16 arms near e_1 are one cluster and e_2 is the other; each cluster gets 16 draws."""
    for seed in range(5):
        about = 1 + np.sqrt(0.001) * np.random.default_rng(seed).normal(size=16)
        arms = np.vstack([np.stack([about, 0 * about], axis=1), [0, 1]])
        found = jax.jit(lambda x: clusters.k_means(x, jnp.ones(17, bool), 2, most=2))(arms)
        counts = shared(KEY, found, jnp.ones(17, bool), jnp.asarray(32))
        np.testing.assert_array_equal(counts, [1] * 16 + [16])
