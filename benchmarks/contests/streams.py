"""The random numbers of a replication, for contestants that must play the same bandit."""

import functools

import jax
import numpy as np

from jaxbandits.driver import BLOCK, INIT, ask_key, root_key

from .. import build


def noise_of(seed, replication, rounds):
    """The key and the standardised noise of a replication that draws one arm a round."""
    key = jax.random.fold_in(root_key(seed), replication)
    blocks = np.arange(-(-rounds // BLOCK))
    draw = jax.vmap(lambda block: jax.random.normal(jax.random.fold_in(key, block), (BLOCK,)))
    return key, np.asarray(jax.jit(draw)(blocks)).ravel()


def tie_order(key, num_arms):
    """The priorities that break ties in that replication."""
    return np.asarray(jax.random.permutation(jax.random.fold_in(key, INIT), num_arms))


def phase_noise_of(seed, replication, phases, num_arms):
    """Standardised noise `[phases, K]` of the reward sums of a replication that plays phases."""
    return np.asarray(_phase_noise(_key(seed, replication), phases, num_arms))


def phase_orders_of(seed, replication, phases, num_arms):
    """Priorities `[phases, K]` by which the remainder of an even phase is shared out."""
    return np.asarray(_phase_orders(_key(seed, replication), phases, num_arms))


def _key(seed, replication):
    return jax.random.fold_in(root_key(seed), replication)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _phase_noise(key, phases, num_arms):
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(np.arange(phases))
    return jax.vmap(lambda key: jax.random.normal(key, (num_arms,)))(keys)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _phase_orders(key, phases, num_arms):
    keys = jax.vmap(functools.partial(ask_key, key))(np.arange(phases))
    return jax.vmap(lambda key: jax.random.permutation(key, num_arms))(keys)


def others(baselines):
    """The loops of a module of baselines that this machine can run."""
    loops = {"numpy": baselines.in_numpy}
    if hasattr(baselines, "in_numba") and baselines.numba is not None:
        loops["numba"] = baselines.in_numba
    if hasattr(baselines, "in_c") and build.compiler() is not None:
        loops["c"] = baselines.in_c
    return loops
