"""Features in other units: scales of columns from 1e-8 to 1e8 change no design, fit or answer."""

from functools import partial

import numpy as np
import pytest
from params import params

import jaxbandits as jb

SHAPE = (8, 3)
FORTY = range(40)


def problem(seed):
    """Arms, theta, and the units of the columns: `arms * units` with `theta / units`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=SHAPE), rng.normal(size=SHAPE[1]), 10.0 ** rng.uniform(-8, 8, SHAPE[1])


def fitted(arms, theta):
    counts = np.arange(10, 10 + len(arms))
    means = 1 / (1 + np.exp(-arms @ theta))
    return jb.fit_glm(arms, counts, counts * means)


FUNCTIONS = {
    "d_optimal": lambda arms, theta: jb.design.d_optimal(arms).value,
    "g_optimal_fw": lambda arms, theta: jb.design.g_optimal_fw(arms).value,
    "wynn": lambda arms, theta: jb.design.wynn(arms).value,
    "fedorov": lambda arms, theta: jb.design.fedorov(arms).value,
    "wolfe_atwood": lambda arms, theta: jb.design.wolfe_atwood(arms).value,
    "greedy": lambda arms, theta: jb.design.greedy_allocation(arms, 50).value,
    # Another table with the same targets: a table that is both is scaled only once.
    "xy_optimal": lambda arms, theta: jb.design.xy_optimal(arms, arms[::-1], tol=1e-4).value,
    "xy_frank_wolfe": lambda arms, theta: jb.design.xy_frank_wolfe(arms, arms).value,
    "oracle": lambda arms, theta: jb.design.oracle(jb.instances.linear(arms, theta)).value,
    "regret rounding": lambda arms, theta: jb.rounding.regret(arms, np.full(len(arms), 0.125), 50),
    "fit_glm": lambda arms, theta: arms @ fitted(arms, theta).theta,
    "characteristic_time": lambda arms, theta: jb.theory.characteristic_time(
        jb.instances.linear(arms, theta)
    ),
    "rage_pull_bound": lambda arms, theta: jb.theory.rage_pull_bound(
        jb.instances.linear(arms, theta), 0.05
    ),
    "ratios": lambda arms, theta: jb.design.ratios(arms),
}


# Their relatives are always tested: other designs, or bounds by the same designs.
RELATED = (
    "g_optimal_fw",
    "fedorov",
    "wolfe_atwood",
    "wynn",
    "xy_frank_wolfe",
    "characteristic_time",
    "rage_pull_bound",
)


@pytest.mark.parametrize("name", params(FUNCTIONS, slow=RELATED))
def test_units_change_no_value(name):
    seeds = FORTY if name not in ("ratios", "rage_pull_bound") else FORTY[:4]
    for seed in seeds:
        arms, theta, units = problem(seed)
        plain, scaled = FUNCTIONS[name](arms, theta), FUNCTIONS[name](arms * units, theta / units)
        np.testing.assert_allclose(scaled, plain, rtol=1e-3)


@pytest.mark.parametrize("name", ["d_optimal", "xy_optimal", "wynn", "fit_glm"])
def test_units_that_are_powers_of_two_change_no_bit(name):
    for seed in FORTY[:5]:
        arms, theta, _ = problem(seed)
        units = 2.0 ** np.array([27, -13, -26])
        plain, scaled = FUNCTIONS[name](arms, theta), FUNCTIONS[name](arms * units, theta / units)
        np.testing.assert_array_equal(scaled, plain)


def test_a_fit_is_returned_in_the_units_of_the_arms():
    arms, theta, units = problem(0)
    plain, scaled = fitted(arms, theta), fitted(arms * units, theta / units)
    np.testing.assert_allclose(scaled.theta * units, plain.theta, rtol=1e-6)
    hessian = scaled.hessian / units / units[:, None]
    np.testing.assert_allclose(hessian, plain.hessian, rtol=1e-6)
    assert bool(scaled.converged)


@pytest.mark.parametrize("closeness", [1e-3, 1e-6])
@pytest.mark.parametrize("name", ["d_optimal", "xy_optimal", "xy_frank_wolfe", "oracle"])
def test_nearly_dependent_columns_do_not_change_values(name, closeness):
    """Another basis of the same features: every value is that of the plain arms."""
    arms, theta, _ = problem(3)
    change = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, closeness]])
    near, parameter = arms @ change, np.linalg.solve(change, theta)
    # Inverses of Gram matrices are exact to the square of the condition number.
    lost = np.linalg.cond(near) ** 2 * np.finfo(float).eps
    np.testing.assert_allclose(
        FUNCTIONS[name](near, parameter), FUNCTIONS[name](arms, theta), rtol=max(1e-3, lost)
    )


@pytest.mark.parametrize("closeness", [1.0, 1e-5, 1e-9, 1e-12])
def test_log_det_loses_digits_only_by_the_condition_number(closeness):
    arms, _, units = problem(3)
    weights = np.full(len(arms), 1 / len(arms))
    near = np.column_stack([arms[:, 0], arms[:, 1], arms[:, 0] + closeness * arms[:, 2]])
    plain = np.linalg.slogdet((arms.T * weights) @ arms)[1]
    found = jb.design.log_det(near, weights)
    np.testing.assert_allclose(found, plain + 2 * np.log(closeness), atol=1e-15 / closeness + 1e-9)
    scaled = jb.design.log_det(near * units, weights)
    np.testing.assert_allclose(scaled, found + 2 * np.log(units).sum(), atol=1e-3)


def test_log_det_is_minus_infinity_where_arms_do_not_span():
    arms, _, _ = problem(0)
    weights = np.full(len(arms), 1 / len(arms))
    flat = np.column_stack([arms[:, :2], arms[:, 0] + arms[:, 1]])
    for some, other in ((arms[:2], weights[:2]), (flat, weights), (arms, weights * 0)):
        assert jb.design.log_det(some, other) == -np.inf
    wanted = "weights must be finite and 0 or above, got others at"
    with pytest.raises(ValueError, match=rf"{wanted} \[1, 2"):
        jb.design.log_det(arms, weights - 0.2 * (np.arange(8) > 0))
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match=rf"{wanted} \[3\]"):
            jb.design.log_det(arms, np.where(np.arange(8) == 3, wrong, weights))


def test_a_column_below_the_least_normal_number_is_refused():
    arms, *_ = problem(0)
    with pytest.raises(ValueError, match=r"2.2e-308 or more, got 1.2e-310 in column \[2\]"):
        jb.design.d_optimal(arms * [1, 1, 1e-310])


ALGORITHMS = {
    "rage": partial(jb.rage, delta=0.05),
    "xy_static": partial(jb.xy_static, delta=0.05),
    "xy_oracle": partial(jb.xy_oracle, delta=0.05),
    "gse": partial(jb.gse, budget=300, design="d_opt"),
    "od_linbai": partial(jb.od_linbai, budget=300),
    "peace": partial(jb.peace, budget=300, objective="rho"),
}


def answers(arms, theta, build, seed):
    runs = jb.simulate(jb.instances.linear(arms, theta), build, replications=8, seed=seed)
    return runs.pulls, runs.answer


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("gse", FORTY[:8]),
        *(pytest.param(name, FORTY, marks=pytest.mark.slow) for name in ALGORITHMS),
    ],
)
def test_units_change_no_answer(name, seeds):
    for seed in seeds:
        arms, theta, units = problem(seed)
        play = partial(answers, build=ALGORITHMS[name], seed=seed)
        (pulls, answer), (pulls_too, answer_too) = (
            play(arms, theta),
            play(arms * units, theta / units),
        )
        np.testing.assert_array_equal(answer, answer_too)
        np.testing.assert_allclose(pulls, pulls_too, rtol=1e-2)


def test_arms_of_a_large_condition_number_are_refused():
    arms, theta, _ = problem(1)
    arms[:, 2] = arms[:, 1] + 1e-10 * arms[:, 2]
    builds = (jb.rage, partial(jb.gse, budget=300), jb.alba, jb.lazy_track_and_stop)
    for build in builds:
        with pytest.raises(ValueError, match=r"condition number of at most .* got [0-9.]+e\+"):
            jb.simulate(jb.instances.linear(arms, theta), build, replications=1)
