"""Designs by the steps that papers print, and the greedy allocation of whole draws."""

from functools import partial

import jax.numpy as jnp

from ..kernels.design import greedy, vertex_directions
from ..kernels.design.d_optimal import Design, certified
from ..kernels.linalg import subspace
from ..parameters import check, choice, count, positive
from ..precision import kernel
from ..transforms import without_derivative
from ..types import Rows, Scalar
from . import checks

STEPS: str = "its steps end anywhere near the optimum; take d_optimal"


def _by_steps(solvers, arms, active, tol, max_iterations, start):
    arms, _, active, tol = checks.problem(arms, None, active, tol)
    check("max_iterations", count(), max_iterations)
    check("start", choice(*vertex_directions.STARTS), start)
    return solvers[start](arms, active, tol, max_iterations)


@kernel("arms")
def g_optimal_fw(
    arms: Rows,
    *,
    active: Rows | None = None,
    tol: Scalar = 0.01,
    max_iterations: Scalar = 100,
    start: str = "uniform",
) -> Design:
    """Frank-Wolfe on `max_k ||x_k||^2` as printed: it stalls above the optimum.

    Each step is an exact line search. The vertex of the linearised objective is the arm with the
    largest norm itself. Where several attain the maximum it has no gradient; a step towards one of
    them raises another, and the best step is 0 although the optimum is elsewhere. For optimal
    designs take `d_optimal`.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: `converged` says that `value <= (1 + tol) bound`; it does not end the steps.
      max_iterations: steps at most; fewer where one is 0.
      start: equal weights on all active arms ("uniform"), or on as many as their rank, each the
        farthest one in a direction orthogonal to those before it ("kumar_yildirim").
    Returns:
      `Design` as of `d_optimal`.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero, an unknown start.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms.
      grad: no derivative, neither of weights nor of values.
      float32: yes; where the steps stall depends on rounding, and weights differ by some 1e-3.
    Reference:
      M. J. Azizi, B. Kveton, M. Ghavamzadeh, "Fixed-budget best-arm identification in structured
      bandits", IJCAI 2022, Algorithm 2. https://arxiv.org/abs/2106.04763

    >>> found = g_optimal_fw([[2.0, 1.0], [0.0, -1.0], [-1.0, -2.0]])  # the optimum is 2
    >>> found.weights.round(2), round(float(found.value), 3), int(found.iterations)
    (array([0.4, 0.3, 0.3]), 2.364, 1)
    """
    return _by_steps(_g_optimal_fw, arms, active, tol, max_iterations, start)


@kernel("arms")
def wynn(
    arms: Rows,
    *,
    active: Rows | None = None,
    tol: Scalar = 0.01,
    max_iterations: Scalar = 20_000,
    start: str = "uniform",
) -> Design:
    """Frank-Wolfe for `d_optimal`: step k moves `1 / (k + 1)` of the weight to the largest norm.

    The largest norm `||x_k||^2` in `A(w)^-1` is the largest prediction variance, and its arm the
    vertex to which Frank-Wolfe on log det A moves.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: stop when `value <= (1 + tol) bound`.
      max_iterations: steps at most.
      start: as of `g_optimal_fw`.
    Returns:
      `Design` as of `d_optimal`.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero, an unknown start.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms.
      grad: no derivative, neither of weights nor of values.
      float32: yes, to a `tol` of 1e-3.
    Reference:
      H. P. Wynn, "The sequential generation of D-optimum experimental designs", Annals of
      Mathematical Statistics 41, 1970.

    >>> found = wynn([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> found.weights.round(1), bool(found.converged)
    (array([0.5, 0.5, 0. ]), True)
    """
    return _by_steps(_wynn, arms, active, tol, max_iterations, start)


@kernel("arms")
def fedorov(
    arms: Rows,
    *,
    active: Rows | None = None,
    tol: Scalar = 0.01,
    max_iterations: Scalar = 20_000,
    start: str = "uniform",
) -> Design:
    """Frank-Wolfe for `d_optimal` by exact line search: the step that raises det A most.

    It moves `(g / d - 1) / (g - 1)` of the weight to the arm of the largest norm g.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: stop when `value <= (1 + tol) bound`.
      max_iterations: steps at most.
      start: as of `g_optimal_fw`. From "kumar_yildirim" O(d log log d) steps lead to a value of at
        most 2 d, whatever the number of arms (Kumar and Yildirim).
    Returns:
      `Design` as of `d_optimal`.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero, an unknown start.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms.
      grad: no derivative, neither of weights nor of values.
      float32: yes, to a `tol` of 1e-3.
    Reference:
      V. V. Fedorov, "Theory of optimal experiments", Academic Press 1972. The start: P. Kumar, E.
      A. Yildirim, "Minimum-volume enclosing ellipsoids and core sets", Journal of Optimization
      Theory and Applications 126, 2005.

    >>> found = fedorov([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> found.weights.round(1), bool(found.converged)
    (array([0.5, 0.5, 0. ]), True)
    """
    return _by_steps(_fedorov, arms, active, tol, max_iterations, start)


@kernel("arms")
def wolfe_atwood(
    arms: Rows,
    *,
    active: Rows | None = None,
    tol: Scalar = 0.01,
    max_iterations: Scalar = 20_000,
    start: str = "uniform",
) -> Design:
    """Frank-Wolfe with away steps for `d_optimal`, each step by exact line search.

    Steps as those of `fedorov`, or away from the supported arm of the smallest norm, whichever
    raises det A more.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: stop when `value <= (1 + tol) bound`.
      max_iterations: steps at most.
      start: as of `g_optimal_fw`.
    Returns:
      `Design` as of `d_optimal`.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero, an unknown start.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms.
      grad: no derivative, neither of weights nor of values.
      float32: yes, to a `tol` of 1e-5.
    Reference:
      S. D. Ahipasaoglu, P. Sun, M. J. Todd, "Linear convergence of a modified Frank-Wolfe
      algorithm for computing minimum-volume enclosing ellipsoids", Optimization Methods and
      Software 23, 2008, Algorithm 3.1.

    >>> found = wolfe_atwood([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> found.weights.round(6), bool(found.converged)
    (array([0.5, 0.5, 0. ]), True)
    """
    return _by_steps(_wolfe_atwood, arms, active, tol, max_iterations, start)


@kernel("arms")
def greedy_allocation(
    arms: Rows,
    total: Scalar,
    *,
    active: Rows | None = None,
    v0: Scalar | None = None,
    tol: Scalar = 0.01,
) -> Design:
    """G-allocation: one draw after another, each of the arm that reduces the largest norm most.

    Where two arms have the largest norm, a draw of one of them does not reduce it: a shorter arm
    between the two is then drawn again and again, although the optimal design does not use it.

    Args:
      arms: `[K, d]`.
      total: number of draws N; `np.round(total * weights)` are those of each arm.
      active: bool `[K]`; all by default. Inactive arms are not drawn, and their norms not counted.
      v0: the draws begin with `A = v0 I`; by default the diagonal holds 1e-3 d times the mean
        square of each column, so that units do not matter.
      tol: `converged` says that `value <= (1 + tol) bound`.
    Returns:
      `Design` with weights that are multiples of `1 / total`, and `iterations = total`; `value`
      is infinite where the draws do not span the active arms.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero, a total below 1.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms; `total` may be
        traced.
      grad: no derivative, draws are whole numbers.
      float32: yes; where arms nearly tie, a draw may be of another one.
    Deviations:
      The paper does not give the initial matrix. Ties are broken by an order of arms that changes
      with each draw and is the same in every call.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014,
      Section 3. https://arxiv.org/abs/1409.6110

    >>> found = greedy_allocation([[1.0, 0.0], [0.0, 1.0]], 10)
    >>> (10 * found.weights).round(), round(float(found.value), 2)
    (array([5., 5.]), 2.0)
    """
    arms, _, active, tol = checks.problem(arms, None, active, tol, scale_free=v0 is None)
    check("total", count(), total)
    if v0 is not None:
        check("v0", positive, v0)
        v0 = jnp.asarray(v0, arms.dtype)
    return _greedy_allocation(arms, active, jnp.asarray(total, int), v0, tol)


def _solved(solve, start, arms, active, tol, max_iterations):
    return solve(arms, active, tol=tol, max_iterations=max_iterations, start=start)


def _steps(name, solve):
    """By name of the start, the solver that cannot be differentiated."""
    return {
        start: without_derivative(f"design.{name}", partial(_solved, solve, start), STEPS)
        for start in vertex_directions.STARTS
    }


_g_optimal_fw, _wynn = (
    _steps("g_optimal_fw", vertex_directions.g_optimal_fw),
    _steps("wynn", vertex_directions.wynn),
)
_fedorov = _steps("fedorov", vertex_directions.fedorov)
_wolfe_atwood = _steps("wolfe_atwood", vertex_directions.wolfe_atwood)


def _greedily(arms, active, total, v0, tol):
    counts = greedy.g_allocation(arms, active, total, v0=v0)
    weights = counts.astype(arms.dtype) / total.astype(arms.dtype)
    space = subspace.of(arms, active)
    found = vertex_directions.evaluated(space, arms, active, weights, total)
    return certified(space, found, tol)


_greedy_allocation = without_derivative(
    "design.greedy_allocation", _greedily, "draws are whole numbers"
)
