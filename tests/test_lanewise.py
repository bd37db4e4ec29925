"""`lanewise` against `jax.vmap`, primitive by primitive and on whole kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from loops import collatz

from jaxbandits.compilers.lanewise import lanewise
from jaxbandits.kernels import selection
from jaxbandits.kernels.design import d_optimal
from jaxbandits.kernels.estimate import irls, least_squares
from jaxbandits.kernels.linalg import spd

NUMBER = 5
RNG = np.random.default_rng(0)
ARMS = RNG.normal(size=(9, 4))
VALUES = RNG.normal(size=(9, NUMBER))
MANY = RNG.integers(-9, 9, (50, NUMBER)).astype(float)  # with ties
MATRICES = RNG.normal(size=(4, 4, NUMBER))
SPD = np.einsum("ijl,kjl->ikl", MATRICES, MATRICES) + np.eye(4)[:, :, None]
WHICH = RNG.integers(0, 4, NUMBER)
MASKS = RNG.random((9, NUMBER)) < 0.7
COUNTS = RNG.integers(1, 9, (9, NUMBER)).astype(float)
ORDERS = np.stack([RNG.permutation(50) for _ in range(NUMBER)], 1)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def keys():
    return jax.random.split(jax.random.key(3), NUMBER)


def rare_loop(some, v, i):
    """A long branch that only some lanes take."""
    steps = lambda v: (lax.fori_loop(0, i, lambda _, x: x * 1.5 - 1.0, v), i)  # noqa: E731
    return lax.cond(some, steps, lambda v: (v, -1), v)


def mixed_loop(v):
    """A carry that starts equal in all lanes and then differs, and one that stays equal."""

    def step(carry, x):
        total, steps = carry
        return (total + x * v[0], steps + 1), total

    return lax.scan(step, (jnp.zeros(()), 0), jnp.arange(5.0))


def branches(v, i):
    chosen = lax.cond(v[0] > 0, lambda: v.sum(), lambda: -v.max())
    shared = lax.cond(jnp.asarray(ARMS[0, 0] > 0), lambda: v, lambda: -v)
    return chosen, shared, lax.switch(i, [lambda: v[0], lambda: 2 * v[1], lambda: v[2] * v[3]])


def hidden_loops(v):
    """Loops whose length is the same in all lanes, with steps that differ by lane."""

    def halve(n, x):
        step = lambda carry: (carry[0] - 1, carry[1] * 0.5 + v[:4])  # noqa: E731
        return lax.while_loop(lambda carry: carry[0] > 0, step, (n, x))

    return jax.vmap(halve)(jnp.arange(3), jnp.ones((3, 4)))


def shared_loops(v):
    """Loops in which nothing differs by lane, next to a value that does."""
    return (*jax.vmap(collatz)(jnp.arange(4)), v[0])


ARMS_OF = jnp.asarray
CASES = {
    "arithmetic": (lambda v, m: (v[:4] * m + 1, jnp.where(v > 0, v, 2.0), v.astype(int)), "VM"),
    "broadcasting": (lambda v: (v[:, None] - v[None], jnp.ones(3) * v[0], v[None].T), "V"),
    "look-ups": (
        lambda v, i, m: (
            v[i],
            m[i],
            m[:, i],
            selection.at(m, i),
            jnp.asarray(ARMS)[i],
            ARMS_OF(ARMS)[:, i],
        ),
        "VIM",
    ),
    "far look-ups": (
        lambda x, i: (x[10 * i], x[-i], x[jnp.array([3, 1])], x[i + jnp.arange(3)]),
        "XI",
    ),
    "scatters": (
        lambda v, i: (v.at[i].add(2.0), v.at[2].set(0.0), v.at[i + jnp.arange(2)].set(7)),
        "VI",
    ),
    "look-ups and scatters at shared places": (
        lambda m, v: (
            m[:, jnp.array([2, 0, 2])],
            m[jnp.array([1, 3])],
            m.at[:, jnp.array([1, 3])].add(2.0),
            m.at[1].set(v[:4]),
            m.at[:, 2].mul(v[0]),
            jnp.asarray(ARMS[:4]).at[:, 1].set(v[:4]),
        ),
        "MV",
    ),
    "scatters at a place of each lane": (
        lambda m, v, i: (
            m.at[i].set(v[:4]),
            m.at[:, i].add(v[:4]),
            v.at[i].add(1.0),
            v.at[i + 8].set(1.0),
            v.at[i + 8].set(1.0, mode="clip"),
            v.at[i].max(0.5),
            jnp.zeros(9).at[i].min(v[0]),
        ),
        "MVI",
    ),
    "rows of a large table": (
        lambda x, i, v: (
            jnp.outer(x, v[:3]).at[i + 20].set(v[4:7]),
            jnp.outer(v[:3], x).at[:, 11 * i].set(v[4:7]),
            jnp.outer(x, v[:3]).at[i + 48].set(v[4:7], mode="drop"),
            jnp.outer(x, v[:3]).at[20 * i].set(v[4:7], mode="clip"),
            jnp.outer(x, v[:3]).at[-i].set(v[4:7]),
        ),
        "XIV",
    ),
    "products": (
        lambda v, m: (ARMS @ v[:4], v[:4] @ m, m @ v[:4], m @ m, m.T @ ARMS.T, ARMS @ m, v @ v),
        "VM",
    ),
    "einsum": (lambda v: jnp.einsum("k,ki,kj->ij", v, ARMS, ARMS), "V"),
    "reductions": (
        lambda x: (
            x.sum(),
            x.max(),
            x.min(),
            (x > 3).any(),
            (x < 99).all(),
            x.argmax(),
            x.argmin(),
        ),
        "X",
    ),
    "reductions of tables": (lambda m: (m.sum(0), m.sum(1), m.sum(), m.prod(1), m.argmax(1)), "M"),
    "reductions of few": (lambda v: (v.sum(), v.argmax(), selection.best(v), v.any()), "V"),
    "integer reductions": (lambda x: (x.astype(int).sum(), x.astype(int).max()), "X"),
    "sorting": (lambda x: (jnp.sort(x), jnp.argsort(x, stable=True), jnp.cumsum(x), x[::-1]), "X"),
    "shapes": (lambda x: (x.reshape(5, 10).T, jnp.concatenate([x, x[:2]]), jnp.pad(x, 2)), "X"),
    "random numbers": (
        lambda k: (
            jax.random.normal(jax.random.fold_in(k, 3), (32,)),
            jax.random.permutation(k, 7),
        ),
        "K",
    ),
    "a loop of each its own length": (collatz, "I"),
    "loops mapped over": (
        lambda i, v: (jax.vmap(collatz)(i + jnp.arange(6)), hidden_loops(v), shared_loops(v)),
        "IV",
    ),
    "a scan": (mixed_loop, "V"),
    "branches": (branches, "VI"),
    "best": (
        lambda x, o: (selection.best(x), selection.argmax(x, o), selection.top(x, o, 7)),
        "XO",
    ),
    "inverse": (lambda s: (spd.inverse(s), spd.cholesky(s)), "S"),
    "least squares": (
        lambda c, v: least_squares.batch(jnp.asarray(ARMS), c.astype(int), v, 0.5),
        "CV",
    ),
    "maximum likelihood": (
        lambda c, v: irls.fit(
            jnp.asarray(ARMS), c, 0.5 * c + 0.1 * v, family="logistic", ridge=0.1, init=jnp.zeros(4)
        ),
        "CV",
    ),
    "design": (lambda a: d_optimal.d_optimal(jnp.asarray(ARMS), a), "A"),
}
LETTERS = "VMIXSACO"
TABLES = dict(
    zip(LETTERS, (VALUES, MATRICES, WHICH, MANY, SPD, MASKS, COUNTS, ORDERS), strict=True)
)


def both(name, **options):
    """The results of a case by `lanewise` and by `jax.vmap`."""
    function, letters = CASES[name]
    args = [keys() if letter == "K" else TABLES[letter] for letter in letters]
    one = jax.jit(lambda unit, *args: lanewise(function, NUMBER, unit, **options)(*args))
    return one(1.0, *args), jax.jit(jax.vmap(function, -1, -1))(*args)


def check_equal(one, two):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for first, second in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert (first.shape, first.dtype) == (second.shape, second.dtype)
        assert first.shape[-1] == NUMBER
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_it_equals_vmap_with_the_lanes_last(name):
    check_equal(*both(name))


@pytest.mark.parametrize("name", ["look-ups", "far look-ups"])
def test_look_ups_by_gathers_equal_vmap_too(name):
    check_equal(*both(name, gathers=True))


def test_gathers_read_no_whole_table():
    def look_up(m, i):
        return m[i]

    arguments = MATRICES, WHICH
    texts = [
        str(jax.make_jaxpr(lanewise(look_up, NUMBER, jnp.ones(()), gathers=gathers))(*arguments))
        for gathers in (False, True)
    ]
    assert [" gather[" in text for text in texts] == [False, True]


def test_lanes_do_not_influence_each_other():
    """NaN in one lane stays there, through loops and reductions."""
    spoilt = SPD.copy()
    spoilt[..., 2] = np.nan

    def both_kinds(s):
        return spd.inverse(s), s.sum(), s.argmax()

    one = jax.jit(lambda unit, s: lanewise(both_kinds, NUMBER, unit)(s))
    clean, dirty = one(1.0, SPD), one(1.0, spoilt)
    others = np.array([0, 1, 3, 4])
    for first, second in zip(jax.tree.leaves(clean), jax.tree.leaves(dirty), strict=True):
        np.testing.assert_array_equal(first[..., others], second[..., others])
    assert np.isnan(dirty[1][2])


def test_a_result_that_is_equal_in_all_lanes_is_repeated():
    found = lanewise(lambda v: (v, jnp.arange(3)), NUMBER, 1.0)(jnp.asarray(VALUES))[1]
    np.testing.assert_array_equal(found, np.tile(np.arange(3)[:, None], NUMBER))


@pytest.mark.parametrize("taken", [0, 1, 9, 40])
def test_a_long_branch_changes_only_the_lanes_that_take_it(taken):
    """These lanes are computed in blocks; the others keep their values."""
    rng = np.random.default_rng(taken)
    values, lengths = rng.normal(size=(9, 40)), rng.integers(0, 4, 40)
    some = np.isin(np.arange(40), rng.permutation(40)[:taken])
    one = jax.jit(lambda unit, *args: lanewise(rare_loop, 40, unit)(*args))
    found = jax.device_get(one(1.0, some, values, lengths))
    expected = jax.jit(jax.vmap(rare_loop, -1, -1))(some, values, lengths)
    for first, second in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)
    assert (found[1][some] >= 0).all()
    assert (found[1][~some] == -1).all()


def long_steps(values, steps):
    """A loop of `steps` steps, each of them a loop whose length differs too."""

    def step(carry):
        values, done = carry
        length = done % 3
        halved = lax.while_loop(
            lambda c: c[1] < length, lambda c: (0.5 * c[0] + c[0][0], c[1] + 1), (values, 0)
        )[0]
        return jnp.sin(halved) + 1.0, done + 1

    return lax.while_loop(lambda carry: carry[1] < steps, step, (values, 0))


@pytest.mark.parametrize("lanes", [8, 40, 64, 96])
def test_a_loop_of_long_steps_equals_vmap(lanes):
    rng = np.random.default_rng(lanes)
    values = jnp.asarray(rng.normal(size=(3, lanes)))
    steps = jnp.asarray(rng.integers(0, 12, lanes))
    one = jax.jit(lambda unit, *args: lanewise(long_steps, lanes, unit)(*args))
    found, taken = one(1.0, values, steps)
    expected, _ = jax.vmap(long_steps, -1, -1)(values, steps)
    np.testing.assert_array_equal(taken, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_products_of_tables_that_differ_by_lane_are_sums():
    """A separate product of matrices for each lane would run one lane at a time."""
    for product in (lambda m, v: m @ v[:4], lambda m, v: m @ m, lambda m, v: v @ v):
        program = jax.make_jaxpr(lanewise(product, NUMBER, jnp.ones(())))(MATRICES, VALUES)
        assert "dot_general" not in str(program)
