"""Designs that solve their problem, each with a certificate."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..feature_tables import check_arms, check_entries, is_concrete, require
from ..kernels.allocate import pair_shares
from ..kernels.design.d_optimal import Design
from ..kernels.design.directions import Pairs, number_of_pairs
from ..kernels.design.xy import by_name
from ..kernels.design.xy import frank_wolfe as wolfe
from ..kernels.linalg import scaling, spd
from ..parameters import check, count
from ..precision import check_real, is_traced, kernel, on_host
from ..system.kept_calls import kept
from ..transforms import without_derivative
from ..types import Rows, Scalar
from . import checks
from .envelope import best_for_all, best_for_gaps, best_for_pairs

NOT_CERTIFIED: str = "its steps end anywhere near the optimum; take xy_optimal"


@kernel("arms")
def d_optimal(arms: Rows, *, active: Rows | None = None, tol: Scalar = 0.01) -> Design:
    """D- and G-optimal design on the active arms: the least largest prediction variance.

    By vertex exchange, a Frank-Wolfe method that moves weight between two arms at a time.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design(weights [K], value, bound, iterations, converged)`: `value` is the largest
      prediction variance `||x_k||^2` in `A(w)^-1` over active arms, `bound` the rank of the
      active arms, which is the optimum.
    Raises:
      ValueError: bad shapes, NaN, no active arm, arms that are all zero.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arms. Traced arms that
      are all zero give `value = bound = 0` and `converged` False.
      grad: of `value` and `bound`, which is 0: the optimum is the rank. The weights have none. The
        gradient of the largest determinant is that of `log_det` at fixed weights.
      float32: yes, to a `tol` of 1e-5.

    >>> found = d_optimal([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> found.weights.round(1)
    array([0.5, 0.5, 0. ])
    """
    arms, _, active, tol = checks.problem(arms, None, active, tol)
    return best_for_all(arms, active, tol)


@kernel("arms", "targets")
def xy_optimal(
    arms: Rows, targets: Rows, *, active: Rows | None = None, tol: Scalar = 0.01
) -> Design:
    """The design that minimises the largest `||z - z'||^2` in `A(w)^-1` over active targets.

    Args:
      arms: `[K, d]` what may be drawn.
      targets: `[M, d]` what is compared.
      active: bool `[M]`; all by default.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design`; where a difference leaves the span of the arms by more than 1e-6 of its length,
      `value` and `bound` are infinite and `converged` is False. Where there is nothing to compare
      (one target, or equal ones) all designs are optimal, and the uniform one is returned with
      `value = bound = 0` and `converged` True.
    Raises:
      ValueError: bad shapes, NaN, no active target, arms that are all zero, arms of so many
        dimensions that the solver's tables exceed the machine's memory.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of arms and targets.
      grad: of `value` and `bound`, the first derivative only, by the envelope theorem, as exact as
        the design: give a `tol` of 1e-6, say (below 1e-7 rounding may leave `converged` False). NaN
        where `converged` is False, for the theorem is about an optimum. The weights have none.
      float32: yes, to a `tol` of 2e-3; with less the design is some 1e-3 from the optimum, and
        `converged` False.

    >>> found = xy_optimal([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(found.value), 2), bool(found.converged)
    (4.0, True)
    """
    arms, targets, active, tol = checks.problem(arms, targets, active, tol)
    number = number_of_pairs(np.shape(targets)[0])
    checks.fits_memory(by_name.bytes_needed(*np.shape(arms), number), arms, number)
    return best_for_pairs(arms, targets, active, tol).design


@kernel()
def oracle(instance: Any, *, tol: Scalar = 0.01) -> Design:
    """The optimal design for known values: `min over w of max over z of ||z* - z||^2 / gap_z^2`.

    Args:
      instance: an `Instance`; only its arms, targets and values count. Where values are estimates,
        as those of `instances.simulated` may be, the design is one for the estimates.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design`; `value` is the characteristic time psi* where the values are linear (see
      `theory.characteristic_time`), infinite where two targets are best.
    Raises:
      ValueError: bad shapes or NaN, values that are not one for each target, arms of so many
        dimensions that the solver's tables exceed the machine's memory.
    Composes:
      jit, vmap: as `xy_optimal`, of an `Instance` whose arrays are traced.
      grad: as `xy_optimal`, of `value` and `bound` in its arms, targets and values.
      float32: yes, to a `tol` of 2e-3; with less the design is some 1e-3 from the optimum, and
        `converged` False.

    >>> import jaxbandits as jb
    >>> found = oracle(jb.instances.canonical(2, gap=0.5))
    >>> found.weights.round(2), round(float(found.value), 1)
    (array([0.5, 0.5]), 16.0)
    """
    names = ("arms", "targets", "values")
    known = all(hasattr(instance, name) for name in names)
    require(known, "instance must be an Instance", instance)
    for name in names:
        check_real(f"instance.{name}", getattr(instance, name))
    arms, targets, values = (getattr(instance, name) for name in names)
    arms, targets, _, tol = checks.problem(arms, targets, None, tol)
    rows = np.shape(targets)[0]
    fits = np.shape(values) == (rows,)
    require(fits, f"instance: values must be {rows} finite numbers, got shape {np.shape(values)}")
    if is_concrete(values):
        check_entries("instance: values must be finite", np.asarray(values, float))
    checks.fits_memory(by_name.bytes_needed(*np.shape(arms), rows), arms, rows)
    unit = unit_of(values)
    design = best_for_gaps(arms, targets, values / unit, tol).design
    value, bound = (number / unit / unit for number in (design.value, design.bound))
    return design._replace(value=value, bound=bound)


def unit_of(values: Rows) -> Scalar:
    """A power of two near the largest value: squares of values in this unit are in range."""
    if is_traced(values):
        column = jnp.asarray(values)[:, None]
        return jax.lax.stop_gradient(scaling.column_scales(column)[0])
    return float(scaling.host_scales(np.asarray(values, float)[:, None])[0])


@on_host
def ratios(arms: Rows) -> Float[np.ndarray, "K K K"]:
    """The shares of draws that compare each pair of arms with the fewest draws.

    `shares[i, j, a] = |w_a| / ||w||_1` for the w of least `||w||_1` with `X^T w = x_i - x_j`
    (Xu, Honda, Sugiyama, 2018, eq. 10 and 11): a linear program for each pair, a millisecond each.

    Args:
      arms: `[K, d]`; they need not span.
    Returns:
      float `[K, K, K]`, symmetric in i and j; zero where two arms are equal.
    Raises:
      ValueError: bad shapes or NaN.
      RuntimeError: a linear program was not solved to its certificate.
      TypeError: traced arms; linear programs are solved on the host.
    Composes:
      jit, vmap, grad, float32: no.

    >>> ratios([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])[0, 2].round(2)
    array([0.33, 0.67, 0.  ])
    """
    check_arms(arms)
    return pair_shares.by_linear_programs(np.asarray(arms, float))


@kernel("arms", "targets")
def xy_frank_wolfe(
    arms: Rows,
    targets: Rows,
    *,
    active: Rows | None = None,
    tol: Scalar = 0.01,
    max_iterations: Scalar = 5000,
) -> Design:
    """The problem of `xy_optimal` by Frank-Wolfe steps of `2 / (k + 2)`, as in RAGE's experiments.

    It ends when a step is small, which does not bound the distance to the optimum: the value was
    0.3 to 13 percent above it on the instances of that paper. `xy_optimal` is faster and certified.

    Args:
      arms: `[K, d]` what may be drawn.
      targets: `[M, d]` what is compared.
      active: bool `[M]`; all by default.
      tol: stop when the weights change by less than this part of their length.
      max_iterations: steps at most.
    Returns:
      `Design`; weights below 1e-5 are set to zero. `converged` says that the last step was below
      `tol`; `value / bound` bounds the distance to the optimum.
    Raises:
      ValueError: bad shapes, NaN, no active target, arms that are all zero, so many targets that a
        table of their differences exceeds the machine's memory.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of arms and targets.
      grad: no derivative, neither of weights nor of values.
      float32: yes.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019. https://arxiv.org/abs/1906.08399

    >>> found = xy_frank_wolfe([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(found.value), 2), int(found.iterations)
    (4.0, 199)
    """
    arms, targets, active, tol = checks.problem(arms, targets, active, tol)
    check("max_iterations", count(), max_iterations)
    rows, dim = np.shape(targets)
    number = number_of_pairs(rows)
    checks.fits_memory(3 * 8 * number * dim, arms, number)  # copies of a table
    return _xy_frank_wolfe(arms, targets, active, tol, max_iterations)


@kernel("arms", "weights")
def log_det(arms: Rows, weights: Rows) -> Float[Array, ""]:
    """`log det A(w)` of a design, which `d_optimal` maximises.

    Args:
      arms: `[K, d]`.
      weights: `[K]`, non-negative.
    Returns:
      `[]`, -inf where the supported arms do not span all dimensions. For nearly dependent arms the
      error grows with their condition number, not with its square.
    Raises:
      ValueError: bad shapes, weights that are negative or not finite.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arrays.
      grad: yes, of both arguments; NaN where it is -inf, or where A(w) has no inverse in this
        precision. That of the optimum is the one at fixed weights (envelope theorem):
        `log_det(arms, d_optimal(stop_gradient(arms)).weights)`.
      float32: yes.

    >>> round(float(log_det([[1.0, 0.0], [0.0, 2.0]], [0.5, 0.5])), 6)
    0.0
    """
    check_arms(arms)
    shape, wanted = np.shape(weights), np.shape(arms)[:1]
    require(shape == wanted, f"weights must have shape {wanted}, got {shape}")
    if is_concrete(weights):
        table = np.asarray(weights)
        wrong = np.flatnonzero(~((table >= 0) & (table < np.inf)))[:5].tolist()
        require(not wrong, f"weights must be finite and 0 or above, got others at {wrong}")
    return _log_det(arms, weights)


@kept
def _log_det(arms, weights):
    scales = jax.lax.stop_gradient(scaling.column_scales(arms))
    return _log_det_of_one_size(arms / scales, weights) + 2.0 * jnp.log(scales).sum()


@jax.custom_jvp
def _log_det_of_one_size(arms, weights):
    """By an orthogonal decomposition of the rows, which squares no condition number."""
    num_arms, dim = arms.shape
    if num_arms < dim:
        return jnp.full((), -jnp.inf, arms.dtype)
    rows = arms * jnp.sqrt(weights)[:, None]
    pivots = jnp.abs(jnp.diagonal(jnp.linalg.qr(rows, mode="r")))
    lost = num_arms * jnp.finfo(arms.dtype).eps * jnp.sqrt((rows**2).sum(0))
    return jnp.where((pivots <= lost).any(), -jnp.inf, 2.0 * jnp.log(pivots).sum())


@_log_det_of_one_size.defjvp
def _log_det_jvp(primals, tangents):
    (arms, weights), (arms_dot, weights_dot) = primals, tangents
    matrix = (arms.T * weights) @ arms
    exists = spd.inverse(jax.lax.stop_gradient(matrix), may_lack_rank=True).positive
    half = arms @ jnp.where(exists, jnp.linalg.inv(matrix), jnp.nan)  # has derivatives of its own
    change = weights_dot @ (half * arms).sum(1) + 2.0 * weights @ (half * arms_dot).sum(1)
    return _log_det_of_one_size(arms, weights), change


def _frank_wolfe(arms, targets, active, tol, max_iterations):
    pairs = Pairs(targets)
    first, second = pairs.indices
    options = {"tol": tol, "max_iterations": max_iterations}
    return wolfe.xy_frank_wolfe(arms, pairs, active[first] & active[second], **options)


_xy_frank_wolfe = without_derivative("design.xy_frank_wolfe", _frank_wolfe, NOT_CERTIFIED)
