"""Fits and designs at their limits: numbers far apart, and no optimum.

Whether one exists is decided by a linear program. A fit is judged by a Newton decrement that is
computed apart, in 80 bits, by orthogonal vectors of weighted rows.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

import jaxbandits as jb

FAMILIES = ("logistic", "probit", "poisson", "gaussian")
DIM, NUM_ARMS = 3, 6
STEEP = np.array([[1.0, -2.0], [1.0, -1.0], [1.0, 1.0], [1.0, 2.0]])
FLAT = np.array(
    [
        [-1.95011378, 0.45689437, 0.49533245],
        [7.93597474, -1.65691159, -1.57238419],
        [-0.18328964, 0.38463995, -6.93214984],
        [-0.07007065, -1.81986816, -0.46320489],
    ]
)


def has_maximum(arms, counts, sums, family):
    """Whether the likelihood has a maximum: no direction in which it never falls, by an LP."""
    arms, counts, sums = arms[counts > 0], counts[counts > 0], sums[counts > 0]
    arms = arms / np.abs(arms).max(0)
    if np.linalg.matrix_rank(arms) < arms.shape[1]:
        return False
    if family == "gaussian":
        return True
    none, all_of_them = sums <= 0, (sums >= counts) & (family != "poisson")
    falls = np.concatenate([arms[none], -arms[all_of_them]])
    found = optimize.linprog(
        falls.sum(0),
        A_ub=falls,
        b_ub=np.zeros(len(falls)),
        A_eq=arms[~none & ~all_of_them],
        b_eq=np.zeros((~none & ~all_of_them).sum()),
        bounds=[(-1.0, 1.0)] * arms.shape[1],
    )
    return found.fun > -1e-9


def means_and_variances(z, family):
    """And one less the means where they are at most 1, each exact near 0; in 80 bits but probit."""
    if family == "gaussian":
        return z, np.full_like(z, np.nan), np.ones_like(z)
    if family == "poisson":
        return np.exp(z), np.full_like(z, np.nan), np.exp(z)
    if family == "probit":
        low, high = (special.ndtr(np.asarray(x, float)) for x in (z, -z))
        return low, high, np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    with np.errstate(over="ignore"):
        low, high = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))
    return low, high, low * high


def decrement(theta, arms, counts, sums, family, ridge):
    """The distance of theta from the maximum in standard errors, about."""
    wide = lambda x: np.asarray(x, np.longdouble)  # noqa: E731
    theta, arms, counts, sums = map(wide, (theta, arms, counts, sums))
    low, high, variances = means_and_variances(arms @ theta, family)
    residuals = sums - counts * low
    if family in ("logistic", "probit"):
        residuals = np.where(sums == counts, counts * high, residuals)
    weights = counts * variances
    roots = np.sqrt(weights)
    rows = np.concatenate([roots[:, None] * arms, np.sqrt(wide(ridge)) * np.eye(len(theta))])
    rows = rows[np.argsort(-np.abs(rows).max(1))]
    gradient, solved = arms.T @ residuals - wide(ridge) * theta, np.zeros_like(theta)
    factor = np.zeros((len(theta), len(theta)), np.longdouble)
    for i in range(len(theta)):
        for before in 2 * list(range(i)):
            share = rows[:, before] @ rows[:, i]
            factor[before, i] += share
            rows[:, i] -= share * rows[:, before]
        factor[i, i] = np.sqrt(rows[:, i] @ rows[:, i])
        rows[:, i] /= factor[i, i]
        solved[i] = (gradient[i] - factor[:i, i] @ solved[:i]) / factor[i, i]
    return float(np.sqrt(solved @ solved))


def problem(family, rng):
    """Counts up to 10^9, sums up to 10^10 times as many, columns and rows in units far apart."""
    # Beyond predictors of 30 or so, a probit mean is 0 or 1 and its variance is no number.
    longest = 0.0 if family == "probit" else 1.0
    arms = rng.normal(size=(NUM_ARMS, DIM)) * 10.0 ** rng.uniform(-2, longest, (NUM_ARMS, 1))
    ridge = float(rng.choice([0.0, 0.0, 0.0, 1e-6, 1.0, 1e4]))
    reach = 1 if ridge else 6  # a ridge alone can leave predictors of thousands, where means are 1
    arms *= 10.0 ** rng.uniform(-reach, reach, DIM)
    counts = np.round(10.0 ** rng.uniform(0, rng.choice([1, 4, 9]), NUM_ARMS))
    counts[rng.random(NUM_ARMS) < 0.2] = 0
    if family == "poisson":
        sums = np.round(counts * 10.0 ** rng.uniform(-2, rng.choice([1, 4, 10]), NUM_ARMS))
        sums[rng.random(NUM_ARMS) < 0.4] = 0
    elif family == "gaussian":
        sums = counts * rng.normal(size=NUM_ARMS) * 10.0 ** rng.uniform(-8, 8, NUM_ARMS)
    else:
        sums = rng.binomial(counts.astype(int), rng.beta(0.1, 0.1, NUM_ARMS)).astype(float)
    return arms, counts, sums, ridge


def outcome(family, seed):
    """Whether a maximum exists, whether the fit says so, and how far from it it is."""
    *data, ridge = problem(family, np.random.default_rng(seed))
    exists = ridge > 0 or has_maximum(*data, family)
    found = jb.fit_glm(*data, family=family, ridge=ridge)
    assert (int(found.status) == 0) == bool(found.converged)
    far = decrement(found.theta, *data, family, ridge) if found.converged else 0.0
    return bool(exists), bool(found.converged), far


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hard_fit_converges_where_a_maximum_exists(family):
    outcomes = [outcome(family, seed) for seed in range(25)]
    assert [converged for _, converged, _ in outcomes] == [exists for exists, _, _ in outcomes]
    assert {exists for exists, _, _ in outcomes} == {False, True}
    assert max(far for _, _, far in outcomes) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_fit_claims_a_maximum_that_does_not_exist(family):
    outcomes = [outcome(family, seed) for seed in range(25, 425)]
    assert all(exists for exists, converged, _ in outcomes if converged)
    missed = sum(exists and not converged for exists, converged, _ in outcomes)
    assert missed <= 0.05 * len(outcomes)  # 13 of 400 at worst, of "poisson"
    assert max(far for _, _, far in outcomes) < 0.1


def test_an_exact_maximum_with_large_errors_has_converged():
    counts, sums = np.array([12.0, 19, 10, 28]), np.array([174.0, 0, 0, 6])
    found = jb.fit_glm(FLAT, counts, sums, family="poisson")
    assert (bool(found.converged), int(found.status)) == (True, 0)
    np.testing.assert_allclose(found.theta, [-0.8135024, 0.4166538, 1.8116718], atol=1e-7)
    assert decrement(found.theta, FLAT, counts, sums, "poisson", 0.0) < 1e-9


@pytest.mark.parametrize(
    ("family", "predictor"), [("logistic", special.logit), ("probit", special.ndtri)]
)
@pytest.mark.parametrize("number", [1e8, 1e9, 1e10])
def test_one_failure_among_billions_has_a_maximum(family, predictor, number):
    """Its mean is 1 but for rounding, so that sums less means say nothing."""
    found = jb.fit_glm([[1.0, 0.0], [1.0, 1.0]], [number] * 2, [1.0, number - 1.0], family=family)
    assert found.converged
    end = predictor(1.0 / number)
    np.testing.assert_allclose(found.theta, [end, -2.0 * end], rtol=1e-7)


@pytest.mark.parametrize("ridge", [0.0, 1e-6])
def test_sums_may_differ_by_fifteen_orders_of_magnitude(ridge):
    found = jb.fit_glm(STEEP, [10] * 4, [0, 1, 1e9, 1e15], family="poisson", ridge=ridge)
    assert bool(found.converged)
    np.testing.assert_allclose(found.theta, [4.60517, 13.81551], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_counts_and_sums_times_a_constant_have_one_estimate(family):
    """f times a constant has the same minimum, however large f is then."""
    rng = np.random.default_rng(3)
    arms, counts = rng.normal(size=(NUM_ARMS, DIM)), rng.integers(5, 50, NUM_ARMS).astype(float)
    sums = counts * rng.uniform(0.2, 0.8, NUM_ARMS)
    usual = jb.fit_glm(arms, counts, sums, family=family)
    for factor in (1e-300, 1e-12, 1e-6, 1e6, 1e12, 1e300):
        found = jb.fit_glm(arms, factor * counts, factor * sums, family=family)
        assert (bool(found.converged), int(found.status)) == (True, 0)
        np.testing.assert_allclose(found.theta, usual.theta, rtol=1e-9, atol=1e-12)
        # The Hessian is that of one short step before theta, whose length may differ.
        root, near = found.factor / np.sqrt(factor), partial(np.allclose, rtol=1e-6, atol=1e-6)
        assert near(found.hessian / factor, usual.hessian)
        assert near(found.inverse * factor, usual.inverse)
        assert near(root @ root.T, usual.hessian)


def test_a_ridge_times_the_same_constant_has_one_estimate():
    counts, sums = np.array([10.0, 20.0, 0, 0, 5, 7]), np.array([3.0, 12.0, 0, 0, 5, 0])
    arms = np.random.default_rng(3).normal(size=(NUM_ARMS, DIM))
    usual = jb.fit_glm(arms, counts, sums, ridge=0.5)
    for factor in (1e-300, 1e-12, 1e12, 1e300):
        found = jb.fit_glm(arms, factor * counts, factor * sums, ridge=0.5 * factor)
        assert found.converged
        np.testing.assert_allclose(found.theta, usual.theta, rtol=1e-9)


@pytest.mark.parametrize(("factor", "unit"), [(1e300, 1e6), (1e-300, 1e-6)])
def test_a_fit_whose_hessian_is_no_number_has_not_converged(factor, unit):
    arms, counts = unit * np.eye(NUM_ARMS, DIM), np.array([4.0, 5, 6, 0, 0, 0])
    found = jb.fit_glm(arms, factor * counts, factor * counts / 4)
    assert (bool(found.converged), int(found.status)) == (False, 3)


@pytest.mark.parametrize("number", [1e-12, 1e-6, 1.0])
def test_a_sum_beyond_few_counts_is_refused_as_beyond_many(number):
    with pytest.raises(ValueError, match="between 0 and the counts"):
        jb.fit_glm(np.eye(2), [number] * 2, [number / 2, 1.001 * number])


@pytest.mark.parametrize("number", [10.0, 1e6, 1e12, 1e15])
@pytest.mark.parametrize(("family", "share"), [("logistic", 0), ("logistic", 1), ("probit", 1)])
def test_no_fit_of_separable_data_converges_however_many_they_are(family, share, number):
    found = jb.fit_glm(np.eye(2), [number] * 2, [share * number, number / 2], family=family)
    assert not bool(found.converged)
    assert int(found.status) != 0


def fitted(sums):
    return jb.fit_glm(jnp.eye(2), jnp.array([10.0, 10.0]), sums).theta


WAYS = {
    "forwards": jax.jacfwd,
    "backwards": jax.jacrev,
    "twice": lambda function: jax.jacfwd(jax.jacrev(function)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_derivative_of_a_fit_that_does_not_exist_is_nan_in_its_rows_alone(way):
    with jax.enable_x64(True):
        good, separable = jnp.array([4.0, 5.0]), jnp.array([0.0, 5.0])
        slope = jax.jit(jax.vmap(WAYS[way](fitted)))
        found = slope(jnp.stack([good, separable, good]))
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[0]).all()
        assert (found[0] == found[2]).all()
        if way != "twice":
            np.testing.assert_allclose(found[0], np.diag([1 / 2.4, 1 / 2.5]), rtol=1e-9)


@pytest.mark.parametrize("way", [jax.grad, jax.jacfwd], ids=["backwards", "forwards"])
def test_the_derivative_of_a_design_that_was_not_found_is_nan_in_its_rows_alone(way):
    """The second table does not span the targets, so that no design is finite."""
    with jax.enable_x64(True):
        good = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        flat = good.at[:, 1].set(0.0)
        found = jax.jit(jax.vmap(way(lambda arms: jb.design.xy_optimal(arms, good).value)))(
            jnp.stack([good, flat, good])
        )
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0]).all()
    assert (found[0] == found[2]).all()
