"""Public kernels on odd data: few or equal arms, rank deficits, columns of 1e-8 next to 1e8."""

import itertools
from functools import partial

import at_random
import hypothesis
import numpy as np
import pytest
from kernels.designs import differences, is_design, norms
from params import params
from scipy import special

import jaxbandits as jb

# Few shapes, each compiled once for all examples.
SHAPES = ((1, 1), (1, 3), (2, 2), (3, 2), (5, 1), (6, 3))
TOL = 0.01
SPANNED = 1e-9  # the share of a vector's length that may lie outside of a span


def of_unit_columns(arms, *tables):
    """The tables in units in which the arms' columns have length 1, as far as they are not 0."""
    lengths = np.linalg.norm(arms, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return [table / lengths for table in (arms, *tables)]


def table(odd, rows, dim, seed=0):
    """Features in the units of the example."""
    made = at_random.features(odd._replace(seed=odd.seed + seed), (rows, dim))
    return made * 2.0 ** np.array(odd.powers) * 10.0**odd.size


def reach(arms, rows):
    """Which rows lie in the span of the arms, and the rank of the arms."""
    unit, rows = of_unit_columns(arms, rows)
    _, sizes, axes = np.linalg.svd(unit, full_matrices=False)
    axes = axes[sizes > SPANNED * sizes[0]]
    left = np.linalg.norm(rows - rows @ axes.T @ axes, axis=1)
    return left <= SPANNED * np.maximum(np.linalg.norm(rows, axis=1), 1e-300), len(axes)


def worst(arms, weights, rows):
    """The largest norm of a row in the inverse of A(weights)."""
    arms, rows = of_unit_columns(arms, rows)
    return norms(arms, weights, rows).max(initial=0.0)


def odd_tables(shape, examples):
    """Decorate a check `(odd examples)` for tables of a shape; see `SHAPES`."""
    settings = hypothesis.settings(
        max_examples=examples, deadline=None, derandomize=True, database=None
    )
    return lambda check: settings(hypothesis.given(at_random.oddities(shape[1]))(check))


def bracketed(found, arms, rows, largest, odd):
    """The certificate holds: weights, the value at them, and a bound below all other designs."""
    assert is_design(found.weights)
    value, bound = float(found.value), float(found.bound)
    assert np.isfinite(bound)
    np.testing.assert_allclose(value, worst(arms, found.weights, rows), rtol=1e-6, atol=1e-12)
    assert bound <= value * (1 + 1e-9)
    for seed in range(largest):
        other = np.random.default_rng((odd.seed, seed)).dirichlet(np.ones(len(arms)))
        assert bound <= worst(arms, other, rows) * (1 + 1e-7)


BY_NORMS = {  # and whether the design is always found
    "d_optimal": (jb.design.d_optimal, True),
    "fedorov": (jb.design.fedorov, True),
    "wolfe_atwood": (jb.design.wolfe_atwood, True),
    "wynn": (jb.design.wynn, False),
    "g_optimal_fw": (jb.design.g_optimal_fw, False),
    "greedy_allocation": (lambda arms, tol: jb.design.greedy_allocation(arms, 60, tol=tol), False),
}


def within(found):
    """Whether the certificate says that the design is as good as asked for."""
    return bool(found.value <= (1 + TOL) * found.bound)


def check_norms(name, shape, odd):
    solve, certain = BY_NORMS[name]
    arms = table(odd, *shape)
    found = solve(arms, tol=TOL)
    _, rank = reach(arms, arms)
    assert float(found.bound) == pytest.approx(rank, rel=1e-9)
    assert bool(found.converged) == within(found)
    assert not certain or within(found)
    if np.isfinite(found.value):
        bracketed(found, arms, arms, 5, odd)
    else:  # draws that do not span
        assert name == "greedy_allocation"


BY_PAIRS = {"xy_optimal": (jb.design.xy_optimal, True)}
BY_PAIRS["xy_frank_wolfe"] = (jb.design.xy_frank_wolfe, False)


def check_pairs(name, shape, odd):
    solve, certain = BY_PAIRS[name]
    arms, targets = table(odd, *shape), table(odd, 3, shape[1], seed=7)
    pairs = differences(targets)
    pairs = pairs[np.linalg.norm(of_unit_columns(arms, pairs)[1], axis=1) > 0]
    found = solve(arms, targets, tol=TOL)
    assert is_design(found.weights)
    if not reach(arms, pairs)[0].all():
        assert np.isinf(found.value)
        assert not bool(found.converged)
        return
    if len(pairs) == 0:
        assert float(found.value) == float(found.bound) == 0.0
        return
    if certain:  # the other's `converged` is about its last step
        assert bool(found.converged)
        assert within(found)
    bracketed(found, arms, pairs, 5, odd)


MEANS = {"logistic": special.expit, "probit": special.ndtr, "poisson": np.exp}
MEANS["gaussian"] = np.asarray


def check_fit(family, shape, odd):
    arms = table(odd, *shape)
    rng = np.random.default_rng(odd.seed)
    counts = rng.integers(1, 30, shape[0])
    sums = {
        "logistic": counts * rng.uniform(0.05, 0.95, shape[0]),
        "probit": counts * rng.uniform(0.05, 0.95, shape[0]),
        "poisson": counts * rng.exponential(size=shape[0]),
        "gaussian": counts * rng.normal(size=shape[0]),
    }[family]
    found = jb.fit_glm(arms, counts, sums, family=family)
    # The mean rewards lie inside of their range, so that a minimum exists; it is unique where the
    # arms span.
    assert bool(found.converged) == (reach(arms, arms)[1] == shape[1])
    if found.converged:
        (unit,) = of_unit_columns(arms)
        theta = np.asarray(found.theta) * np.linalg.norm(arms, axis=0)
        z = unit @ theta
        mean = MEANS[family](z)
        gradient = unit.T @ (counts * mean - sums)
        assert np.abs(gradient).max() <= 1e-7 * counts.sum() * (1 + np.abs(mean).max())


def check_rounding(name, shape, odd):
    arms = table(odd, *shape)
    rng = np.random.default_rng(odd.seed)
    weights = rng.dirichlet(0.3 * np.ones(shape[0]))
    if name == "regret":
        counts = np.asarray(jb.rounding.regret(arms, weights, odd.budget))
    else:
        counts = np.asarray(getattr(jb.rounding, name)(weights, odd.budget))
        support = int((weights > 0).sum())
        assert np.abs(counts - odd.budget * weights).max() < (support if name == "efficient" else 1)
    assert counts.sum() == odd.budget
    assert (counts >= 0).all()


CHECKS = {
    **{name: partial(check_norms, name) for name in BY_NORMS},
    **{name: partial(check_pairs, name) for name in BY_PAIRS},
    **{f"fit_glm {family}": partial(check_fit, family) for family in MEANS},
    **{
        f"rounding {name}": partial(check_rounding, name)
        for name in ("efficient", "largest_remainder", "regret")
    },
}


def at_odd_tables(name, shape, examples):
    @odd_tables(shape, examples)
    def law(odd):
        CHECKS[name](shape, odd)

    law()


# Arms that cannot span, and arms that can, in turn: each kind of kernel meets both.
ALWAYS = dict(zip(CHECKS, itertools.cycle(((1, 3), (3, 2)))))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param(
            name, shape, id=f"{name}-{shape}", marks=[pytest.mark.slow] * (shape != ALWAYS[name])
        )
        for name, shape in itertools.product(CHECKS, SHAPES)
    ],
)
def test_certificates_hold(name, shape):
    at_odd_tables(name, shape, 3)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CHECKS)
def test_certificates_hold_for_many_tables(name, shape):
    at_odd_tables(name, shape, 120)


@pytest.mark.parametrize("family", params(MEANS, always=["logistic", "gaussian"]))
def test_no_fit_converges_where_arms_do_not_span(family):
    """Rounding makes pivots positive that should be 0."""
    plain = at_random.Oddities(0, 0, True, False, (0, 0), 0, 0, 0.05, 1)
    for seed in range(20):
        check_fit(family, (2, 2), plain._replace(seed=seed))
