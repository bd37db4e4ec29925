"""Maximum likelihood of generalised linear models, for import."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .kernels import irls
from .kernels.links import FAMILIES
from .options import check, check_arms, choice, is_concrete, nonnegative, require
from .precision import double


@double
def fit_glm(arms, counts, sums, *, family="logistic", ridge=0.0, init=None):
    """Fit a generalised linear model to draws per arm and their reward sums, in float64.

    Minimises `sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = arms @ theta`, by damped
    Newton steps until the Newton decrement is below 1e-18.

    Args:
      arms: `[K, d]`.
      counts: `[K]` draws of each arm.
      sums: `[K]` sums of their rewards.
      family: "logistic", "poisson", "probit" (quasi-likelihood) or "gaussian".
      ridge: weight of `||theta||^2 / 2`. With 0 the fit need not exist: separable data end
        with `converged` False.
      init: `[d]` start, zeros by default.
    Returns:
      `Fit(theta [d], hessian [d, d], iterations, converged, decrement, status)`; `status` is 0
      converged, 1 cap of 100 iterations reached, 2 no descent, 3 not finite.
    Raises:
      ValueError: bad shapes, NaN, negative counts, an unknown family.

    >>> fit_glm([[1.0]], [4], [3.0]).theta.round(6)  # log(3/1)
    array([1.098612])
    """
    check_arms(arms)
    num_arms, dim = np.shape(arms)
    for name, table in (("counts", counts), ("sums", sums)):
        shape = np.shape(table)
        require(shape == (num_arms,), f"{name} must have shape ({num_arms},), got {shape}")
        if is_concrete(table):
            require(np.isfinite(np.asarray(table, float)).all(), f"{name} must be finite")
    if is_concrete(counts):
        require((np.asarray(counts) >= 0).all(), f"counts must be 0 or above, got {counts!r}")
    check("family", choice(*FAMILIES), family)
    check("ridge", nonnegative, ridge)
    init = jnp.zeros(dim) if init is None else jnp.asarray(init, float)
    require(init.shape == (dim,), f"init must have shape ({dim},), got {init.shape}")
    tables = (jnp.asarray(x, float) for x in (arms, counts, sums))
    return _fit(*tables, family=family, ridge=jnp.asarray(ridge, float), init=init)


@functools.partial(jax.jit, static_argnames="family")
def _fit(arms, counts, sums, *, family, ridge, init):
    found = irls.fit(
        arms, counts, sums, family=family, ridge=ridge, init=init, tol=1e-18, max_iterations=100
    )
    exists = (ridge > 0) | irls.determined(arms, counts, found.hessian)
    status = jnp.where(exists, found.status, jnp.maximum(found.status, irls.STALLED))
    return found._replace(converged=found.converged & exists, status=status)
