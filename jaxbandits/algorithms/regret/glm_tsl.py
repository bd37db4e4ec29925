"""GLM-TSL: Thompson sampling with a Laplace approximation in generalised linear bandits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...core import Algorithm, Move
from ...kernels import irls, pick
from ...kernels.links import FAMILIES
from ...options import choice, constructor, nonnegative, positive

TOL = 1e-6  # Newton decrement of a fit


class State(NamedTuple):
    """What GLM-TSL remembers."""

    counts: jax.Array  # int [K]
    sums: jax.Array  # float [K]
    fit: irls.Fit  # to the rewards so far; its theta is the next warm start
    rounds: jax.Array  # int []
    unconverged: jax.Array  # int [] rounds whose fit missed its tolerance


@constructor(spans=True, family=choice(*FAMILIES), a=nonnegative, ridge=positive)
def glm_tsl(arms, *, family="logistic", a=1.0, ridge=1e-3):
    """GLM-TSL (Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier, 2020).

    After one draw of each of d linearly independent arms: fit theta by regularised maximum
    likelihood, with Hessian H; sample `theta' ~ N(theta, a^2 H^-1)`; draw the arm with the
    largest `x^T theta'`.

    Args:
      arms: `[K, d]` features; they must span.
      family: "logistic", "poisson", "probit" or "gaussian".
      a: scale of the perturbation; 1 is exact Laplace sampling (the paper's practical choice).
      ridge: weight of `||theta||^2 / 2`, added to f and so to H. Without it the fit does not
        exist for the first rounds: d independent arms drawn once are always separable.
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate. `info`: rounds whose fit missed its tolerance (`unconverged`).
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      The ridge. Initial arms are the first d independent ones in index order. After a fit that
      did not converge the next one starts from 0.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Algorithm 1. https://arxiv.org/abs/1906.08947
    Example:
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> runs = jb.simulate(instance, jb.glm_tsl, horizon=200, replications=10)
      >>> runs.regret.shape[0], int(runs.rounds[-1])
      (10, 200)
    """
    num_arms, dim = arms.shape
    basis = pick.first_basis(arms)

    def init(key):
        zero, zeros = jnp.zeros((), int), jnp.zeros(num_arms, arms.dtype)
        nothing = irls.without_data(dim, ridge, arms.dtype)
        return State(jnp.zeros(num_arms, int), zeros, nothing, zero, zero)

    def ask(key, state):
        found = state.fit
        normal = jax.random.normal(key, (dim,), arms.dtype)
        # With H = L L^T, H^-1 L z is the solution of L^T x = z: a draw from N(0, H^-1).
        sampled = found.theta + a * (found.inverse @ (found.factor @ normal))
        first = basis[jnp.minimum(state.rounds, dim - 1)]
        return Move(
            arm=jnp.where(state.rounds < dim, first, jnp.argmax(arms @ sampled)),
            count=None,
            done=jnp.array(False),
            answer=jnp.argmax(arms @ found.theta),
            info={"unconverged": state.unconverged},
        )

    def tell(state, move, total):
        counts = state.counts.at[move.arm].add(1)
        sums = state.sums.at[move.arm].add(total)
        found = irls.fit(
            arms,
            counts.astype(arms.dtype),
            sums,
            family=family,
            ridge=ridge,
            init=jnp.where(state.fit.converged, state.fit.theta, 0.0),
            inverse=irls.after_draw(state.fit, family, pick.at(arms, move.arm)),
            # Nobody asks for an estimate before the first arms are drawn: one step will do.
            tol=jnp.where(state.rounds + 1 < dim, jnp.inf, TOL),
        )
        unconverged = state.unconverged + ~found.converged
        return State(counts, sums, found, state.rounds + 1, unconverged)

    return Algorithm(init, ask, tell)
