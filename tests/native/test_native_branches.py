import jax.numpy as jnp
import numpy as np
from against import LANES, same
from jax import lax

RNG = np.random.default_rng(10)
VALUES = RNG.normal(size=(6, LANES))
TABLE = RNG.normal(size=(3, 3, LANES))
WHICH = RNG.integers(-2, 6, LANES)


def branches(v, m, i):
    shared = jnp.asarray(2)
    three = [lambda: v[:3] * 2, lambda: m[1], lambda: v[0] * m[0]]
    cases = [lambda x, k: (x, k), lambda x, k: (x.at[0].set(1.0), -k), lambda x, k: (x * 0, 7)]
    return (
        lax.cond(v[0] > 0, lambda: v.sum(), lambda: -v.max()),
        lax.cond(v[0] > 0, lambda x: (x, 1), lambda x: (-x, 2), v),
        lax.cond(shared > 1, lambda: v, lambda: -v),
        lax.cond(jnp.arange(3)[1] > 0, lambda: v, lambda: -v),
        [lax.switch(k, three) for k in (0, 2, 7, -1, shared, shared + 9, i, i.astype(jnp.int32))],
        [lax.switch(k, cases, v, i) for k in (i, jnp.arange(4)[3], 1)],
        lax.switch(i, [lambda: 1, lambda: 2]),
        lax.cond(
            i > 0, lambda: (1.0, jnp.arange(3), True), lambda: (2.0, jnp.arange(3) * 2, False)
        ),
        lax.cond(i > 0, lambda: lax.cond(i > 2, lambda: v[0], lambda: v[1]), lambda: v[2]),
        lax.cond(i > 99, lambda: v, lambda: v + 1),
    )


def test_branches_equal_vmap():
    same(branches, VALUES, TABLE, WHICH)


def test_an_update_within_a_branch_leaves_its_argument_unchanged():
    def function(v, i):
        w = v * 2.0
        x = lax.cond(i > 1, lambda y: y.at[i % 6].set(0.0), lambda y: y, w)
        return x, w, v

    same(function, VALUES, WHICH)
