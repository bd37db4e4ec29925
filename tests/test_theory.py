"""Lower bounds are certified, and agree with closed forms, a solver and published constants."""

import itertools
import math
import tomllib
from functools import partial

import cvxpy
import jax
import numpy as np
import pytest
import scipy.optimize
from programs import QUICK

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.report import table
from jaxbandits.sweeps import parse, run

# Constants of Soare's and of the transductive instance, by a semidefinite program with a
# certificate below 3e-6.
SOARE = {
    (0.1, 3): 110.34,
    (0.1, 5): 110.86,
    (0.1, 10): 112.17,
    (0.1, 15): 113.49,
    (0.01, 3): 10100.33,
    (0.01, 5): 10100.84,
    (0.01, 10): 10102.09,
    (0.01, 15): 10103.35,
}
TRANSDUCTIVE = {6: 442.82, 12: 446.59, 20: 451.62}


def certified(instance):
    found = theory.characteristic_time(instance)
    assert found.lower <= found.value <= (1 + 1.01e-6) * found.lower
    return found.value


@pytest.mark.parametrize(
    "dim", [3, *(pytest.param(d, marks=pytest.mark.slow) for d in (5, 10, 15))]
)
@pytest.mark.parametrize("angle", [0.1, 0.01])
def test_soare_s_instance(angle, dim):
    found = certified(jb.instances.soare(dim, angle=angle, scale=2.0))
    assert found == pytest.approx(SOARE[angle, dim], rel=1e-4)
    wide = ((1 - math.cos(angle) + math.sin(angle)) / (2 * (1 - math.cos(angle)))) ** 2
    assert wide < found < 1.05 * wide


@pytest.mark.parametrize("dim", [6, *(pytest.param(d, marks=pytest.mark.slow) for d in (12, 20))])
def test_transductive(dim):
    assert certified(jb.instances.transductive(dim)) == pytest.approx(TRANSDUCTIVE[dim], rel=1e-4)


@pytest.mark.parametrize("gap", [0.01, 1.0, 30.0])
def test_independent_arms_have_a_closed_form(gap):
    expected = (1 + math.sqrt(3)) ** 2 / gap**2
    assert certified(jb.instances.canonical(4, gap=gap)) == pytest.approx(expected, rel=2e-6)


def test_agrees_with_another_solver():
    rng = np.random.default_rng(0)
    arms, targets, theta = rng.normal(size=(7, 3)), rng.normal(size=(5, 3)), rng.normal(size=3)
    values = targets @ theta
    best = values.argmax()
    others = [m for m in range(5) if m != best]
    weights = cvxpy.Variable(7, nonneg=True)
    matrix = sum(weights[k] * np.outer(arms[k], arms[k]) for k in range(7))
    ask = [
        cvxpy.matrix_frac((targets[best] - targets[m]) / (values[best] - values[m]), matrix)
        for m in others
    ]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.max(cvxpy.hstack(ask))), [cvxpy.sum(weights) == 1])
    problem.solve()
    found = certified(jb.instances.linear(arms, theta, targets=targets))
    assert found == pytest.approx(problem.value, rel=1e-4)


def test_pulls_scale_with_variance_and_confidence():
    one, noisy = (jb.instances.canonical(4, gap=0.5, noise_var=v) for v in (1.0, 3.0))
    bound = theory.pull_lower_bound(one, 0.05)
    assert bound == pytest.approx(2 * 2.1203 * (1 + math.sqrt(3)) ** 2 * 4, rel=1e-4)
    assert theory.pull_lower_bound(noisy, 0.05) == pytest.approx(3 * bound)
    assert theory.pull_lower_bound(one, 0.6) == 0.0


def test_instances_without_a_lower_bound_are_refused():
    logistic = jb.instances.glm(np.eye(2), [0.5, 0.0], family="logistic")
    bent = jb.instances.tabular([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 0.5, 0.2])
    for instance, message in ((logistic, "rewards must be normal"), (bent, "must be linear")):
        with pytest.raises(ValueError, match=f"instance: .*{message}"):
            theory.characteristic_time(instance)
    with pytest.raises(ValueError, match="delta must be above 0 and below 1, got 0"):
        theory.pull_lower_bound(jb.instances.canonical(4, gap=0.5), 0)
    with pytest.raises(ValueError, match=r"delta must be above 0 and below 1, got '0\.1'"):
        theory.pull_lower_bound(jb.instances.canonical(4, gap=0.5), "0.1")
    with pytest.raises(ValueError, match="instance: it must be an Instance, got 'soare'"):
        theory.characteristic_time("soare")
    tied = jb.instances.linear(np.eye(4), [1.0, 1.0, 0.0, 0.0])
    assert theory.characteristic_time(tied) == (math.inf, math.inf)
    assert theory.pull_lower_bound(tied, 0.6) == 0.0


def by_hand(rhos, *, delta, num_targets, least, epsilon=0.1, c=2.0):
    """RAGE's bound from the rho of each phase."""
    total = 0
    for t, rho in enumerate(rhos, 1):
        draws = 2 * 4**t * rho * (1 + epsilon) * math.log(c * num_targets**2 * t**2 / delta)
        total += max(math.ceil(draws), math.ceil(least))
    return total


@pytest.mark.parametrize("noise_var", [1.0, 0.3])
@pytest.mark.parametrize(("rounding", "least"), [("efficient", 2 * 4 / 0.1), ("regret", 10_800)])
def test_the_bound_of_rage_on_soare_s_instance(rounding, least, noise_var):
    """rho is 2 d in the first phase, then that of one direction, by Elfving's theorem.

    With less noise the gap is more of its deviations, and the last phase comes sooner.
    """
    angle, gap = 0.1, 2 * (1 - math.cos(0.1))
    instance = jb.instances.soare(3, angle=angle, scale=2.0, noise_var=noise_var)
    one = (1 - math.cos(angle) + math.sin(angle)) ** 2
    phases = math.floor(math.log2(4 * math.sqrt(noise_var) / gap))
    rhos = [6.0] + [one] * (phases - 1)
    for delta, c in ((0.05, 2.0), (0.01, 1.0)):
        exact = by_hand(rhos, delta=delta, num_targets=4, least=least, c=c)
        found = theory.rage_pull_bound(instance, delta, rounding=rounding, log_factor=c)
        assert exact <= found.value <= 1.0025 * exact + phases
        assert found.value <= found.closed_form


@pytest.mark.parametrize(
    ("instance", "share"),
    [
        (jb.instances.soare(3, angle=0.1, scale=2.0), 0.99),
        pytest.param(jb.instances.transductive(6), 0.9, marks=pytest.mark.slow),
    ],
    ids=["soare", "transductive"],
)
def test_correct_runs_of_rage_do_not_exceed_its_bound(instance, share):
    runs = jb.simulate(instance, partial(jb.rage, delta=0.05), replications=200, seed=0)
    bound = theory.rage_pull_bound(instance, 0.05)
    longest = runs.pulls[runs.correct].max()
    assert longest <= bound.value
    assert longest >= share * bound.value  # some play every phase: a smaller bound would be wrong
    assert bound.value >= theory.pull_lower_bound(instance, 0.05)


def test_the_bound_of_rage_has_a_closed_form():
    for gap in (0.05, 1.0, 1.9, 5.0, 40.0):
        instance = jb.instances.canonical(4, gap=gap)
        found = theory.rage_pull_bound(instance, 0.05)
        psi, phases = (1 + math.sqrt(3)) ** 2 / gap**2, max(1, math.log2(4 / gap))
        parts = phases - 1 + max(1, gap**2 / 4)
        closed = 128 * 1.1 * psi * parts * math.log(2 * 16 * phases**2 / 0.05) + 81 * phases
        assert found.closed_form == pytest.approx(closed, rel=2.1e-3)
        assert found.value <= found.closed_form


@pytest.mark.slow
def test_the_bound_of_rage_where_targets_are_equal():
    theta = np.array([1.0, 0.5, 0.0, 0.0])
    twice = jb.instances.linear(np.eye(4), theta, targets=np.eye(4)[[0, 1, 0, 1]])
    once = jb.instances.linear(np.eye(4), theta, targets=np.eye(4)[[0, 1, 2, 3]])
    found = theory.rage_pull_bound(twice, 0.05)
    assert 0 < found.value < theory.rage_pull_bound(once, 0.05).value
    same = jb.instances.linear(np.eye(4), theta, targets=np.eye(4)[[0, 0, 0, 0]])
    assert theory.rage_pull_bound(same, 0.05) == (0.0, 0.0)
    tied = jb.instances.linear(np.eye(4), [1.0, 1.0, 0.0, 0.0])
    assert theory.rage_pull_bound(tied, 0.05) == (math.inf, math.inf)


def test_bad_arguments_of_the_bound_of_rage_are_refused():
    instance = jb.instances.canonical(4, gap=0.5)
    bent = jb.instances.tabular([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 0.5, 0.2])
    with pytest.raises(ValueError, match="instance: its means must be linear"):
        theory.rage_pull_bound(bent, 0.05)
    with pytest.raises(ValueError, match="delta must be above 0 and below 1, got 1"):
        theory.rage_pull_bound(instance, 1)
    with pytest.raises(ValueError, match="rounding must be one of 'efficient', 'regret', got 'up'"):
        theory.rage_pull_bound(instance, 0.05, rounding="up")
    with pytest.raises(ValueError, match="rounding_epsilon must be a finite number above 0, got 0"):
        theory.rage_pull_bound(instance, 0.05, rounding_epsilon=0)
    with pytest.raises(ValueError, match=r"rounding_epsilon must be at most 0\.333 for regret"):
        theory.rage_pull_bound(instance, 0.05, rounding="regret", rounding_epsilon=0.5)


GRID = """
replications = 20
[instances.basis]
name = "canonical"
dim = 4
[instances.ball]
name = "sphere"
num_arms = 4
dim = 4
mix = 1.0
[algorithms.LinGapE]
name = "lingape"
[algorithms.SH]
name = "sequential_halving"
budget = 40
[axes]
gap = [1.0, 2.0]
delta = [0.1, 0.05]
"""


@pytest.mark.slow
def test_sweeps_report_the_lower_bound_beside_mean_pulls():
    dataset = run(parse(tomllib.loads(GRID)), bounds=True, engine=QUICK)
    assert "pull_lower_bound" not in run(parse(tomllib.loads(GRID)), engine=QUICK)
    bounds = dataset.pull_lower_bound
    assert np.isnan(bounds.sel(algorithm="SH")).all()
    assert np.isnan(bounds.sel(instance="ball")).all()  # each replication draws its own instance
    known = bounds.sel(instance="basis", algorithm="LinGapE")
    for gap in (1.0, 2.0):
        for delta in (0.1, 0.05):
            expected = theory.pull_lower_bound(jb.instances.canonical(4, gap=gap), delta)
            assert float(known.sel(gap=gap, delta=delta)) == pytest.approx(expected)
    means = dataset.pulls_mean.sel(instance="basis", algorithm="LinGapE")
    assert (means > known).all()
    header, lines = table.rows(dataset)
    column = header.index("/ lower bound")
    assert {line[column] for line in lines if line[1] == "SH"} == {"-"}
    ratio = float(means.sel(gap=1.0, delta=0.1) / known.sel(gap=1.0, delta=0.1))
    assert lines[0][:4] == ["basis", "LinGapE", "1", "0.1"]
    assert lines[0][column] == f"{ratio:.3g}"


def test_no_flag_is_changed():
    before = jax.config.jax_enable_x64
    theory.characteristic_time(jb.instances.canonical(4, gap=0.5))
    assert jax.config.jax_enable_x64 == before


def test_the_oracle_design_attains_the_characteristic_time():
    instance = jb.instances.transductive(6)
    found = jb.design.oracle(instance, tol=1e-5)
    time = theory.characteristic_time(instance)
    assert found.converged
    np.testing.assert_allclose([found.value, found.bound], time.value, rtol=2e-5)
    inverse = np.linalg.inv((instance.arms.T * found.weights) @ instance.arms)
    best = instance.values.argmax()
    differences = (instance.targets[best] - instance.targets)[np.arange(6) != best]
    gaps = (instance.values[best] - instance.values)[np.arange(6) != best]
    reached = (np.einsum("mi,ij,mj->m", differences, inverse, differences) / gaps**2).max()
    np.testing.assert_allclose(found.value, reached, rtol=1e-9)


def test_no_design_separates_two_best_targets():
    instance = jb.instances.linear(np.eye(4), [1.0, 1.0, 0.0, 0.0])
    found = jb.design.oracle(instance)
    assert found.value == np.inf
    assert not found.converged


def test_budgets_of_bounds_may_exceed_machine_integers():
    """With a tiny gap the rates of two bounds can be compared only at very large budgets."""
    instance = jb.instances.canonical(4, gap=1e-9)
    for bound in (jb.theory.gse_error_bound, jb.theory.od_linbai_error_bound):
        assert bound(instance, 2**62).value > 1e-3
        assert bound(instance, 2**80).value < 1e-30
        with pytest.raises(ValueError, match="budget must be a whole number, 1 or above, that"):
            bound(instance, 2**2000)
    with pytest.raises(ValueError, match="budget must be at most"):
        jb.theory.gse_error_bound(instance, 2**80, form="normal")


def in_unit(unit, noise_var=1.0):
    arms = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    theta = np.array([unit, 0.3 * unit])
    return jb.instances.linear(arms, theta, noise_var=noise_var)


@pytest.mark.parametrize("power", [-1000, -700, -511, -300, 300, 511, 700, 1000])
def test_bounds_do_not_depend_on_the_unit_of_rewards(power):
    """Squares of gaps are out of range. A unit that is a power of two alters no bit."""
    known, unit = in_unit(1.0), 2.0**power
    plain, far = (jb.design.oracle(in_unit(u), tol=1e-4) for u in (1.0, unit))
    assert far.converged
    np.testing.assert_array_equal(far.weights, plain.weights)
    assert float(far.value) == float(plain.value) / unit / unit
    found, expected = (theory.characteristic_time(x) for x in (in_unit(unit), known))
    assert found == (expected.value / unit / unit, expected.lower / unit / unit)
    pulls, expected = (theory.pull_lower_bound(x, 0.05) for x in (in_unit(unit), known))
    assert pulls == expected / unit / unit
    assert type(pulls) is float
    if abs(power) < 415:  # of larger units the square is no variance
        same = in_unit(unit, noise_var=unit**2)
        assert theory.pull_lower_bound(same, 0.05) == expected


@pytest.mark.parametrize("unit", [1e-200, 1e200, 1e-150, 1e150, 1e-300])
def test_the_bound_of_rage_is_in_range_or_infinite(unit):
    """Of large gaps the first phase decides, of tiny ones the last, of which there are many."""
    found = theory.rage_pull_bound(in_unit(unit), 0.05)
    assert found.value <= found.closed_form
    if unit > 1:
        assert found == pytest.approx(theory.rage_pull_bound(in_unit(1e9), 0.05), rel=1e-3)
    elif unit < 1e-154:
        assert found == (math.inf, math.inf)
    else:
        assert unit**-2 < found.value < math.inf


def test_the_bound_of_rage_keeps_its_scale_in_tiny_units():
    """Half the gaps take four times the pulls, and one phase more than 122."""
    small = [in_unit(2.0**-k, noise_var=2.0**-800) for k in (520, 521)]
    first, second = (theory.rage_pull_bound(x, 0.05) for x in small)
    assert 4.0 < second.value / first.value < 4.01
    assert 4.0 < second.closed_form / first.closed_form < 4.1


@pytest.mark.parametrize("unit", [2.0**-400, 1 / 1024, 8.0, 2.0**400])
def test_the_bound_of_rage_does_not_depend_on_the_unit_of_rewards(unit):
    expected = theory.rage_pull_bound(in_unit(1.0), 0.05)
    assert theory.rage_pull_bound(in_unit(unit, noise_var=unit**2), 0.05) == expected


@pytest.mark.parametrize("option", ["rounding", "rounding_epsilon", "log_factor", "tol"])
def test_none_is_no_option_of_the_bound_of_rage(option):
    with pytest.raises(ValueError, match=f"{option} must be .*, got None"):
        theory.rage_pull_bound(jb.instances.soare(2, angle=0.5), 0.05, **{option: None})


def test_delta_may_be_a_number_of_jax_but_not_none():
    instance = jb.instances.soare(2, angle=0.5)
    for bound in (theory.pull_lower_bound, theory.rage_pull_bound):
        assert bound(instance, jax.numpy.array(0.125)) == bound(instance, 0.125)
        with pytest.raises(ValueError, match="delta must be above 0 and below 1, got None"):
            bound(instance, None)


def least_norm(arms, direction):
    """`min ||w||_1 subject to X^T w = y`, as a plain linear program."""
    found = scipy.optimize.linprog(
        np.ones(2 * len(arms)), A_eq=np.hstack([arms.T, -arms.T]), b_eq=direction
    )
    return found.fun


def test_the_bounds_of_lemma_1_are_those_of_plain_programs_and_hold_rho():
    rng = np.random.default_rng(4)
    arms, targets = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    pairs = [x - y for x, y in itertools.combinations(targets, 2)]
    found = theory.design_value_bounds(arms, targets)
    assert found.value == pytest.approx(3 * max(least_norm(arms, y) for y in pairs) ** 2)
    expected = max(y @ y for y in pairs) / max(x @ x for x in arms)
    assert found.lower == pytest.approx(expected)
    design = jb.design.xy_optimal(arms, targets, tol=1e-3)
    assert found.lower <= design.bound <= design.value <= found.value
    # Units of a column change the lengths, but not the gauge.
    units = np.array([2.0**20, 1.0, 1e-6])
    scaled = theory.design_value_bounds(arms * units, targets * units)
    assert scaled.value == pytest.approx(found.value)


def test_for_one_direction_the_gauge_is_the_value():
    rng = np.random.default_rng(5)
    arms, targets = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    found = theory.design_value_bounds(arms, targets)
    design = jb.design.xy_optimal(arms, targets, tol=1e-5)
    assert design.bound <= found.value * (1 + 1e-7)
    assert found.value <= design.value * (1 + 1e-7)
    assert theory.design_value_bounds(arms, targets[[0, 1, 1, 0]]) == found
    assert theory.design_value_bounds(arms, targets[[0, 0]]) == (0.0, 0.0)


def test_bounds_of_rho_need_the_span_of_the_arms():
    plane, rng = np.eye(3)[:2], np.random.default_rng(6)
    assert theory.design_value_bounds(plane, np.eye(3)).value == math.inf
    inside = rng.normal(size=(3, 2)) @ plane
    flat = theory.design_value_bounds(plane[:, :2], inside[:, :2])
    assert theory.design_value_bounds(plane, inside).value == pytest.approx(flat.value)
    with pytest.raises(ValueError, match="targets"):
        theory.design_value_bounds(plane, np.eye(2))


def test_lemma_1_as_printed_is_false():
    """`max ||y||^2 / max ||x||` of the arms 4 e_i is above rho, which does not depend on 4."""
    arms = 4.0 * np.eye(3)
    rho = float(jb.design.xy_optimal(arms, arms).value)
    assert rho == pytest.approx(6.0, rel=0.02)
    assert theory.design_value_bounds(arms, arms).lower < rho < 32.0 / 4.0
