import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from likelihoods import D, K, data, fit, padded, solve
from scipy import optimize, special, stats

from jaxbandits.kernels.estimate import irls, newton
from jaxbandits.kernels.estimate.links import FAMILIES, LINKS

determined, and_of = jax.jit(irls.determined), jax.jit(irls.Missed.and_of)


@functools.partial(jax.jit, static_argnames="family")
def derivatives(arms, counts, sums, ridge, theta, *, family):
    def value(theta):
        z = arms @ theta
        partition = LINKS[family].partition(z)
        return jnp.dot(counts, partition) - jnp.dot(sums, z) + 0.5 * ridge * theta @ theta

    return value(theta), jax.grad(value)(theta), jax.hessian(value)(theta)


def objective(arms, counts, sums, family, ridge, theta):
    """Value, gradient and Hessian at theta, in NumPy."""
    tables = (padded(x) for x in (arms, counts, sums))
    found = derivatives(*tables, float(ridge), np.asarray(theta, float), family=family)
    return [np.asarray(x) for x in found]


def reference(arms, counts, sums, family):
    """The same estimate by statsmodels, or by a root finder where it has no such model."""
    if family == "gaussian":
        return sm.WLS(sums / counts, arms, weights=counts).fit().params
    if family == "logistic":
        both = np.stack([sums, counts - sums], axis=1)
        return sm.GLM(both, arms, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100).params
    if family == "poisson":
        model = sm.GLM(sums, arms, family=sm.families.Poisson(), offset=np.log(counts))
        return model.fit(tol=1e-14, maxiter=100).params

    def score(theta):
        return arms.T @ (counts * stats.norm.cdf(arms @ theta) - sums)

    return optimize.root(score, np.zeros(arms.shape[1]), tol=1e-13).x


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fit_equals_the_reference(family):
    for seed in range(3):
        arms, counts, sums = data(family, seed)
        found = fit(arms, counts, sums, family)
        np.testing.assert_allclose(
            found.theta, reference(arms, counts, sums, family), rtol=1e-8, atol=1e-8
        )
        assert bool(found.converged)
        assert int(found.status) == irls.CONVERGED
        assert float(found.decrement) <= 1e-18


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_fit_has_gradient_zero_and_its_exact_hessian(family, ridge):
    arms, counts, sums = data(family)
    sums = sums + 0.3 * np.sqrt(counts) * np.random.default_rng(1).normal(size=K)  # perturbed
    found = fit(arms, counts, sums, family, ridge=ridge)
    at = functools.partial(objective, arms, counts, sums, family, ridge)
    value, gradient, hessian = at(found.theta)
    assert np.abs(gradient).max() < 1e-8
    np.testing.assert_allclose(found.hessian, hessian, rtol=1e-9)
    nearby = np.asarray(found.theta) + 0.01 * np.random.default_rng(2).normal(size=(50, D))
    assert all(at(theta)[0] > value for theta in nearby)


@pytest.mark.parametrize(
    ("family", "inverse"),
    [
        ("logistic", special.logit),
        ("poisson", np.log),
        ("probit", stats.norm.ppf),
        ("gaussian", lambda mean: mean),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "close"),
    [pytest.param(jnp.float32, 2e-3, marks=pytest.mark.slow), (jnp.float64, 1e-9)],
)
def test_basis_arms_have_closed_forms(family, inverse, dtype, close):
    counts, sums = np.array([4.0, 10.0, 1000.0]), np.array([1.0, 7.0, 2.0])
    tol = 1e-18 if dtype == jnp.float64 else 1e-6
    found = fit(np.eye(3), counts, sums, family, dtype=dtype, tol=tol)
    assert found.theta.dtype == dtype
    np.testing.assert_allclose(found.theta, inverse(sums / counts), rtol=close, atol=close)


@pytest.mark.parametrize("family", FAMILIES)
def test_single_precision_is_near_double(family):
    arms, counts, sums = data(family)
    single = fit(arms, counts, sums, family, tol=1e-4, dtype=jnp.float32)
    double = fit(arms, counts, sums, family)
    assert bool(single.converged)
    # The decrement is the distance to the minimum in units of f.
    offset = np.asarray(single.theta, float) - np.asarray(double.theta)
    assert 0.5 * offset @ np.asarray(double.hessian) @ offset < 2e-4


def test_the_identity_link_takes_one_step():
    arms, counts, sums = data("gaussian")
    start = np.array([3.0, -2.0, 5.0])
    once = fit(arms, counts, sums, "gaussian", init=start, cap=1)
    expected = np.linalg.solve(np.einsum("k,ki,kj->ij", counts, arms, arms), arms.T @ sums)
    np.testing.assert_allclose(once.theta, expected, rtol=1e-9)
    assert int(fit(arms, counts, sums, "gaussian", init=start).iterations) == 1


CORNER = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1, 1, 0]]
SEPARABLE = {  # a plane separates the outcomes; for Poisson, some arms have no events
    "logistic": (CORNER, [3, 3, 2, 2], [3, 0, 1, 1]),
    "probit": (CORNER, [3, 3, 2, 2], [3, 0, 1, 1]),
    "poisson": (CORNER, [3, 3, 2, 2], [3, 0, 1, 0]),
}


@pytest.mark.parametrize("family", SEPARABLE)
def test_separable_data_need_a_ridge(family):
    arms, counts, sums = map(np.array, SEPARABLE[family])
    bare = fit(arms, counts, sums, family)
    exists = determined(padded(arms), padded(counts), bare.hessian)
    assert not (bool(bare.converged) and bool(exists))
    assert np.isfinite(bare.theta).all()

    ridged = fit(arms, counts, sums, family, ridge=1e-3)
    assert bool(ridged.converged)
    assert np.abs(objective(arms, counts, sums, family, 1e-3, ridged.theta)[1]).max() < 1e-7
    limit = np.linalg.norm(objective(arms, counts, sums, family, 0.0, np.zeros(D))[1]) / 1e-3
    assert np.linalg.norm(ridged.theta) <= limit


@pytest.mark.parametrize(
    ("family", "outcome"),
    [("logistic", 0.0), ("logistic", 1.0), ("probit", 0.0), ("probit", 1.0), ("poisson", 0.0)],
)
def test_equal_outcomes_need_a_ridge(family, outcome):
    counts = np.full(4, 5.0)
    sums = outcome * counts
    arms = np.array([[1.0, 0.2, 0], [0.5, 1, 1], [0.3, 0.3, 0], [1, -0.2, 0]])  # in a half-space
    bare, ridged = fit(arms, counts, sums, family), fit(arms, counts, sums, family, ridge=1e-3)
    exists = determined(padded(arms), padded(counts), bare.hessian)
    assert not (bool(bare.converged) and bool(exists))
    assert bool(ridged.converged)
    assert np.isfinite(ridged.theta).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_determined_detects_a_vanishing_curvature(family):
    arms, counts, sums = data(family)
    assert bool(determined(arms, counts.astype(float), fit(arms, counts, sums, family).hessian))
    if family in SEPARABLE:
        arms, counts, sums = (padded(x) for x in SEPARABLE[family])
        # At this tolerance the decrement alone would call the fit converged.
        loose = fit(arms, counts, sums, family, tol=1e-6)
        assert bool(loose.converged)
        assert not bool(determined(arms, counts, loose.hessian))


def test_undrawn_arms_do_not_matter():
    arms, counts, sums = data("logistic")
    far = arms.copy()
    far[10:], counts[10:], sums[10:] = 1e3, 0, 0
    found, fewer = (fit(x, counts, sums, "logistic") for x in (far, arms))
    np.testing.assert_allclose(found.theta, fewer.theta, rtol=1e-9)


@pytest.mark.parametrize(
    ("family", "starts"),
    [
        ("logistic", ([6.0, -6.0, 6.0], [-15.0, 0.0, 10.0])),
        ("poisson", ([6.0, -6.0, 6.0], [-15.0, 0.0, 10.0])),
        ("probit", ([6.0, -6.0, 6.0], [-15.0, 0.0, 10.0])),  # no curvature at the second
    ],
)
def test_the_fit_recovers_from_bad_warm_starts(family, starts):
    # Newton's method without step halving diverges from these starts.
    arms, counts, sums = data(family)
    expected = fit(arms, counts, sums, family, ridge=1e-3).theta
    for start in starts:
        found = fit(arms, counts, sums, family, ridge=1e-3, init=start, cap=100)
        assert bool(found.converged)
        np.testing.assert_allclose(found.theta, expected, rtol=1e-7, atol=1e-8)


def test_a_tolerance_below_rounding_is_reported():
    arms, counts, sums = data("probit")
    found = fit(arms, counts, sums, "probit", ridge=1e-3, tol=0.0, cap=20)
    assert int(found.status) in (irls.CAPPED, irls.STALLED)
    assert not bool(found.converged)
    expected = fit(arms, counts, sums, "probit", ridge=1e-3).theta
    np.testing.assert_allclose(found.theta, expected, atol=1e-8)


@pytest.mark.parametrize(("dim", "draws", "a", "most"), [(10, 300, 4.5, 60), (20, 5000, 9, 30)])
@pytest.mark.parametrize("seed", range(3))
def test_a_minimum_far_from_zero_is_found(dim, draws, a, most, seed):
    """Perturbed sums are larger than the counts allow: f decreases until the ridge dominates."""
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-1, 1, (100, dim))
    counts = rng.multinomial(draws, np.ones(100) / 100)
    theta = rng.normal(size=dim) * np.sqrt(3 / dim)
    sums = rng.binomial(counts, special.expit(arms @ theta)).astype(float)
    sums += a * np.sqrt(counts) * rng.normal(size=100)
    found = solve(arms, counts.astype(float), sums, theta, 1e-3, 1e-6, most, family="logistic")
    assert bool(found.converged)
    assert np.linalg.norm(found.theta) > 1000
    theta = np.asarray(found.theta)
    slope = arms.T @ (counts * special.expit(arms @ theta) - sums) + 1e-3 * theta
    assert 0.5 * slope @ np.linalg.solve(found.hessian, slope) < 1e-6


def test_nearly_collinear_arms_converge_to_the_reference():
    rng = np.random.default_rng(5)
    arms = rng.normal(size=(K, 1)) @ np.array([[1.0, 2.0, -1.0]]) + 1e-3 * rng.normal(size=(K, D))
    counts = np.full(K, 200.0)
    sums = rng.binomial(200, special.expit(arms @ [0.3, 0.1, 0.2])).astype(float)
    found = fit(arms, counts, sums, "logistic")
    assert np.linalg.cond(found.hessian) > 1e5
    assert bool(found.converged)
    np.testing.assert_allclose(
        arms @ found.theta, arms @ reference(arms, counts, sums, "logistic"), rtol=1e-6
    )


def test_failures_have_their_status_codes():
    arms, counts, sums = data("logistic")
    capped = fit(arms, counts, sums, "logistic", cap=1)
    assert (int(capped.status), bool(capped.converged)) == (irls.CAPPED, False)
    broken = fit(arms, counts, sums, "logistic", init=np.full(D, np.nan))
    assert (int(broken.status), bool(broken.converged)) == (irls.NONFINITE, False)
    # A negative Poisson sum with no ridge: f has no lower bound.
    unbounded = fit(np.eye(3), [3, 3, 3], [3, -1, 3], "poisson")
    assert not bool(unbounded.converged)


def test_vmap_equals_a_python_loop():
    cases = [data("logistic", seed) for seed in range(8)]
    arms, counts, sums = (np.stack(x).astype(float) for x in zip(*cases, strict=True))
    sums[3] = counts[3]  # one lane with a far minimum must not change the others
    options = {"ridge": 1e-4, "tol": 1e-12}

    def lane(arms, counts, sums):
        return irls.fit(arms, counts, sums, family="logistic", init=jnp.zeros(D), **options)

    together = jax.tree.map(np.asarray, jax.jit(jax.vmap(lane))(arms, counts, sums))
    for row, tables in enumerate(zip(arms, counts, sums, strict=True)):
        single = fit(*tables, "logistic", **options)
        assert int(together.iterations[row]) == int(single.iterations)
        assert int(together.status[row]) == int(single.status)
        np.testing.assert_allclose(together.theta[row], single.theta, rtol=1e-9, atol=1e-9)


def test_without_data_equals_a_fit_to_counts_of_zero():
    arms, nothing = np.random.default_rng(0).normal(size=(6, D)), np.zeros(6)
    found = jax.jit(lambda: irls.without_data(D, 0.2, jnp.float64))()
    fitted = fit(arms, nothing, nothing, "probit", ridge=0.2, tol=1e-6)
    for one, two in zip(found, fitted, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-9)


def test_missed_fits_are_counted_by_status():
    missed = irls.Missed(*(np.int64(0) for _ in range(3)), np.float64(0.0))
    for status, decrement in (
        (irls.CAPPED, 0.5),
        (irls.STALLED, 0.25),
        (irls.STALLED, 2.0),
        (irls.NONFINITE, np.nan),
        (irls.NONFINITE, np.inf),
        (irls.NONFINITE, 7.0),
        (irls.CONVERGED, 9.0),
    ):
        missed = and_of(missed, status, decrement, unless=False)
    missed = and_of(missed, irls.CAPPED, 50.0, unless=True)
    assert [int(n) for n in missed[:3]] == [1, 2, 3]
    assert float(missed.worst) == 7.0


def test_newton_steps_of_an_estimate_are_counted_to_their_cap():
    """Steps with the old inverse, here of an unrelated matrix, are not counted."""
    tables = [x.astype(float) for x in data("logistic")]
    estimate = jax.jit(functools.partial(irls.estimate, family="logistic"))
    options = {"ridge": 0.0, "init": np.full(D, 4.0), "inverse": np.eye(D), "tol": 1e-12}

    def steps(cap):
        found = estimate(*tables, **options, max_iterations=cap)
        return int(found.iterations), bool(found.converged)

    whole, converged = steps(30)
    assert converged
    assert whole > 1
    assert steps(whole) == (whole, True)
    assert steps(whole - 1) == (whole - 1, False)
    assert steps(1) == (1, False)


@jax.jit
def searched(arms, counts, sums, ridge):
    """The step size that the line search finds; slopes of f along it at the start and the end."""
    problem = newton.problem_of(arms, counts, sums, "logistic", ridge)
    now = newton.evaluated(problem, jnp.full(D, 0.3), jnp.array(0), 0.0)
    size = newton.line_search(problem, now)
    along = jax.grad(lambda size: problem.objective(now.theta - size * now.move)[0])
    return size, along(0.0), along(size)


@pytest.mark.parametrize("ridge", [10.0, 0.1, 1e-4])
def test_a_step_ends_where_the_objective_is_flat_along_it(ridge):
    arms, counts, sums = (x.astype(float) for x in data("logistic"))
    # Sums larger than the counts allow put the minimum far away.
    size, begin, end = map(float, searched(arms, counts, 30.0 * sums, ridge))
    assert size > 0
    assert begin < 0
    assert abs(end) <= newton.FLAT * abs(begin)


def test_a_line_search_on_nan_ends_with_size_zero():
    arms, counts, sums = (x.astype(float) for x in data("logistic"))
    assert searched(arms, counts, sums + np.nan, 0.1)[0] == 0.0
