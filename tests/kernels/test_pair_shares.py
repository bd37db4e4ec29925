"""Shares for each pair, by all bases and by linear programs: closed forms and certificates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import jaxbandits as jb
from jaxbandits.kernels.allocate import pair_shares

RNG = np.random.default_rng(0)
TABLES = {
    "soare": jb.instances.soare(5, angle=0.1).arms,
    "nearly collinear": jb.instances.soare(4, angle=1e-4).arms,
    "more arms": RNG.normal(size=(9, 3)),
    "as many as dimensions": RNG.normal(size=(4, 4)),
    "far apart in size": RNG.normal(size=(7, 3)) * 10.0 ** np.arange(-3, 4)[:, None],
}
both = pytest.mark.parametrize(
    "solve", [pair_shares.by_linear_programs, jax.jit(pair_shares.enumerated)]
)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def certified(arms, i, j, shares):
    """`||w||_1` for these shares over its minimum, which a separate linear program finds."""
    wanted = arms[i] - arms[j]
    dual = scipy.optimize.linprog(
        -wanted,
        A_ub=np.vstack([arms, -arms]),
        b_ub=np.ones(2 * len(arms)),
        bounds=(None, None),
        method="highs-ipm",
    )
    matrix = (arms.T * shares) @ arms
    variance = wanted @ np.linalg.lstsq(matrix, wanted)[0]  # ||w||_1^2 for the best shares
    return np.sqrt(variance) / -dual.fun


@both
@pytest.mark.parametrize("name", TABLES)
def test_the_shares_are_optimal_for_each_pair(name, solve):
    arms = TABLES[name]
    num_arms, dim = arms.shape
    found = np.asarray(solve(jnp.asarray(arms)))
    np.testing.assert_array_equal(found, found.transpose(1, 0, 2))
    assert (found[np.arange(num_arms), np.arange(num_arms)] == 0).all()
    for i in range(num_arms):
        for j in range(i):
            shares = found[i, j]
            assert (shares >= 0).all()
            np.testing.assert_allclose(shares.sum(), 1.0, atol=1e-6)
            assert (shares > 0).sum() <= dim
            np.testing.assert_allclose(certified(arms, i, j, shares), 1.0, atol=2e-6)


@both
def test_shares_have_their_closed_forms(solve):
    """`w*` is `(1 - cos, -sin)` between e_1 and the disturbing arm; `e_i - e_j` in a basis."""
    angle = 0.3
    found = solve(jnp.asarray(jb.instances.soare(3, angle=angle).arms))
    weights = np.array([1 - np.cos(angle), np.sin(angle), 0.0, 0.0])
    np.testing.assert_allclose(found[0, 3], weights / weights.sum(), atol=1e-7)
    basis = np.asarray(solve(jnp.eye(4)))
    expected = 0.5 * (np.eye(4)[:, None] + np.eye(4)) * (1 - np.eye(4))[..., None]
    np.testing.assert_allclose(basis, expected, atol=1e-12)


def test_both_methods_agree_where_the_optimum_is_unique():
    arms = RNG.normal(size=(12, 3))
    one, other = (
        pair_shares.by_linear_programs(arms),
        jax.jit(pair_shares.enumerated)(jnp.asarray(arms)),
    )
    np.testing.assert_allclose(one, other, atol=1e-7)
    assert pair_shares.num_bases(arms) == 220 > pair_shares.BLOCK


def test_arms_that_do_not_span_have_the_shares_of_their_subspace():
    flat = np.hstack([RNG.normal(size=(6, 2)), np.zeros((6, 1))])
    found = pair_shares.by_linear_programs(flat)
    np.testing.assert_allclose(found, pair_shares.by_linear_programs(flat[:, :2]), atol=1e-7)
    own = np.asarray(jax.jit(pair_shares.enumerated)(jnp.asarray(flat)))
    assert (own[0, 1] == [0.5, 0.5, 0, 0, 0, 0]).all()  # feasible, not best
    few = np.asarray(jax.jit(pair_shares.enumerated)(jnp.asarray(RNG.normal(size=(2, 3)))))
    assert (few[0, 1] == 0.5).all()


def test_two_equal_arms_need_no_draw():
    arms = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = pair_shares.by_linear_programs(arms)
    assert (found[0, 1] == 0).all()
    np.testing.assert_allclose(found[0, 2], found[1, 2], atol=1e-7)


def test_a_solution_without_certificate_is_refused(monkeypatch):
    right = scipy.optimize.linprog

    def sloppy(*args, **options):
        found = right(*args, **options)
        found.eqlin.marginals = found.eqlin.marginals * 1.01
        return found

    monkeypatch.setattr(scipy.optimize, "linprog", sloppy)
    with pytest.raises(RuntimeError, match="certificate"):
        pair_shares.by_linear_programs(TABLES["soare"])


def test_optima_have_the_shares_of_the_table_and_the_least_norm():
    for name in ("more arms", "as many as dimensions", "nearly collinear"):
        arms = TABLES[name]
        pairs = [(i, j) for j in range(len(arms)) for i in range(j)]
        shares = pair_shares.by_linear_programs(arms)
        for (i, j), weights in zip(pairs, pair_shares.optima(arms, pairs), strict=True):
            norm = weights.sum()
            np.testing.assert_allclose(weights / norm, shares[i, j], atol=1e-7)
            wanted = arms[i] - arms[j]
            variance = wanted @ np.linalg.lstsq((arms.T * shares[i, j]) @ arms, wanted)[0]
            np.testing.assert_allclose(norm, np.sqrt(variance), rtol=1e-6)
    angle = 0.3
    found = next(pair_shares.optima(jb.instances.soare(3, angle=angle).arms, [(0, 3)]))
    np.testing.assert_allclose(found, [1 - np.cos(angle), np.sin(angle), 0, 0], atol=1e-12)
    basis = list(pair_shares.optima(np.eye(3), [(0, 1), (1, 2)]))
    np.testing.assert_array_equal(basis, [[1, 1, 0], [0, 1, 1]])
