import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kernels.allocate import tracking

ORDER = np.random.default_rng(1).permutation(6)


@jax.jit
def followed(weights):
    """Counts after each round of C-tracking."""

    def step(carry, share):
        counts, wanted = carry
        wanted = wanted + share
        arm = tracking.by_sum(counts, wanted, jnp.asarray(ORDER))
        counts = counts + tracking.drawn(6, arm)
        return (counts, wanted), counts

    return jax.lax.scan(step, (jnp.zeros(6, int), jnp.zeros(6)), weights)[1]


@pytest.mark.parametrize("concentration", [0.1, 1.0])
def test_counts_stay_close_to_the_sums(concentration):
    weights = np.random.default_rng(0).dirichlet(np.full(6, concentration), 2000)
    weights[:, 4] = 0.0
    weights /= weights.sum(1, keepdims=True)
    counts, wanted = np.asarray(followed(weights)), weights.cumsum(0)
    np.testing.assert_array_equal(counts.sum(1), np.arange(1, 2001))
    assert (counts[:, 4] == 0).all()
    assert (counts - wanted).max() <= 1.0  # only an arm that is behind is drawn
    assert (wanted - counts).max() <= 5.0  # Garivier and Kaufmann (2016), Lemma 15: K - 1


def test_ties_go_to_the_largest_order():
    counts, even = jnp.zeros(6, int), jnp.full(6, 1 / 6)
    assert int(tracking.by_sum(counts, even, jnp.asarray(ORDER))) == ORDER.argmax()
    ones = jnp.ones(6, int)
    assert int(tracking.by_ratio(ones, even, jnp.asarray(ORDER))) == ORDER.argmax()


def test_by_ratio_takes_the_largest_ratio():
    wanted, counts = np.array([0.5, 0.3, 0.2]), np.array([7, 2, 3])
    found = tracking.by_ratio(jnp.asarray(counts), jnp.asarray(wanted), jnp.arange(3))
    assert int(found) == 1
