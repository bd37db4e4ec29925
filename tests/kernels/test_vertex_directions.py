"""Designs by steps towards one arm, against plain loops; NumPy checks the certificates."""

import functools
import math

import cvxpy
import jax
import numpy as np
import pytest
import scipy.optimize
from designs import benchmark, information, is_design, norms
from params import params

from jaxbandits.kernels.design import d_optimal, vertex_directions

METHODS = {
    name: jax.jit(getattr(vertex_directions, name)) for name in ("wynn", "fedorov", "wolfe_atwood")
}
METHODS["g_optimal_fw"] = jax.jit(vertex_directions.g_optimal_fw)
METHODS["d_optimal"] = jax.jit(d_optimal.d_optimal)
APART = jax.jit(functools.partial(vertex_directions.fedorov, start="kumar_yildirim"))
APART_BY_NAME = {
    name: jax.jit(functools.partial(getattr(vertex_directions, name), start="kumar_yildirim"))
    for name in ("wynn", "wolfe_atwood", "g_optimal_fw")
} | {"fedorov": APART}
EXACT = ("wynn", "fedorov", "wolfe_atwood")


def solve(name, arms, active=None, *, tol=0.01, max_iterations=20_000):
    active = np.ones(len(arms), bool) if active is None else active
    return METHODS[name](arms, active, tol=tol, max_iterations=max_iterations)


def padded(name, arms, tol):
    """Weights of arms padded with inactive ones to 8, so that the shapes share a program."""
    rows, active = np.zeros((8, arms.shape[1])), np.arange(8) < len(arms)
    rows[active] = arms
    found = solve(name, rows, active, tol=tol)
    assert not np.asarray(found.weights)[~active].any()
    return np.asarray(found.weights)[active]


def unit(seed, num_arms, dim):
    arms = np.random.default_rng(seed).normal(size=(num_arms, dim))
    return arms / np.linalg.norm(arms, axis=1, keepdims=True)


def plain_rate(name, arms, weights, number):
    """Arm and step size of the published rule."""
    inverse, dim = np.linalg.inv(information(arms, weights)), arms.shape[1]
    table = arms @ inverse @ arms.T
    variances = np.diagonal(table)
    up = int(np.argmax(variances > variances.max() * (1 - 1e-11)))
    best = (variances[up] / dim - 1) / (variances[up] - 1)
    if name == "wynn":
        return up, 1 / (number + 2)
    if name == "fedorov":
        return up, best
    if name == "wolfe_atwood":
        held = np.flatnonzero(weights)
        down = held[np.argmin(variances[held])]
        if variances[up] / dim - 1 >= 1 - variances[down] / dim:
            return up, best
        least = -weights[down] / (1 - weights[down])
        low = variances[down]
        return down, max((low / dim - 1) / (low - 1), least) if low > 1 else least
    towards = int(np.argmax(table[up] ** 2))

    def worst(rate):
        moved = (1 - rate) * weights + rate * np.eye(len(arms))[towards]
        return norms(arms, moved, arms).max()

    bounds = {"bounds": (0, 1 - 1e-9), "method": "bounded", "options": {"xatol": 1e-12}}
    found = scipy.optimize.minimize_scalar(worst, **bounds)
    return towards, found.x if found.fun < worst(0.0) * (1 - 1e-8) else 0.0


@pytest.mark.parametrize("name", [*EXACT, "g_optimal_fw"])
def test_steps_are_those_of_the_plain_loop(name):
    arms = unit(0, 9, 3)
    weights, moves = np.full(9, 1 / 9), 0
    for steps in range(1, 16):
        arm, rate = plain_rate(name, arms, weights, steps - 1)
        weights = (1 - rate) * weights + rate * np.eye(9)[arm]
        weights[weights < 1e-13] = 0.0
        found = solve(name, arms, tol=0.0, max_iterations=steps)
        np.testing.assert_allclose(found.weights, weights, atol=1e-7, err_msg=f"step {steps}")
        moves += rate != 0
        assert int(found.iterations) == moves
        np.testing.assert_allclose(found.value, norms(arms, weights, arms).max(), rtol=1e-6)
        if rate == 0:
            break
    assert moves >= 2


def far_apart(arms):
    """The arms that Kumar and Yildirim's directions choose, by least squares of NumPy."""
    chosen = []
    for _ in range(np.linalg.matrix_rank(arms)):
        span = arms[chosen].T
        rest = arms.T - span @ np.linalg.lstsq(span, arms.T, rcond=None)[0] if chosen else arms.T
        direction = rest[:, (rest**2).sum(0).argmax()]
        chosen.append(int(np.abs(arms @ direction).argmax()))
    return sorted(chosen)


@pytest.mark.parametrize("name", params([*EXACT, "g_optimal_fw"], always=["fedorov"]))
def test_steps_go_on_from_arms_that_are_far_apart(name):
    arms = unit(0, 9, 3) * np.linspace(0.5, 1.5, 9)[:, None]
    arms /= np.abs(arms).max(0)  # columns of one size, which is what distances are measured in
    weights = np.zeros(9)
    weights[far_apart(arms)] = 1 / 3
    every = np.ones(9, bool)
    found = APART_BY_NAME[name](arms, every, tol=0.0, max_iterations=0)
    np.testing.assert_allclose(found.weights, weights)
    for steps in range(1, 6):
        arm, rate = plain_rate(name, arms, weights, steps - 1)
        weights = (1 - rate) * weights + rate * np.eye(9)[arm]
        found = APART_BY_NAME[name](arms, every, tol=0.0, max_iterations=steps)
        np.testing.assert_allclose(found.weights, weights, atol=1e-7, err_msg=f"step {steps}")
    assert (weights > 0).sum() > 3


def test_the_steps_from_arms_far_apart_do_not_grow_with_their_number():
    """`4 d log log d + 16` lead to twice the optimum on as many arms; equal weights are on all."""
    dim, arms = 10, unit(0, 4096, 10)
    arms[64:] *= 0.01
    most = 4 * dim * math.log(math.log(dim)) + 16
    for size in (64, 512, 4096):
        active = np.arange(4096) < size
        found, equal = (solve(arms, active, tol=1.0) for solve in (APART, METHODS["fedorov"]))
        steps, held = int(found.iterations), np.asarray(found.weights) > 0
        assert norms(arms[:size], found.weights[:size], arms[:size]).max() <= 2 * dim * (1 + 1e-9)
        assert 0 < steps <= most
        assert held.sum() <= dim + steps
        assert (np.asarray(equal.weights) > 0).sum() == size


def test_where_arms_far_apart_do_not_span_all_get_weight():
    """No arm but zeros: the start is the uniform one, and no design is found."""
    found = APART(np.zeros((9, 3)), np.ones(9, bool), tol=0.01)
    np.testing.assert_allclose(found.weights, 1 / 9)
    assert not bool(found.converged)


@pytest.mark.parametrize("name", EXACT)
def test_the_certificate_holds(name):
    arms = unit(1, 40, 5)
    found = solve(name, arms, tol=1e-3)
    widths = norms(arms, found.weights, arms)
    assert is_design(found.weights)
    assert bool(found.converged)
    assert float(found.bound) == 5
    assert 5 - 1e-9 <= widths.max() <= 5 * (1 + 1e-3) + 1e-9
    np.testing.assert_allclose(widths.max(), found.value, rtol=1e-8)
    np.testing.assert_allclose(np.asarray(found.weights) @ widths, 5.0, rtol=1e-9)


def test_equals_a_conic_solver():
    arms = unit(2, 40, 5)
    weights = cvxpy.Variable(40, nonneg=True)
    logdet = cvxpy.log_det(arms.T @ cvxpy.diag(weights) @ arms)
    cvxpy.Problem(cvxpy.Maximize(logdet), [cvxpy.sum(weights) == 1]).solve(cvxpy.CLARABEL)
    for name, tol in (("wolfe_atwood", 1e-7), ("fedorov", 1e-3), ("wynn", 1e-3)):
        found = solve(name, arms, tol=tol)
        ours = np.linalg.slogdet(information(arms, found.weights))[1]
        assert logdet.value - 5 * tol <= ours <= logdet.value + 1e-6


def reference(arms, tol=1e-8):
    """Log-determinant of the optimum, by steps with inverses of NumPy."""
    weights = np.full(len(arms), 1 / len(arms))
    for number in range(200_000):
        inverse = np.linalg.inv(information(arms, weights)) if number % 50 == 0 else inverse
        if number % 50 == 0:
            variances = np.einsum("ki,ij,kj->k", arms, inverse, arms)
        dim, held = arms.shape[1], np.flatnonzero(weights)
        up, down = int(variances.argmax()), held[variances[held].argmin()]
        if variances[up] <= dim * (1 + tol):
            return np.linalg.slogdet(information(arms, weights))[1]
        arm = up if variances[up] - dim >= dim - variances[down] else down
        least = -weights[arm] / (1 - weights[arm])
        rate = (variances[arm] / dim - 1) / (variances[arm] - 1) if variances[arm] > 1 else least
        rate = max(rate, least)
        moved = inverse @ arms[arm]
        share = rate / (1 - rate + rate * variances[arm])
        inverse = (inverse - share * np.outer(moved, moved)) / (1 - rate)
        variances = (variances - share * (arms @ moved) ** 2) / (1 - rate)
        weights = (1 - rate) * weights
        weights[arm] += rate
        weights[weights < 1e-14] = 0.0
    raise AssertionError("no convergence")


@pytest.mark.parametrize(
    ("num_arms", "dim"), [(200, 8), pytest.param(1000, 30, marks=pytest.mark.slow)]
)
def test_many_arms_reach_the_tolerance(num_arms, dim):
    arms, tol = unit(3, num_arms, dim), 0.01
    best = reference(arms, 1e-6)
    for name in ("d_optimal", "wolfe_atwood"):
        found = solve(name, arms, tol=tol)
        widths = norms(arms, found.weights, arms)
        assert bool(found.converged)
        assert dim - 1e-9 <= widths.max() <= dim * (1 + tol) * (1 + 1e-9)
        reached = np.linalg.slogdet(information(arms, found.weights))[1]
        assert best - dim * tol <= reached <= best + dim * 1e-6


@pytest.mark.parametrize("name", params([*EXACT, "g_optimal_fw"], slow=["wynn", "fedorov"]))
def test_known_designs_are_found(name):
    tol = 1e-3
    found = solve(name, np.eye(5), tol=tol)
    np.testing.assert_allclose(found.weights, 0.2)
    assert (int(found.iterations), bool(found.converged)) == (0, True)
    angle = 2 * np.pi * np.arange(7) / 7
    weights = padded(name, np.stack([np.cos(angle), np.sin(angle)], axis=1), tol)
    np.testing.assert_allclose(weights, 1 / 7, atol=1e-9)
    line = solve(name, np.array([[0.5], [-2.0], [1.0]]), tol=tol)
    np.testing.assert_allclose(line.weights, [0, 1, 0], atol=2 * tol)
    if name != "g_optimal_fw":
        u = np.linspace(-1, 1, 21)
        found = solve(name, np.stack([u**0, u, u**2], axis=1), tol=tol)
        assert bool(found.converged)
        np.testing.assert_allclose(np.asarray(found.weights)[[0, 10, 20]], 1 / 3, atol=0.01)
        np.testing.assert_allclose(padded(name, STALLING, tol), [0.5, 0, 0.5], atol=2e-3)


STALLING = np.array([[2.0, 1], [0, -1], [-1, -2]])


def test_frank_wolfe_on_the_maximum_stalls():
    np.testing.assert_allclose(norms(STALLING, np.full(3, 1 / 3), STALLING).max(), 39 / 14)
    found = solve("g_optimal_fw", STALLING, max_iterations=100)
    np.testing.assert_allclose(found.weights, [0.4, 0.3, 0.3], atol=1e-9)
    np.testing.assert_allclose(found.value, 26 / 11, rtol=1e-9)
    assert (int(found.iterations), bool(found.converged)) == (1, False)
    assert math.isclose(float(found.bound), 2.0)


@pytest.mark.parametrize("dim", [4, 5, 12])
def test_frank_wolfe_on_the_maximum_does_not_leave_a_tie(dim):
    """On Soare's instance it moves only if exactly one of the other unit vectors is active."""
    arms = benchmark(dim, 0.1)
    active = np.ones(dim + 1, bool)
    for removed in range(2, dim - 2):
        active[removed] = False
        found = solve("g_optimal_fw", arms, active)
        np.testing.assert_array_equal(found.weights, active / active.sum())
    active[2:-1] = np.arange(2, dim) == 3
    found = solve("g_optimal_fw", arms, active)
    assert int(found.iterations) > 0
    assert float(found.value) < active.sum() - 0.01


@pytest.mark.parametrize("name", params([*EXACT, "g_optimal_fw"], slow=["fedorov", "wolfe_atwood"]))
def test_only_active_arms_get_weight_in_a_subspace(name):
    rng = np.random.default_rng(3)
    low, frame = rng.normal(size=(12, 2)), np.linalg.qr(rng.normal(size=(4, 2)))[0]
    active = np.arange(12) % 3 > 0
    found, alone = solve(name, low @ frame.T, active), solve(name, low[active])
    assert (np.asarray(found.weights)[~active] == 0).all()
    np.testing.assert_allclose(np.asarray(found.weights)[active], alone.weights, atol=1e-6)
    assert float(found.bound) == 2


@pytest.mark.parametrize("name", EXACT)
def test_bad_scaling_changes_nothing(name):
    arms = unit(4, 40, 5)
    found, plain = solve(name, arms * np.logspace(0, -5, 5)), solve(name, arms)
    assert bool(found.converged)
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-4)


def test_away_steps_need_fewer():
    arms = unit(1, 40, 5)
    steps = {name: int(solve(name, arms, tol=1e-3).iterations) for name in EXACT}
    assert steps["wolfe_atwood"] < 0.5 * min(steps["wynn"], steps["fedorov"])
    assert not bool(solve("fedorov", arms, tol=1e-3, max_iterations=5).converged)
