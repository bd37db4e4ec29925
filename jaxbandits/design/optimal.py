"""Designs that solve their problem, each with a certificate."""

import jax
import jax.numpy as jnp
import numpy as np

from ..kernels import design as kernels
from ..kernels import oracle as oracles
from ..kernels import ratios as ratio_kernels
from ..kernels import xy_frank_wolfe as wolfe
from ..kernels.directions import Pairs
from ..kernels.xy_designs import named
from ..options import check, check_arms, count, require
from ..precision import double
from .checks import check_problem


@double
def d_optimal(arms, *, active=None, tol=0.01):
    """D- and G-optimal design on the active arms, by vertex exchange.

    Args:
      arms: `[K, d]`.
      active: bool `[K]`; all by default. Inactive arms get no weight.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design(weights [K], value, bound, iterations, converged)`: `value` is the largest
      `||x_k||^2` in `A(w)^-1` over active arms, `bound` the rank of the active arms, which is
      the optimum.
    Raises:
      ValueError: bad shapes, NaN, no active arm.

    >>> found = d_optimal([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> found.weights.round(1)
    array([0.5, 0.5, 0. ])
    """
    active = check_problem(arms, None, active, np.shape(arms)[0], tol)
    return _d_optimal(jnp.asarray(arms, float), active, tol=tol)


@double
def xy_optimal(arms, targets, *, active=None, tol=0.01):
    """The design that minimises the largest `||z - z'||^2` in `A(w)^-1` over active targets.

    Args:
      arms: `[K, d]` what may be drawn.
      targets: `[M, d]` what is compared.
      active: bool `[M]`; all by default.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design`; `value` is infinite where a difference leaves the span of the arms.
    Raises:
      ValueError: bad shapes, NaN, no active target.

    >>> found = xy_optimal([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(found.value), 2), bool(found.converged)
    (4.0, True)
    """
    active = check_problem(arms, targets, active, np.shape(targets)[0], tol)
    return _xy_optimal(jnp.asarray(arms, float), jnp.asarray(targets, float), active, tol=tol)


@double
def oracle(instance, *, tol=0.01):
    """What who knows theta would draw: `min over w of max over z of ||z* - z||^2 / gap_z^2`.

    Args:
      instance: an `Instance`; only its arms, targets and values count.
      tol: stop when `value <= (1 + tol) bound`.
    Returns:
      `Design`; `value` is the characteristic time psi* where the values are linear (see
      `theory.characteristic_time`), infinite where two targets are best.
    Raises:
      ValueError: bad shapes or NaN, values that are not one for each target.

    >>> import jaxbandits as jb
    >>> found = oracle(jb.instances.canonical(2, gap=0.5))
    >>> found.weights.round(2), round(float(found.value), 1)
    (array([0.5, 0.5]), 16.0)
    """
    arms, targets, values = (getattr(instance, n) for n in ("arms", "targets", "values"))
    rows = np.shape(targets)[0]
    check_problem(arms, targets, None, rows, tol)
    fine = np.shape(values) == (rows,) and np.isfinite(values).all()
    require(fine, f"instance: values must be {rows} finite numbers, got {np.shape(values)}")
    return _oracle(*(jnp.asarray(x, float) for x in (arms, targets, values)), tol=tol)


def ratios(arms):
    """In which shares each pair of arms is told apart with the fewest draws.

    `shares[i, j, a] = |w_a| / ||w||_1` for the w of least `||w||_1` with `X^T w = x_i - x_j`
    (Xu, Honda, Sugiyama, 2018, eq. 10 and 11): a linear program a pair, a millisecond each.

    Args:
      arms: `[K, d]`; they need not span.
    Returns:
      float `[K, K, K]`, symmetric in i and j; zero where two arms are equal.
    Raises:
      ValueError: bad shapes or NaN.
      RuntimeError: a solution without its certificate.

    >>> ratios([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])[0, 2].round(2)
    array([0.33, 0.67, 0.  ])
    """
    check_arms(arms)
    return ratio_kernels.by_linear_programs(arms)


@double
def xy_frank_wolfe(arms, targets, *, active=None, tol=0.01, max_iterations=5000):
    """The same problem by Frank-Wolfe steps of `2 / (k + 2)`, as in RAGE's experiments.

    It ends when a step is small, which says nothing about the optimum: the value was 0.3 to 13
    percent above it on the instances of that paper. `xy_optimal` is faster and certified.

    Args:
      arms: `[K, d]` what may be drawn.
      targets: `[M, d]` what is compared.
      active: bool `[M]`; all by default.
      tol: stop when the weights change by less than this part of their length.
      max_iterations: steps at most.
    Returns:
      `Design`; weights below 1e-5 are set to zero. `converged` says that the last step was below
      `tol`, and `value / bound` how far from the optimum the design can be.
    Raises:
      ValueError: bad shapes, NaN, no active target.
    Reference:
      T. Fiez, L. Jain, K. Jamieson, L. Ratliff, "Sequential experimental design for transductive
      linear bandits", NeurIPS 2019. https://arxiv.org/abs/1906.08399

    >>> found = xy_frank_wolfe([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(found.value), 2), int(found.iterations)
    (4.0, 199)
    """
    active = check_problem(arms, targets, active, np.shape(targets)[0], tol)
    check("max_iterations", count(), max_iterations)
    options = {"tol": tol, "max_iterations": max_iterations}
    return _xy_frank_wolfe(jnp.asarray(arms, float), jnp.asarray(targets, float), active, **options)


_d_optimal = jax.jit(kernels.d_optimal)


@jax.jit
def _oracle(arms, targets, values, *, tol):
    return oracles.oracle(arms, targets, values, named("interior_point", tol))


@jax.jit
def _xy_optimal(arms, targets, active, *, tol):
    return named("interior_point", tol).between(arms, targets, active)


@jax.jit
def _xy_frank_wolfe(arms, targets, active, **options):
    pairs = Pairs(targets)
    first, second = pairs.indices
    return wolfe.xy_frank_wolfe(arms, pairs, active[first] & active[second], **options)
