"""Whole programs: constants, results, unsupported operations, and kernels."""

import re
from functools import partial

import against
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, leaves, same
from jax import lax
from jax.random import fold_in, key_data
from loops import collatz

from jaxbandits.compilers.cpp import ONE_LANE, Unsupported, renewed
from jaxbandits.compilers.cpp.compiling import FOLDER
from jaxbandits.compilers.cpp.writer import Writer
from jaxbandits.kernels.estimate import irls
from jaxbandits.kernels.linalg import spd

RNG = np.random.default_rng(12)
VALUES = RNG.normal(size=(6, LANES))
TABLE = RNG.normal(size=(6, 3))

SLOW = pytest.mark.slow


def closed_over(v, i):
    table, whole, flags = jnp.asarray(TABLE), np.arange(6), jnp.arange(6) % 2 == 0
    single = TABLE.astype(np.float32)
    return (
        (v @ table, table.sum(0) * v[0], v * whole),
        (jnp.where(flags, v, 2.5), jnp.where(whole > 2, v, 1)),
        (single[:, 0] * v, jnp.asarray(single) @ jnp.ones(3, jnp.float32)),
        (v * 2 + True, v * np.float64(3)),
        (table, whole, flags, 7, 2.5, True, jnp.zeros(()), jnp.asarray(TABLE)[i % 6]),
    )  # fmt: skip


def test_closed_over_constants_equal_vmap():
    same(closed_over, VALUES, RNG.integers(0, 9, LANES))


def test_results_may_be_any_tree():
    half = jax.jit(lambda x: (x, x * 0.5))

    def function(v, i, p):
        return (
            v,
            v,
            (v, i),
            {"flag": p, "half": half(half(v)[1])},
            None,
            jnp.ones(3),
            v[0],
            [v, 1.0],
        )

    same(function, VALUES, np.arange(LANES), VALUES[0] > 0)


def test_no_variable_has_the_name_of_a_type():
    types = set(re.findall(r"typedef \w+ (\w+);", (FOLDER / "vectors.h").read_text()))
    writer = Writer()
    names = {writer.name(start) for start in ("i", "v") * 100}
    assert {"i32", "i64"} <= types
    assert not types & names


def test_a_lane_may_read_arrays_of_the_program_around():
    @jax.jit
    def around(shared, flag, v):
        from jaxbandits.compilers.cpp import natively

        shifted = shared * 2.0
        return natively(lambda v: jnp.where(flag, v + shifted, v * shifted.sum()), LANES)(v)

    for flag in (True, False):
        shared = 2.0 * VALUES[:, :1]
        expected = VALUES + shared if flag else VALUES * shared.sum()
        found = around(VALUES[:, 0], flag, VALUES)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda v: jax.lax.top_k(v, 2), "top_k"),
        (lambda v: jnp.linalg.cholesky(v[:, None] * v), "cholesky"),
        (lambda v: v.astype(jnp.float16), "float16"),
        (lambda v: v.astype(jnp.int8), "int8"),
        (lambda v: jax.lax.population_count(v.astype(int)), "population_count"),
        (lambda v: jax.vmap(collatz)(v.astype(int)), "`while` loop under `vmap`"),
        (lambda v: key_data(jax.vmap(partial(fold_in, KEY))(v.astype(int))), "several numbers"),
    ],
)
def test_unsupported_operations_are_named(function, name):
    with pytest.raises(Unsupported, match=name):
        by_native(function, VALUES)


def test_tables_beyond_the_memory_are_refused(target):
    limit = "16 MiB of tables" if target is ONE_LANE else "1 GiB of tables"
    with pytest.raises(Unsupported, match=limit):
        by_native(lambda v: jnp.outer(jnp.outer(v, v), jnp.ones(10**6)).cumsum(0), VALUES)


def positive(dim):
    root = RNG.normal(size=(dim, dim, LANES))
    return np.einsum("ijl,kjl->ikl", root, root) + np.eye(dim)[:, :, None]


@pytest.mark.parametrize("dim", [5, pytest.param(2, marks=SLOW), pytest.param(10, marks=SLOW)])
def test_matrix_kernels_equal_vmap(dim):
    def function(s, v):
        factor = spd.cholesky(s)
        whole = spd.inverse(s)
        back = spd.back_substitute(factor, v)
        return whole, factor, spd.forward_substitute(factor, v[:, None]), back

    same(function, positive(dim), RNG.normal(size=(dim, LANES)), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "family", ["logistic", pytest.param("poisson", marks=SLOW), pytest.param("probit", marks=SLOW)]
)
def test_maximum_likelihood_equals_vmap(family):
    arms = jnp.asarray(RNG.uniform(-1, 1, (9, 3)))
    counts = RNG.integers(5, 40, (9, LANES)).astype(float)
    sums = counts * RNG.uniform(0.2, 0.8, (9, LANES))

    def function(counts, sums):
        found = irls.fit(arms, counts, sums, family=family, ridge=0.1, init=jnp.zeros(3))
        return found.theta, found.hessian, found.converged

    same(function, counts, sums, rtol=1e-8, atol=1e-9)


def test_nan_in_one_lane_does_not_change_the_others():
    s = positive(4)
    spoilt = s.copy()
    spoilt[..., 2] = np.nan
    others = np.delete(np.arange(LANES), 2)
    one, two = (by_native(lambda s: (spd.inverse(s), s.sum()), x) for x in (s, spoilt))
    for first, second in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(first[..., others], second[..., others])
    assert np.isnan(two[1][2])


@pytest.mark.parametrize("on", [[], [3], [0, 5, 15], range(LANES)], ids=len)
def test_lanes_are_renewed_where_a_flag_is_on(on):
    """Loops of the others would never end, were they not left out; nor is their NaN looked at."""
    flags = np.isin(np.arange(LANES), on)
    words = RNG.integers(0, 2**32, (LANES, 2)).astype(np.uint32)
    old = {
        "x": RNG.normal(size=(20, LANES)),
        "i": RNG.integers(0, 9, LANES).astype(np.int32),
        "flag": RNG.random((2, LANES)) < 0.5,
        "single": RNG.normal(size=(3, LANES)).astype(np.float32),
        "key": jax.random.wrap_key_data(jnp.asarray(words)),
        "none": np.zeros((0, LANES)),
    }

    def new(n, start):
        key = jax.random.fold_in(jax.random.key(7), n)
        halvings = lax.while_loop(lambda x: ~(x <= 1.0), lambda x: x / 2.0, start)
        return {
            "x": jax.random.normal(key, (20,)) * halvings,
            "i": n.astype(np.int32),
            "flag": jnp.array([True, False]),
            "single": jnp.full(3, halvings, np.float32),
            "key": key,
            "none": jnp.zeros(0),
        }

    numbers = np.arange(LANES)
    starts = np.where(flags, 5.0 + numbers, np.nan)  # of NaN the loop never ends
    found = jax.jit(renewed(new, LANES, against.TARGET))(flags, old, numbers, starts)
    expected = jax.vmap(new, out_axes=-1)(numbers, np.where(flags, starts, 1.0))
    for name in old:
        one, two = leaves(found[name])[0], leaves(expected[name])[0]
        before = leaves(old[name])[0]
        if name == "key":  # lanes come first, words last
            np.testing.assert_array_equal(one, np.where(flags[:, None], two, before))
        else:
            np.testing.assert_allclose(one, np.where(flags, two, before), 1e-13)
            assert one.dtype == before.dtype


def test_what_does_not_depend_on_arguments_is_left_to_the_surrounding_program():
    table = jnp.asarray(TABLE)

    def new(x):
        gram = jnp.where(jnp.arange(3) < 2, table, 1.0).T @ table
        return x + jnp.linalg.slogdet(gram)[1]  # which has no rule

    old = np.zeros(LANES)
    found = jax.jit(renewed(new, LANES))(np.ones(LANES, bool), old, VALUES[0])
    np.testing.assert_allclose(found, new(VALUES[0]), 1e-12)
