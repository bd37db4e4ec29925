"""Calls marked `kernels.once`: one lane computes for all that ask the same."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..kernels.once import NAME
from .interpreter import Lanes
from .narrowing import BLOCK, evaluate_for


def is_shared(eqn, operands):
    """Whether a call is marked and all that differs by lane are flags."""
    own = [x.value.dtype == bool for x in operands if isinstance(x, Lanes)]
    return eqn.params["name"] == NAME and bool(own) and all(own)


def answer_once(eqn, operands, lanes):
    """Results of a marked call: lanes are grouped, one of each group computes."""
    flags = [x.value for x in operands if isinstance(x, Lanes)]
    group, first = groups(jnp.concatenate([x.reshape(-1, lanes.number) for x in flags]))
    closed, block = eqn.params["jaxpr"], math.gcd(BLOCK, lanes.number)

    def fill(carry):
        done, tables = carry
        who = lax.dynamic_slice_in_dim(first, done, block)
        found = evaluate_for(closed, operands, who, lanes)
        pairs = zip(tables, found, strict=True)
        return done + block, [lax.dynamic_update_slice_in_dim(t, x, done, -1) for t, x in pairs]

    tables = [jnp.zeros((*v.aval.shape, lanes.number), v.aval.dtype) for v in eqn.outvars]
    number = group.max() + 1
    _, tables = lax.while_loop(
        lambda carry: carry[0] < number, fill, (jnp.zeros_like(number), tables)
    )
    return [Lanes(x[..., group]) for x in tables]


def groups(flags):
    """Number of the group of each lane, and one lane of each group, for `flags [n, L]`.

    Lanes of a group are equal. Equal lanes are in one group unless hashes collide.
    """
    number = flags.shape[1]
    factors = np.random.default_rng(0).integers(1, 2**31, flags.shape[0], dtype=np.uint32)
    hashes = (flags * (factors[:, None] * 2 + 1)).sum(0, dtype=jnp.uint32)
    order = jnp.argsort(hashes)
    ordered = flags[:, order]
    new = (ordered[:, 1:] != ordered[:, :-1]).any(0)
    of_ordered = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(new)])
    group = jnp.zeros(number, int).at[order].set(of_ordered)
    return group, jnp.zeros(number, int).at[of_ordered].set(order)
