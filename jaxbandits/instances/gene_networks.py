"""Boolean networks of genes: the rules that regulate them, and the states where they stop.

A gene sees its activators and its repressors, and each of the two groups is at one of three
levels: none of it is active, some of it, or all. A rule says, for each level of repression, which
level of activation switches the gene on. More activation never switches off and more repression
never on, which leaves 18 rules that are not constant (Yordanov et al., "A method to identify and
analyze biological programs through automated reasoning", npj Systems Biology 2016).
"""

from functools import partial, reduce
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.random import bits, fold_in
from jaxtyping import Array, Bool, Float, Int

from ..kernels import selection
from ..types import Key, Table

NONE: int = 0
SOME: int = 1
ALL: int = 2
NEVER: int = 3
# The least activation that switches a gene on while none, some or all repressors are active.
RULES: Int[np.ndarray, "18 3"] = np.array(
    [
        (ALL, NEVER, NEVER),
        (SOME, NEVER, NEVER),
        (ALL, ALL, NEVER),
        (SOME, ALL, NEVER),
        (ALL, ALL, ALL),
        (SOME, ALL, ALL),
        (SOME, SOME, NEVER),
        (SOME, SOME, ALL),
        (SOME, SOME, SOME),
        (NONE, NEVER, NEVER),
        (NONE, ALL, NEVER),
        (NONE, SOME, NEVER),
        (NONE, NONE, NEVER),
        (NONE, ALL, ALL),
        (NONE, SOME, ALL),
        (NONE, NONE, ALL),
        (NONE, SOME, SOME),
        (NONE, NONE, SOME),
    ]
)
SWEEPS: dict[str, int] = {"asynchronous": 200, "synchronous": 40}  # the defaults of the dynamics

State: TypeAlias = Bool[Array, " G"]
Mask: TypeAlias = Bool[Table, " G"]


class Network(NamedTuple):
    """G genes, each with at most `most` regulators; an unused slot holds an arbitrary gene."""

    regulators: Int[Table, "G most"]
    activates: Bool[Table, "G most"]
    represses: Bool[Table, "G most"]
    rules: Int[Table, " G"]  # rows of `RULES`


class Attractor(NamedTuple):
    """The state where a network stopped, or where it was after the last sweep."""

    state: State
    fixed: Bool[Array, ""]  # no gene would change
    sweeps: Int[Array, ""]  # made, including the last one, which changed nothing


def needs(network: Network) -> Int[Array, "3 G"]:
    """The least activation that switches each gene on, by the level of its repression.

    Where one of the two groups is empty, a rule without a condition on the other would make the
    gene a constant. With activators only, some have to be active; with repressors only, none.
    """
    activated, repressed = network.activates.any(1), network.represses.any(1)
    none, *rest = jnp.asarray(RULES)[network.rules].T
    none = jnp.where(activated & ~repressed, jnp.maximum(none, SOME), none)
    none = jnp.where(repressed & ~activated, NONE, none)
    return jnp.stack([none, *rest])


class _Slots(NamedTuple):
    """A network with its slots on the first axis, so that the compiler vectorises over genes."""

    regulators: Int[Array, "most G"]
    activates: Bool[Array, "most G"]
    represses: Bool[Array, "most G"]
    needs: Int[Array, "3 G"]


def _slots(network):
    regulators, activates, represses, _ = (table.T for table in network)
    return _Slots(regulators, activates, represses, needs(network))


def _respond(slots, seen):
    """The next value of each gene whose regulators are `seen`, `most` rows of bool [G]."""
    activation = _levels(seen, slots.activates)
    some, all_ = _levels(seen, slots.represses)

    def on(level):
        least = slots.needs[level]
        enough = ((least <= SOME) & activation[0]) | ((least <= ALL) & activation[1])
        return (least == NONE) | enough

    return jnp.where(all_, on(ALL), jnp.where(some, on(SOME), on(NONE)))


def _levels(seen, group):
    """Whether some of a group is active, and whether all of it is; neither for an empty group."""
    pairs = list(zip(seen, group, strict=True))
    some = reduce(jnp.logical_or, [x & member for x, member in pairs])
    return some, reduce(jnp.logical_and, [x | ~member for x, member in pairs]) & group.any(0)


def _at(table, indices):
    """`table[indices]` for indices known to be in range."""
    return table.at[indices].get(mode="promise_in_bounds")


def updated(network: Network, state: State) -> State:
    """The state after all genes are updated at the same time."""
    slots = _slots(network)
    return _respond(slots, [_at(state, r) for r in slots.regulators])


def updated_gene(network: Network, state: State, gene: Int[Array, ""]) -> State:
    """The state after one gene is updated."""
    own = Network(*(selection.at(jnp.asarray(table), gene)[None] for table in network))
    return state.at[gene].set(_respond(_slots(own), [_at(state, r) for r in own.regulators.T])[0])


def update_order(key: Key, sweep: Int[Array, ""], num_genes: int) -> Int[Array, " G"]:
    """A random order of updates in a sweep: the position of each gene, the smallest first."""
    number = bits(fold_in(key, sweep), (), jnp.uint32)
    return selection.scattered(number.astype(int), num_genes)


def attractor(
    network: Network,
    key: Key,
    start: State,
    dynamics: str = "asynchronous",
    sweeps: int | None = None,
) -> Attractor:
    """Update from `start` until nothing changes, or for at most `sweeps` sweeps.

    Args:
      network: the genes and their rules.
      key: of the orders of updates.
      start: the first state.
      dynamics: "asynchronous": one gene after the other, in a new random order for each sweep;
        "synchronous": all at once, without randomness, which may cycle.
      sweeps: 200 ("asynchronous") and 40 ("synchronous") by default.
    """
    sweeps, slots = SWEEPS[dynamics] if sweeps is None else sweeps, _slots(network)
    step = {"asynchronous": partial(_asynchronous, key), "synchronous": _synchronous}[dynamics]
    zero = jnp.zeros((), int)
    begin = _Pass(start, start, update_order(key, zero, start.size), zero, jnp.array(False))
    end = lax.while_loop(lambda p: ~p.fixed & (p.sweeps < sweeps), partial(step, slots), begin)
    return Attractor(end.now, end.fixed, end.sweeps)


class _Pass(NamedTuple):
    """The state within a sweep."""

    now: State
    old: State  # when the sweep began
    order: Int[Array, " G"]  # carried, or the compiler computes it again for each regulator
    sweeps: Int[Array, ""]  # completed
    fixed: Bool[Array, ""]  # the last of them changed nothing


def _synchronous(slots, p):
    new = _respond(slots, [_at(p.now, r) for r in slots.regulators])
    return _Pass(new, new, p.order, p.sweeps + 1, (new == p.now).all())


def _asynchronous(key, slots, p):
    """Iterate updates of all genes until they are the result of updating one after the other.

    A gene sees the new value of a regulator that is updated before it, else the old one. After k
    steps a gene is right unless a chain of more than k regulators, each updated after the one
    before, ends at it: all are after G steps, most after two or three.
    """
    order = p.order
    seen = [
        jnp.where(_at(order, r) < order, _at(p.now, r), _at(p.old, r)) for r in slots.regulators
    ]
    new = _respond(slots, seen)
    over = (new == p.now).all()
    sweeps = p.sweeps + over
    order = jnp.where(over, update_order(key, sweeps, new.size), p.order)
    return _Pass(new, jnp.where(over, new, p.old), order, sweeps, over & (new == p.old).all())


def filled(key: Key, known: Mask, active: Mask) -> State:
    """The genes that are known, and a fair coin for each of the others."""
    coins = bits(key, known.shape, jnp.uint32) >> 31 == 1
    return jnp.where(known, active, coins)


def cosine(state: State, known: Mask, active: Mask) -> Float[Array, ""]:
    """Cosine of a state and a target of 0 and 1 on the known genes; 0 where either is all 0."""
    both, own = (state & known & active).sum(), (state & known).sum()
    product = (own * (known & active).sum()).astype(float)
    return jnp.where(product > 0, both / jnp.sqrt(jnp.maximum(product, 1.0)), 0.0)
