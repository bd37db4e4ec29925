"""Maximum likelihood of generalised linear models, for import."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from .feature_tables import check_arms, check_condition, check_entries, is_concrete, require
from .kernels.estimate import hard_fits, irls
from .kernels.estimate.links import FAMILIES, LARGEST, UNCLIPPED
from .kernels.linalg import scaling
from .messages import brief
from .parameters import check, choice, nonnegative
from .precision import kernel
from .signatures import publish
from .transforms import ruled, tangents_like
from .types import Rows, Scalar

__all__ = ["fit_glm"]

publish(globals())

TOL: float = 1e-18  # a Newton decrement, in units of f
SINGLE: float = 1e3  # in single precision: so many squared roundings for each draw
LARGEST_ERROR: float = 100.0  # of a predictor, beyond which a fit needs a certificate
SLACK: float = 1e-9  # of a count: sums of rewards are rounded
# The largest count of a fit, or the ridge: beyond these, f is computed in another unit.
ORDINARY: tuple[float, float] = (2.0**-10, 2.0**30)
# By the family: whether sums are at most the counts, and what they may be.
RANGES: dict[str, tuple[bool, str]] = {
    "logistic": (True, "between 0 and the counts"),
    "probit": (True, "between 0 and the counts"),
    "poisson": (False, "0 or above, and 0 where counts are"),
}


@kernel("arms", "counts", "sums", "init")
def fit_glm(
    arms: Rows,
    counts: Rows,
    sums: Rows,
    *,
    family: str = "logistic",
    ridge: Scalar = 0.0,
    init: Rows | None = None,
) -> irls.Fit:
    """Fit a generalised linear model to draws per arm and their reward sums.

    Minimises `sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = arms @ theta`, by damped
    Newton steps until the Newton decrement is below 1e-18. Where these do not get there, as with
    sums that differ by ten orders of magnitude, steps by orthogonal factors follow, until the
    decrement is that of rounding. Counts, sums and ridge times a constant have the same `theta`:
    where the largest count (or the ridge) is below 1e-3 or above 1e9, 1e-18 is in units of it.

    Args:
      arms: `[K, d]`.
      counts: `[K]` draws of each arm.
      sums: `[K]` sums of their rewards. Without a ridge they must be possible in the family, or
        there is no minimum: between 0 and the counts ("logistic", "probit"), 0 or above
        ("poisson"), 0 where an arm has no draw (all families).
      family: "logistic", "poisson", "probit" (quasi-likelihood) or "gaussian".
      ridge: weight of `||theta||^2 / 2`. With 0 the fit may not exist (separable data) or not be
        unique (arms that do not span); `converged` is then False. It is True only where the
        decrement proves that there is a minimum nearby, however large its standard errors are.
      init: `[d]` start, zeros by default.
    Returns:
      `Fit(theta [d], hessian [d, d], iterations, converged, decrement, status)`; `status` is 0
      converged, 1 cap of 100 iterations reached, 2 no descent, 3 not finite: also where the
      Hessian or its inverse is too large or too small for a number.
    Raises:
      ValueError: bad shapes, NaN, negative counts, impossible sums, an unknown family.
    Composes:
      jit, vmap: yes, also in `scan` and `shard_map`, in the precision of the arrays. Traced counts
        and sums are not checked; where no fit exists `converged` is False.
      grad: yes, of theta and the Hessian by the implicit function theorem, of any order, forwards
        and backwards; that of `init` is 0. As exact as the fit. Where a fit has not converged, the
        gradient of f is not 0 and the theorem says nothing: its derivatives are NaN, under `vmap`
        those of its rows alone.
      float32: yes, until the decrement is below 1e-11 a draw. All of 3,200 random problems
        converged, theta within 3e-4 standard errors for up to 1e5 draws an arm, 5e-3 for 1e7.

    >>> fit_glm([[1.0]], [4], [3.0]).theta.round(6)  # log(3/1)
    array([1.098612])
    """
    check_arms(arms)
    num_arms, dim = np.shape(arms)
    for name, table in (("counts", counts), ("sums", sums)):
        shape = np.shape(table)
        require(shape == (num_arms,), f"{name} must have shape ({num_arms},), got {shape}")
        if is_concrete(table):
            check_entries(f"{name} must be finite", np.asarray(table, float))
    if is_concrete(counts) and not (np.asarray(counts) >= 0).all():
        raise ValueError(f"counts must be 0 or above, got {brief(counts)}")  # slow text: only here
    check("family", choice(*FAMILIES), family)
    check("ridge", nonnegative, ridge)
    if is_concrete(ridge) and ridge == 0:
        _check_sums(counts, sums, family)
    dtype = jnp.result_type(arms)
    init = jnp.zeros(dim, dtype) if init is None else init
    require(np.shape(init) == (dim,), f"init must have shape ({dim},), got {np.shape(init)}")
    if is_concrete(init):
        check_entries("init must be finite", np.asarray(init, float))
    solve = _fits[family]
    if is_concrete(ridge) and ridge == 0:
        check_condition(arms)
        solve = partial(_in_columns_of_one_size, solve)
    return _where_numbers(solve(arms, counts, sums, jnp.asarray(ridge, dtype), init))


def _in_columns_of_one_size(solve, arms, counts, sums, ridge, init):
    """The fit in rescaled features; without a ridge it does not depend on their units."""
    scales = scaling.column_scales(jnp.asarray(arms))
    found = solve(arms / scales, counts, sums, ridge, init * scales)
    both = scales[:, None] * scales
    return found._replace(
        theta=found.theta / scales,
        hessian=found.hessian * both,
        inverse=found.inverse / both,
        factor=found.factor * scales[:, None],
    )


def _check_sums(counts, sums, family):
    """Raise where an arm has a sum that is impossible in the family."""
    if not (is_concrete(counts) and is_concrete(sums)):
        return
    capped, allowed = RANGES.get(family, (False, "0 where counts are"))
    slack = SLACK * np.asarray(counts)
    wrong = (counts == 0) & (sums != 0)
    if family in RANGES:
        wrong |= sums < -slack
    if capped:
        wrong |= sums > counts + slack
    if wrong.any():
        arm = int(np.argmax(wrong))
        raise ValueError(
            f"sums must be {allowed} for family {family!r} without a ridge, "
            f"got {sums[arm]:g} for the {counts[arm]:g} draws of arm {arm}"
        )


def _fit(family, arms, counts, sums, ridge, init):
    """The fit in another unit of f, where counts are far from ordinary ones: theta is the same.

    Elsewhere the unit is 1, which changes no bit.
    """
    root = _root_of_unit(jnp.maximum(counts.max(), ridge))
    unit = root * root
    found = _fit_ordinary(family, arms, counts / unit, sums / unit, ridge / unit, init)
    return found._replace(
        hessian=found.hessian * unit,
        decrement=found.decrement * unit,
        inverse=found.inverse / unit,
        factor=found.factor * root,
    )


@jax.jit
def _where_numbers(found):
    """The fit, not converged where its Hessian or the inverse is too large or small for numbers."""
    sizes = jnp.stack([jnp.diagonal(found.hessian), jnp.diagonal(found.inverse)])
    there = ((sizes > 0) & jnp.isfinite(sizes)).all() | ~found.converged
    status = jnp.where(there, found.status, irls.NONFINITE)
    return found._replace(converged=found.converged & there, status=status)


def _root_of_unit(largest):
    """The square root of the unit of f for a largest count: a power of two, so nothing is rounded.

    The unit is 1 for ordinary counts, and brings others to the nearest ones.
    """
    beyond = largest / jnp.clip(largest, *ORDINARY)
    return scaling.power_of_two(jnp.sqrt(beyond))


def _fit_ordinary(family, arms, counts, sums, ridge, init):
    double = arms.dtype == jnp.float64
    resolution = SINGLE * jnp.finfo(arms.dtype).eps ** 2 * (1.0 + counts.sum())
    tol = jnp.asarray(TOL) if double else resolution
    found = irls.fit(
        arms, counts, sums, family=family, ridge=ridge, init=init, tol=tol, max_iterations=100
    )
    problem = hard_fits.problem_of(arms, counts, sums, family, ridge)
    deviations = irls.deviations(problem.arms, counts, found.hessian)
    certain = hard_fits.exists(problem, family, found.theta, 0.0, deviations)
    exists = (ridge > 0) | ((deviations < LARGEST_ERROR).all() & certain)
    status = jnp.where(exists, found.status, jnp.maximum(found.status, irls.STALLED))
    found = found._replace(converged=found.converged & exists, status=status)
    clipped = family == "poisson" and ((counts > 0) & (arms @ found.theta > LARGEST)).any()
    good = found.converged & ~jnp.asarray(clipped)

    def again():
        harder = hard_fits.fit(arms, counts, sums, family=family, ridge=ridge, tol=tol)
        worse = found._replace(converged=jnp.array(False), status=jnp.maximum(status, irls.STALLED))
        return jax.tree.map(partial(jnp.where, harder.converged), harder, worse)

    return jax.lax.cond(good, lambda: found, again)


def _implicit(family, primals, tangents, found):
    """The derivative of a minimum, where the gradient g is 0: `d theta = -H^-1 dg`, theta fixed."""
    link, theta, inverse = UNCLIPPED[family], found.theta, found.inverse
    data, data_dot = primals[:4], tangents[:4]

    def gradient(theta, arms, counts, sums, ridge):
        return arms.T @ (counts * link.mean(arms @ theta) - sums) + ridge * theta

    def hessian(theta, arms, counts, sums, ridge):
        z = arms @ theta
        slopes = jax.jvp(link.mean, (z,), (jnp.ones_like(z),))[1]
        return (arms.T * (counts * slopes)) @ arms + ridge * jnp.eye(theta.size, dtype=theta.dtype)

    theta_dot = -inverse @ jax.jvp(lambda *data: gradient(theta, *data), data, data_dot)[1]
    hessian_dot = jax.jvp(hessian, (theta, *data), (theta_dot, *data_dot))[1]
    # With H = L L^T: dL = L P(L^-1 dH L^-T), P the lower triangle with half the diagonal.
    root = found.factor.T @ inverse
    inner = jnp.tril(root @ hessian_dot @ root.T)
    known = {
        "theta": theta_dot,
        "hessian": hessian_dot,
        "inverse": -inverse @ hessian_dot @ inverse,
        "factor": found.factor @ (inner - 0.5 * jnp.diag(jnp.diagonal(inner))),
        "decrement": jnp.zeros_like(found.decrement),
    }
    # A factor, as a tangent that does not depend on those of the data would be no derivative.
    valid = jnp.where(found.converged, 1.0, jnp.nan).astype(theta.dtype)
    known = {name: valid * tangent for name, tangent in known.items()}
    return tangents_like(found, known, tangents, "")


_fits: dict[str, Callable[..., irls.Fit]] = {
    family: ruled(partial(_fit, family), partial(_implicit, family)) for family in FAMILIES
}
