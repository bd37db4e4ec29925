"""Choosing arms: maxima, top-m and ranks whose ties favour no index.

Ties are broken by `order`, a random permutation drawn once per replication. A single tie has then
the same law as with a fresh coin, and no more random numbers are spent.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, Shaped, UInt32

from ..types import Whole
from .linalg import scaling
from .primitives import called_as, primitive
from .tracing import traced_once

PICK_BEST, PICK_ARGMAX = primitive("pick_best"), primitive("pick_argmax")
FEW_LARGEST = 4  # so many maxima take less time than sorting all values
ALL_SORTED_BELOW = 30  # values for each that is wanted; of more, only some blocks are sorted
COARSE = 20  # bits of values that are compared coarsely
SOME = 8  # rounding errors; in double precision these are below every tolerance in use
ROUNDED, ROUNDED_SINGLE = 12, 4  # bits left to rounding when values are compared finely


@traced_once
def tie_order(key: Key[Array, ""], num_arms: int) -> Int[Array, " K"]:
    """A random priority for each arm, 0 to K - 1; the larger wins a tie."""
    return _ranks(lots(key, num_arms))


@traced_once
def lots(key: Key[Array, ""], num_arms: int) -> UInt32[Array, " K"]:
    """Random numbers, no two of them equal: the last bits are the arm's index."""
    low = (1 << max(1, num_arms - 1).bit_length()) - 1
    bits = jax.random.bits(key, (num_arms,), jnp.uint32)
    return (bits & jnp.uint32(~low & 0xFFFFFFFF)) | jnp.arange(num_arms, dtype=jnp.uint32)


def scattered(number: Int[Array, ""], arms: int | Int[Array, " K"]) -> Int[Array, " K"]:
    """Pseudo-random priorities below 2^31, one for each arm, fixed by `number` alone (no key).

    They break ties in computations that all replications share. Two rounds of multiplying and
    shifting, as in the finaliser of MurmurHash3 (Appleby, 2011).

    Args:
      number: any whole number, such as that of the draw; another one gives another order.
      arms: how many arms, or their indices.
    """
    listed = jnp.arange(arms) if isinstance(arms, int) else arms
    ids = listed.astype(jnp.uint32) * jnp.uint32(0x9E3779B9)
    mixed = number.astype(jnp.uint32) * jnp.uint32(0x85EBCA6B) + ids
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> shift)) * jnp.uint32(factor)
    return ((mixed ^ (mixed >> 16)) >> 1).astype(jnp.int32)


class Best(NamedTuple):
    """A maximum and where it is."""

    arm: Int[Array, ""]
    value: Float[Array, ""]


def best(values: Float[Array, " K"]) -> Best:
    """The largest value and its first index; a NaN, if there is one, and its index."""
    value, arm = pick_best(values)
    return Best(arm, value)


def coarse(values: Float[Array, " K"]) -> Float[Array, " K"]:
    """Values rounded to six digits, so that values equal up to rounding errors tie."""
    return lax.reduce_precision(values, jnp.finfo(values.dtype).nexp, COARSE)


def fine(values: Float[Array, " K"]) -> Float[Array, " K"]:
    """Values rounded to twelve digits, in single precision to six."""
    kind = jnp.finfo(values.dtype)
    left = ROUNDED if values.dtype == jnp.float64 else ROUNDED_SINGLE
    return lax.reduce_precision(values, kind.nexp, kind.nmant - left)


def at_least(part: float, values: Float[Array, "..."]) -> float:
    """The relative difference up to which values count as equal: `part`, or more if rounding is."""
    return max(part, SOME * float(jnp.finfo(values.dtype).eps))


def comparable(estimates: Float[Array, " K"], active: Bool[Array, " K"]) -> Float[Array, " K"]:
    """Scores that rank the active arms by estimates and tie up to rounding; -inf for others.

    A score is the estimate plus a constant, rounded to twelve digits of the largest estimate:
    estimates near 0 then tie as well.
    """
    largest = jnp.where(active, jnp.abs(estimates), 0.0).max()
    return jnp.where(active, fine(estimates + 2.0 * largest), -jnp.inf)


@jax.custom_jvp
def _best(values):
    """The largest value and its first index."""

    def above(one, two):
        return (one[0] > two[0]) | ((one[0] == two[0]) & (one[1] < two[1]))

    return _reduce((values,), above)


@_best.defjvp
def _change_of_best(values, changes):
    """The value changes as that entry does, the index does not."""
    value, arm = _best(*values)
    return (value, arm), (at(*changes, arm), _no_change())


@jax.custom_jvp
def _argmax(values, order):
    """The index of the largest value; ties go to the larger `order`."""

    def above(one, two):
        return (one[0] > two[0]) | ((one[0] == two[0]) & (one[1] > two[1]))

    return _reduce((values, order), above)[-1]


@_argmax.defjvp
def _change_of_argmax(tables, changes):
    return _argmax(*tables), _no_change()


def _no_change():
    """The derivative of a whole number, as JAX represents it."""
    return np.zeros((), jax.dtypes.float0)


# Primitives, because the lane compilers implement them in another way.
pick_best: Callable[[Array], tuple[Array, Array]] = called_as(PICK_BEST)(_best)
pick_argmax: Callable[[Array, Array], Array] = called_as(PICK_ARGMAX)(_argmax)


def argmax(values: Float[Array, " K"], order: Int[Array, " K"]) -> Int[Array, ""]:
    """Index of the largest value, or of a NaN if there is one; ties go to the larger priority."""
    return pick_argmax(values, order)


def _reduce(tables, above):
    """The entry of `tables` that is `above` all others, with its index as the last item.

    One reduction over all tables at once gives value and index; `argmax` and a look-up would cost
    one more pass and a gather.
    """

    def better(one, two):
        wins = above(one, two) | (one[0] != one[0])
        return tuple(jnp.where(wins, a, b) for a, b in zip(one, two, strict=True))

    tables = (*tables, lax.iota(int, tables[0].size))
    lowest = (-jnp.inf, *[-1] * (len(tables) - 2), 0)
    begin = tuple(jnp.array(x, t.dtype) for x, t in zip(lowest, tables, strict=True))
    return lax.reduce(tables, begin, better, (0,))


def most_drawn(
    counts: Int[Array, " K"], values: Float[Array, " K"], order: Int[Array, " K"]
) -> Int[Array, ""]:
    """The arm with most draws; ties go to the larger value, then to the larger priority."""
    return argmax(jnp.where(counts == counts.max(), values, -jnp.inf), order)


def sample(key: Key[Array, ""], chances: Float[Array, " K"]) -> Int[Array, ""]:
    """An arm at random, with probabilities proportional to `chances`."""
    upto = jnp.cumsum(chances)
    mark = jax.random.uniform(key, dtype=chances.dtype) * upto[-1]
    return jnp.minimum((upto <= mark).sum(), chances.size - 1)


def at(table: Array, arm: Int[Array, "..."]) -> Array:
    """`table[arm]` for indices known to be in range, without the checks of brackets."""
    return table.at[arm].get(mode="promise_in_bounds")


def computed_once(values: Shaped[Array, "*shape"]) -> Shaped[Array, "*shape"]:
    """The same values, in memory: for comparisons of values with themselves.

    XLA may compute cheap operations anew in each use, and round them in another way there, as a
    product and a sum take one instruction or two. A value would then be larger than itself, or no
    value equal to the largest, and a mask of the m best arms would have fewer members.
    """
    return lax.optimization_barrier(values)


@traced_once
def furthest_behind(
    counts: Int[Array, " K"], shares: Float[Array, " K"], order: Int[Array, " K"] | None = None
) -> Int[Array, ""]:
    """The arm with the smallest `counts / shares` among those with a positive share.

    Ties go to the larger priority, or to the first arm where there is no `order`.
    """
    wanted = shares > 0
    behind = -counts / jnp.where(wanted, shares, 1.0)
    values = computed_once(jnp.where(wanted, behind, -jnp.inf))
    if order is None:
        return best(values).arm
    # Two passes: `argmax`, a single one, would compute the values anew at each comparison.
    return best(jnp.where(values == values.max(), order, -1).astype(values.dtype)).arm


FEW_COMPARED = 12  # arms; up to so many, a branch costs more than it saves
MOST_COMPARED = 64  # up to so many arms K^2 comparisons, which vectorise, beat a sort


@traced_once
def rank(values: Shaped[Array, " K"], order: Int[Array, " K"]) -> Int[Array, " K"]:
    """Rank of each value, 0 for the largest; ties go to the larger priority."""
    num = values.shape[0]
    if num > MOST_COMPARED:
        return _inverse(jnp.lexsort((order, values))[::-1])
    values = computed_once(values)
    order = order.astype(values.dtype)  # one width of numbers for the whole pass

    def ahead(j):
        return (values[j] > values) | ((values[j] == values) & (order[j] > order))

    # The barrier keeps the compiler from repeating the pass over all pairs at each use.
    return lax.optimization_barrier(sum(ahead(j).astype(int) for j in range(num)))


def _ranks(lots: Shaped[Array, " K"]) -> Int[Array, " K"]:
    """`rank` of values of which no two are equal."""
    num = lots.shape[0]
    if num > MOST_COMPARED:
        return _inverse(jnp.argsort(lots)[::-1])
    below = sum((lots[j] > lots).astype(jnp.int32) for j in range(num))
    return lax.optimization_barrier(jnp.astype(below, int))


def _inverse(permutation: Int[Array, " K"]) -> Int[Array, " K"]:
    indices = jnp.arange(permutation.size)
    return jnp.zeros_like(indices).at[permutation].set(indices)


def largest(values: Float[Array, " n"], number: int) -> Int[Array, " m"]:
    """Indices of the `number` largest values, at most n, the largest first; ties in their order."""
    if number > FEW_LARGEST:
        if values.size < ALL_SORTED_BELOW * number:
            return jnp.argsort(-values)[:number]
        indices, some = _in_leading_blocks(values, number)
        return indices[jnp.argsort(-some)[:number]]
    chosen = []
    for _ in range(number):
        chosen.append(best(values).arm)
        values = jnp.where(jnp.arange(values.size) == chosen[-1], -jnp.inf, values)
    return jnp.stack(chosen)


def _in_leading_blocks(values, number):
    """Indices in their order, and values, among which are the `number` largest ones.

    Each of them lies in one of as many blocks, those with the largest maxima: any other block comes
    after `number` values at least. To sort maxima and a few blocks takes a tenth of the time.
    """
    width = math.isqrt(values.size // number)
    rest = -values.size % width
    table = jnp.pad(values, (0, rest), constant_values=-jnp.inf).reshape(-1, width)
    leading = jnp.sort(jnp.argsort(-jnp.nanmax(table, axis=1))[:number])
    indices = leading[:, None] * width + jnp.arange(width)
    return indices.ravel(), table[leading].ravel()


@traced_once
def top(
    values: Float[Array, " K"], order: Int[Array, " K"], m: int | Int[Array, ""]
) -> Bool[Array, " K"]:
    """Mask of the m largest values; give -inf to arms that must not be taken."""
    num = values.shape[0]
    if not FEW_COMPARED < num <= MOST_COMPARED:
        return rank(values, order) < m
    values = computed_once(values)
    # Breaking ties takes two more comparisons per pair, and only ties for the last rank matter.
    larger = lax.optimization_barrier(sum((values[j] > values).astype(int) for j in range(num)))
    first = larger < m
    return lax.cond(first.sum() == m, lambda: first, lambda: rank(values, order) < m)


@traced_once
def shared_equally(alive: Bool[Array, " K"], total: Whole, key: Key[Array, ""]) -> Int[Array, " K"]:
    """`total` draws shared equally among `alive`; the remainder goes to arms drawn at random."""
    num_alive = alive.sum()
    # Eliminated arms rank last, in any order; a tie with the last arm alive changes nothing.
    chances = jnp.where(alive, lots(key, alive.size), 0)
    extra = alive & (_ranks(chances) < total % num_alive)
    return jnp.where(alive, total // num_alive + extra, 0)


@traced_once
def first_basis(arms: Float[Array, "K d"], tol: float = 1e-6) -> Int[Array, " d"]:
    """The first d linearly independent arms in index order.

    An arm counts as independent if its part outside the span of those chosen exceeds `tol` times
    its length, once columns are scaled to one size. Where the arms do not span, the last entries
    repeat the last arm chosen.
    """
    (arms,), (num_arms, dim) = scaling.equilibrated(arms), arms.shape

    def visit(carry, arm):
        basis, chosen, found = carry
        x = arms[arm]
        rest = x - basis.T @ (basis @ x)
        rest = rest - basis.T @ (basis @ rest)  # a second pass keeps the basis orthogonal
        length = jnp.linalg.norm(rest)
        new = (length > tol * jnp.linalg.norm(x)) & (found < dim)
        slots = (jnp.arange(dim) >= found) & new  # later slots repeat until overwritten
        unit = rest / jnp.where(new, length, 1.0)
        basis = jnp.where(((jnp.arange(dim) == found) & new)[:, None], unit, basis)
        return (basis, jnp.where(slots, arm, chosen), found + new), None

    begin = (jnp.zeros((dim, dim), arms.dtype), jnp.zeros(dim, int), jnp.zeros((), int))
    (_, chosen, _), _ = jax.lax.scan(visit, begin, jnp.arange(num_arms))
    return chosen


@traced_once
def pivoted_basis(arms: Float[Array, "K d"], tol: float = 1e-6) -> Int[Array, " d"]:
    """Independent arms, each the farthest from the span of those before it.

    These are the pivots of a QR decomposition of `arms^T` with column pivoting. A distance of at
    most `tol` times the longest arm counts as 0; where the arms do not span, the last entries
    repeat the last arm.
    """
    dim = arms.shape[1]
    longest = jnp.sqrt((arms**2).sum(1).max())

    def take(carry, slot):
        rest, chosen = carry
        farthest = best((rest**2).sum(1))
        row, length = at(rest, farthest.arm), jnp.sqrt(farthest.value)
        new = length > tol * longest
        unit = row / jnp.where(new, length, 1.0)
        rest = rest - jnp.where(new, (rest @ unit)[:, None] * unit[None, :], 0.0)
        chosen = jnp.where((jnp.arange(dim) >= slot) & new, farthest.arm, chosen)
        return (rest, chosen), None

    (_, chosen), _ = jax.lax.scan(take, (arms, jnp.zeros(dim, int)), jnp.arange(dim))
    return chosen
