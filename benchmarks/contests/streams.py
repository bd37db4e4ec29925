"""The package's random numbers of a replication, so that all contestants see the same rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.engine.episode import BLOCK, INIT, ask_key, root_key
from jaxbandits.kernels import selection

from .. import build


def noise_of(seed, replication, rounds, law=jax.random.normal):
    """The key of a replication and its noise for at least `rounds` rounds of one draw each.

    Args:
      law: what draws the noise: standardised for normal rewards, `jax.random.uniform` for 0 or 1.
    """
    key = _key(seed, replication)
    # Powers of 2, so that few shapes are compiled.
    number = 1 << (-(-rounds // BLOCK) - 1).bit_length()
    return key, np.asarray(_blocks(key, jnp.arange(number), law)).ravel()


@partial(jax.jit, static_argnames="law")
def _blocks(key, numbers, law):
    return jax.vmap(lambda block: law(jax.random.fold_in(key, block), (BLOCK,)))(numbers)


def tie_order(key, num_arms):
    """The priorities that break ties in that replication."""
    return np.asarray(selection.tie_order(jax.random.fold_in(key, INIT), num_arms))


def asked_of(key, rounds, dim):
    """The standard normals `[T, d]` that an algorithm draws in its `ask`, by round."""
    return np.asarray(_asked(key, jnp.arange(rounds), dim))


@partial(jax.jit, static_argnames="dim")
def _asked(key, rounds, dim):
    return jax.vmap(lambda t: jax.random.normal(ask_key(key, t), (dim,)))(rounds)


def phase_noise_of(seed, replication, phases, num_arms):
    """Standardised noise `[phases, K]` of the reward sums of a replication with phases."""
    return np.asarray(_phase_noise(_key(seed, replication), phases, num_arms))


def phase_orders_of(seed, replication, phases, num_arms):
    """Priorities `[phases, K]` that decide which arms get the remainder of an even phase."""
    return np.asarray(_phase_orders(_key(seed, replication), phases, num_arms))


def _key(seed, replication):
    return jax.random.fold_in(root_key(seed), replication)


@partial(jax.jit, static_argnums=(1, 2))
def _phase_noise(key, phases, num_arms):
    keys = jax.vmap(partial(jax.random.fold_in, key))(np.arange(phases))
    return jax.vmap(lambda key: jax.random.normal(key, (num_arms,)))(keys)


@partial(jax.jit, static_argnums=(1, 2))
def _phase_orders(key, phases, num_arms):
    keys = jax.vmap(partial(ask_key, key))(np.arange(phases))
    return jax.vmap(lambda key: selection.lots(key, num_arms))(keys)


def others(baselines):
    """The baselines of a module that this machine can run."""
    loops = {"numpy": baselines.in_numpy}
    if hasattr(baselines, "in_numba") and build.numba is not None:
        loops["numba"] = baselines.in_numba
    if hasattr(baselines, "in_c") and build.compiler() is not None:
        loops["c"] = baselines.in_c
    return loops
