"""Functions marked `once_for_equal`: lanes with equal flags share one computation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.compilers.jaxprs import largest_table
from jaxbandits.compilers.lanewise import lanewise, shared_call
from jaxbandits.compilers.lanewise.shared_call import BLOCK, groups
from jaxbandits.kernels.shared_call import once_for_equal

ARMS = np.random.default_rng(0).normal(size=(12, 3))


@once_for_equal
def total(flags, shift):
    """A vector, a count from a loop whose length differs by lane, and a flag."""

    def halve(state):
        return state[0] // 2, state[1] + 1

    steps = jax.lax.while_loop(lambda state: state[0] > 0, halve, (flags.sum() * 5, 0))[1]
    return flags.astype(float) @ jnp.asarray(ARMS) + shift, steps, flags.any()


def masks(kind, number):
    rng = np.random.default_rng(1)
    if kind == "equal":
        return np.tile(rng.random((12, 1)) < 0.5, number)
    few = rng.random((12, 5)) < 0.5
    return few[:, rng.integers(0, 5, number)] if kind == "few" else rng.random((12, number)) < 0.5


SIDE_BY_SIDE, ALONE = shared_call.ALONE_BYTES, 0  # how groups compute


@pytest.mark.parametrize(
    ("number", "most"), [*((n, SIDE_BY_SIDE) for n in (1, 8, 24, 64)), (24, ALONE)]
)
@pytest.mark.parametrize("kind", ["equal", "few", "many"])
def test_equals_the_function_of_each_lane(kind, number, most, monkeypatch):
    monkeypatch.setattr(shared_call, "ALONE_BYTES", most)
    with jax.enable_x64(True):
        flags = jnp.array(masks(kind, number))
        mapped = jax.jit(lambda f, unit: lanewise(lambda x: total(x, 2.0), number, unit)(f))
        for found, expected in zip(
            mapped(flags, 1.0), jax.vmap(lambda x: total(x, 2.0), -1, -1)(flags), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("most", [SIDE_BY_SIDE, ALONE])
def test_lanes_with_other_different_arguments_compute_for_themselves(most, monkeypatch):
    monkeypatch.setattr(shared_call, "ALONE_BYTES", most)
    with jax.enable_x64(True):
        flags, shifts = jnp.array(masks("few", 8)), jnp.arange(8.0)
        mapped = jax.jit(lambda f, s, unit: lanewise(total, 8, unit)(f, s))
        expected = jax.vmap(total, (-1, 0), -1)(flags, shifts)
        for found, one in zip(mapped(flags, shifts, 1.0), expected, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-12)


def test_a_large_table_is_there_for_one_lane_at_a_time():
    """A call computes those of all its lanes, which nothing interrupts."""

    @once_for_equal
    def widest(flags):
        return (jnp.outer(flags, flags).astype(float) * 2.0).max()

    def tables(arms):
        flags = jax.ShapeDtypeStruct((arms, 8), bool)
        whole = jax.make_jaxpr(lanewise(widest, 8, jnp.ones(())))(flags)
        return largest_table(whole.jaxpr) / (8 * arms**2)

    with jax.enable_x64(True):
        assert tables(200) < 2
        assert tables(20) >= 8


@pytest.mark.parametrize("kind", ["equal", "few", "many"])
def test_groups_are_the_distinct_columns(kind):
    flags = masks(kind, 4 * BLOCK)
    group, first = map(np.asarray, groups(jnp.array(flags)))
    distinct = len(np.unique(flags, axis=1).T)
    assert set(group) == set(range(distinct))
    np.testing.assert_array_equal(flags[:, first[group]], flags)


def test_colliding_hashes_cost_time_only(monkeypatch):
    class Constant:
        def integers(self, low, high, size, dtype):
            return np.full(size, 2**31 - 1, dtype)  # all factors alike: the hash is the count

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Constant())
    flags = np.random.PCG64(3).random_raw((4, 40)) % 2 == 1
    group, first = map(np.asarray, groups(jnp.array(flags)))
    np.testing.assert_array_equal(flags[:, first[group]], flags)
