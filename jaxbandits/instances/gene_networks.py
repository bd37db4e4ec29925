"""Boolean networks of genes: the rules that regulate them, and the states they come to rest in.

A gene sees its activators and its repressors, and each of the two groups is at one of three
levels: none of it is active, some of it, or all. A rule says, for each level of repression, which
level of activation switches the gene on. More activation never switches off and more repression
never on, which leaves 18 rules that are not constant (Yordanov et al., "A method to identify and
analyze biological programs through automated reasoning", npj Systems Biology 2016).
"""

from functools import partial, reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.random import bits, fold_in
from jaxtyping import Array, Bool, Float, Int

from ..kernels import selection

NONE, SOME, ALL, NEVER = range(4)
# The least activation that switches a gene on while none, some or all repressors are active.
RULES = np.array(
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
SWEEPS = {"asynchronous": 200, "synchronous": 40}  # by default, by the dynamics


class Network(NamedTuple):
    """G genes, each with at most `most` regulators; a slot that is not used names any gene."""

    regulators: Array  # int [G, most]
    activates: Array  # bool [G, most]
    represses: Array  # bool [G, most]
    rules: Array  # int [G] rows of `RULES`


class Attractor(NamedTuple):
    """Where a network came to rest, or was when the sweeps were over."""

    state: Array  # bool [G]
    fixed: Array  # bool []: no gene would change
    sweeps: Array  # int [] made, with the last one, which changed nothing


def needs(network: Network) -> Int[Array, "3 G"]:
    """The least activation that switches each gene on, by the level of its repression.

    Where one of the two groups is empty, a rule that asks nothing of the other would make the
    gene a constant: activators alone then have to be active, and repressors alone silent.
    """
    activated, repressed = network.activates.any(1), network.represses.any(1)
    none, *rest = jnp.asarray(RULES)[network.rules].T
    none = jnp.where(activated & ~repressed, jnp.maximum(none, SOME), none)
    none = jnp.where(repressed & ~activated, NONE, none)
    return jnp.stack([none, *rest])


class _Slots(NamedTuple):
    """A network with its slots in front, so that the compiler runs along the genes."""

    regulators: Array  # int [most, G]
    activates: Array  # bool [most, G]
    represses: Array  # bool [most, G]
    needs: Array  # int [3, G]


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
    """Whether some of a group is active, and whether all of it, of an empty one neither."""
    pairs = list(zip(seen, group, strict=True))
    some = reduce(jnp.logical_or, [x & mine for x, mine in pairs])
    return some, reduce(jnp.logical_and, [x | ~mine for x, mine in pairs]) & group.any(0)


def _at(table, places):
    """`table[places]` for places known to be in range."""
    return table.at[places].get(mode="promise_in_bounds")


def all_at_once(network: Network, state: Bool[Array, " G"]) -> Bool[Array, " G"]:
    """Each gene as its rule says, seeing the others as they are."""
    slots = _slots(network)
    return _respond(slots, [_at(state, r) for r in slots.regulators])


def update(network: Network, state: Bool[Array, " G"], gene: Int[Array, ""]) -> Bool[Array, " G"]:
    """One gene as its rule says, the others as they are."""
    own = Network(*(selection.at(table, gene)[None] for table in network))
    return state.at[gene].set(_respond(_slots(own), [_at(state, r) for r in own.regulators.T])[0])


def turns(key: Array, sweep: Int[Array, ""], num_genes: int) -> Int[Array, " G"]:
    """When each gene has its turn in a sweep: a random order, for the smallest is first."""
    number = bits(fold_in(key, sweep), (), jnp.uint32)
    return selection.scattered(number.astype(int), num_genes)


def attractor(
    network: Network,
    key: Array,
    start: Bool[Array, " G"],
    dynamics: str = "asynchronous",
    sweeps: int | None = None,
) -> Attractor:
    """Update from `start` until nothing changes, or for at most so many sweeps.

    Args:
      dynamics: "asynchronous": one gene after the other, in a new random order for each sweep;
        "synchronous": all at once, without chance, which may go round in circles.
      sweeps: 200 and 40 by default.
    """
    sweeps, slots = SWEEPS[dynamics] if sweeps is None else sweeps, _slots(network)
    step = {"asynchronous": partial(_one_by_one, key), "synchronous": _together}[dynamics]
    zero = jnp.zeros((), int)
    begin = _Pass(start, start, turns(key, zero, start.size), zero, jnp.array(False))
    end = lax.while_loop(lambda p: ~p.fixed & (p.sweeps < sweeps), partial(step, slots), begin)
    return Attractor(end.now, end.fixed, end.sweeps)


class _Pass(NamedTuple):
    """A sweep under way."""

    now: Array  # bool [G]
    old: Array  # bool [G] when it began
    turn: Array  # int [G]; carried, or the compiler computes it again for each regulator
    sweeps: Array  # int [] that are over
    fixed: Array  # bool []: the last of them changed nothing


def _together(slots, p):
    new = _respond(slots, [_at(p.now, r) for r in slots.regulators])
    return _Pass(new, new, p.turn, p.sweeps + 1, (new == p.now).all())


def _one_by_one(key, slots, p):
    """All genes at once, again and again, until the sweep that goes one by one is found.

    A gene sees the new value of a regulator whose turn came before its own, else the old one.
    After k steps the genes are right at which no chain of more than k regulators in the order of
    their turns ends: all after G steps, most after two or three.
    """
    seen = [
        jnp.where(_at(p.turn, r) < p.turn, _at(p.now, r), _at(p.old, r)) for r in slots.regulators
    ]
    new = _respond(slots, seen)
    over = (new == p.now).all()
    sweeps = p.sweeps + over
    turn = jnp.where(over, turns(key, sweeps, new.size), p.turn)
    return _Pass(new, jnp.where(over, new, p.old), turn, sweeps, over & (new == p.old).all())


def filled(key: Array, known: Bool[Array, " G"], active: Bool[Array, " G"]) -> Bool[Array, " G"]:
    """The genes that are known, and a fair coin for each of the others."""
    coins = bits(key, known.shape, jnp.uint32) >> 31 == 1
    return jnp.where(known, active, coins)


def cosine(
    state: Bool[Array, " G"], known: Bool[Array, " G"], active: Bool[Array, " G"]
) -> Float[Array, ""]:
    """Cosine of a state and a target of 0 and 1 on the genes where that is known; 0 for nothing."""
    both, mine = (state & known & active).sum(), (state & known).sum()
    product = (mine * (known & active).sum()).astype(float)
    return jnp.where(product > 0, both / jnp.sqrt(jnp.maximum(product, 1.0)), 0.0)
