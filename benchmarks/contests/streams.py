"""The random numbers of a replication, for contestants that must play the same bandit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.driver import BLOCK, INIT, ask_key, root_key

from .. import build


def noise_of(seed, replication, rounds, law=jax.random.normal):
    """The key and the noise of at least `rounds` rounds of a replication that draws one arm each.

    Args:
      law: what draws it: standardised for normal rewards, `jax.random.uniform` for 0 or 1.
    """
    key = jax.random.fold_in(root_key(seed), replication)
    # Whole powers of 2, so that few shapes are compiled.
    number = 1 << (-(-rounds // BLOCK) - 1).bit_length()
    return key, np.asarray(_blocks(key, jnp.arange(number), law)).ravel()


@partial(jax.jit, static_argnames="law")
def _blocks(key, numbers, law):
    return jax.vmap(lambda block: law(jax.random.fold_in(key, block), (BLOCK,)))(numbers)


def tie_order(key, num_arms):
    """The priorities that break ties in that replication."""
    return np.asarray(jax.random.permutation(jax.random.fold_in(key, INIT), num_arms))


def asked_of(key, rounds, dim):
    """The standard normals `[T, d]` that an algorithm draws when it is asked, round by round."""
    return np.asarray(_asked(key, jnp.arange(rounds), dim))


@partial(jax.jit, static_argnames="dim")
def _asked(key, rounds, dim):
    return jax.vmap(lambda t: jax.random.normal(ask_key(key, t), (dim,)))(rounds)


def others(baselines):
    """The loops of a module of baselines that this machine can run."""
    loops = {"numpy": baselines.in_numpy}
    if hasattr(baselines, "in_numba") and build.numba is not None:
        loops["numba"] = baselines.in_numba
    if hasattr(baselines, "in_c") and build.compiler() is not None:
        loops["c"] = baselines.in_c
    return loops
