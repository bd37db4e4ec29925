import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, same
from jax import lax

RNG = np.random.default_rng(4)
SHARED = RNG.normal(size=(9, 5))
CUBE = RNG.normal(size=(3, 9, 5))


def table(*shape):
    return RNG.normal(size=(*shape, LANES))


def products(a, b, v, w):
    """All products of two tables and two vectors; `b` has the shape of `a.T`."""
    return (
        (a @ v, w @ a, b @ w, v @ b, a @ b, b @ a, v @ v, a.T @ w, jnp.outer(v, w)),
        (jnp.einsum("ij,ij", a, a), jnp.einsum("ij,i,j", a, w, v), jnp.einsum("ij,j->ji", a, v)),
        (jnp.tensordot(a, b.T, 2), jnp.einsum("ij,kj->ik", a, a), (2 * a) @ (v + 1)),
    )


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (4, 8), (5, 13), (9, 4), (17, 2)])
def test_products_of_each_lanes_tables_equal_vmap(rows, columns):
    args = table(rows, columns), table(columns, rows), table(columns), table(rows)
    same(products, *args, atol=1e-12)


def shared_with_own(v, w, m, n):
    s, c = jnp.asarray(SHARED), jnp.asarray(CUBE)
    i = jnp.arange(45.0).reshape(9, 5)
    return (
        (s @ v, w @ s, s @ m, m @ s.T, s.T @ n, jnp.einsum("k,ki,kj->ij", w, s, s)),
        (c @ v, jnp.einsum("bki,k->bi", c, w), jnp.einsum("bki,bi->bk", c, m[:3]), i @ v, i.T @ n),
        (i @ i.T, i @ s.T, jnp.tensordot(c, m, ((2,), (0,))), jnp.einsum("bki,ki->b", c, n)),
        (s[:, :, None] * m[None]).sum(1),
    )


def test_products_with_shared_tables_equal_vmap():
    args = table(5), table(9), table(5, 5), table(9, 5)
    same(shared_with_own, *args, rtol=1e-12, atol=1e-11)


def batches(a, b, v):
    dot = lambda x, y, s, t: lax.dot_general(x, y, (s, t))  # noqa: E731
    return (
        (a @ jnp.swapaxes(b, 1, 2), jnp.einsum("bij,bij->b", a, b)),
        (jnp.einsum("bij,bkj->bik", a, b)),
        (jnp.einsum("bij,bij->bj", a, b)),
        (jnp.einsum("bij,bij->ij", a, b), jnp.einsum("bij,j->bi", a, v)),
        dot(a, b, ((1, 2), (1, 2)), ((0,), (0,))),
        dot(a, b, ((2, 1), (2, 1)), ((), ())),
        dot(a, b, ((0,), (0,)), ((1, 2), (1, 2))),
        dot(a, b, ((), ()), ((1, 0), (1, 0))),
        dot(a, v, ((2,), (0,)), ((), ())),
        jax.vmap(jnp.outer)(a[:, 0], b[:, 1]),
        jax.vmap(lambda x: x @ v)(a),
    )  # fmt: skip


def test_batches_of_products_equal_vmap():
    same(batches, table(3, 6, 5), table(3, 6, 5), table(5), atol=1e-12)


def whole(a, v):
    small = a.astype(jnp.int32)
    return (
        (a @ v, small @ v.astype(jnp.int32), a @ a.T, jnp.arange(5) @ v),
        a.astype(jnp.float32) @ v.astype(jnp.float32),
        (small @ small.T, jnp.arange(5, dtype=jnp.uint32) @ jnp.abs(v).astype(jnp.uint32)),
    )


def wider(a, v):
    short, single = a.astype(jnp.int32), v.astype(jnp.float32)
    return (
        lax.dot(short, short.T, preferred_element_type=jnp.int64),
        lax.dot(a.astype(jnp.float32), single, preferred_element_type=jnp.float64),
    )


def test_products_in_a_wider_dtype_equal_vmap():
    same(wider, *(RNG.integers(-9, 9, x) for x in ((6, 5, LANES), (5, LANES))))


def test_products_of_integers_and_of_float32_equal_vmap():
    same(whole, *(RNG.integers(-9, 9, x) for x in ((6, 5, LANES), (5, LANES))))


def test_products_of_booleans_and_numbers_equal_vmap():
    args = RNG.integers(-9, 9, (6, 5, LANES)), RNG.integers(-9, 9, (5, LANES))
    same(lambda a, v: ((a > 0) @ v, a @ (v > 0), a.astype(float) @ (v > 0)), *args)


def test_products_of_booleans_equal_vmap():
    same(lambda p, q: (p @ q, p @ p.T), *(RNG.random(x) < 0.4 for x in ((6, 5, LANES), (5, LANES))))


def test_products_with_nan_and_infinities_equal_vmap():
    v = table(5)
    v[0, 0], v[1, 1], v[2, 2] = np.nan, np.inf, -np.inf
    same(lambda v, m: (m @ v, v @ v, jnp.asarray(SHARED) @ v), v, table(3, 5), atol=1e-12)
