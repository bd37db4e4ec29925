"""How primitives that compute act on lanes."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn

from ..jaxprs import bind, shape_of
from .interpreter import Lanes, Width, by_vmap, rule, with_lanes
from .reductions import sealed

UNROLL: int = 32  # up to this many products are written out, which vectorises over lanes

ELEMENTWISE: str = """
    abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp conj
    convert_element_type copy cos cosh digamma div eq erf erfc exp exp2 expm1 floor
    ge gt imag integer_pow is_finite le lgamma logistic lt max min mul ne neg nextafter
    not or population_count pow real reduce_precision rem round rsqrt select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor
"""
AXES_FROM_THE_FRONT: str = """
    concatenate cummax cummin cumprod cumsum rev sort squeeze
"""


@rule(*ELEMENTWISE.split())
def elementwise(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Operands of one shape (scalars are broadcast): the lanes are one more axis."""
    shape = shape_of(eqn.outvars[0])

    def fit(x, atom):
        value, axes = with_lanes(x, lanes), range(len(shape_of(atom)))
        if shape_of(atom) == shape:
            return value
        return lax.broadcast_in_dim(value, (*shape, lanes.number), (*axes, len(shape)))

    fitted = [fit(x, atom) for x, atom in zip(operands, eqn.invars, strict=True)]
    return list(map(Lanes, bind(eqn, fitted)))


@rule(*AXES_FROM_THE_FRONT.split())
def same(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Primitives whose parameters name axes from the front, which the lanes do not move."""
    return list(map(Lanes, bind(eqn, [with_lanes(x, lanes) for x in operands])))


@rule("optimization_barrier")
def barrier(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """What stands before a barrier is computed once, not again in each use."""

    def kept(x):
        plain = isinstance(x, Lanes) and not jnp.issubdtype(x.value.dtype, jax.dtypes.extended)
        return Lanes(sealed(x.value, lanes)) if plain else x

    return [kept(x) for x in operands]


@rule("broadcast_in_dim")
def broadcast_in_dim(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """The lanes are the last axis of the result too."""
    shape, axes = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    value = operands[0].value
    return [Lanes(lax.broadcast_in_dim(value, (*shape, lanes.number), (*axes, len(shape))))]


@rule("reshape")
def reshape(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Row-major order leaves the lanes where they are."""
    if eqn.params["dimensions"] is not None:
        return by_vmap(eqn, operands, lanes)
    return [Lanes(lax.reshape(operands[0].value, (*eqn.params["new_sizes"], lanes.number)))]


@rule("transpose")
def transpose(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """The other axes are exchanged."""
    order = eqn.params["permutation"]
    return [Lanes(lax.transpose(operands[0].value, (*order, len(order))))]


@rule("tile")
def tile(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """Repeated whole along the other axes."""
    return list(map(Lanes, bind(eqn, [operands[0].value], reps=(*eqn.params["reps"], 1))))


@rule("slice")
def slice_(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """All lanes give the same part."""
    p = eqn.params
    strides = None if p["strides"] is None else (*p["strides"], 1)
    value = operands[0].value
    return [
        Lanes(
            lax.slice(value, (*p["start_indices"], 0), (*p["limit_indices"], lanes.number), strides)
        )
    ]


@rule("pad")
def pad(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """With a filler that all lanes share."""
    table, filler = operands
    if isinstance(filler, Lanes):
        return by_vmap(eqn, operands, lanes)
    config = (*eqn.params["padding_config"], (0, 0, 0))
    return [Lanes(lax.pad(table.value, filler, config))]


@rule("dot_general")
def dot_general(eqn: JaxprEqn, operands: Sequence[Any], lanes: Width) -> list[Any]:
    """A shared table makes it one product of matrices for all lanes."""
    left, right = operands
    (contract, batch) = eqn.params["dimension_numbers"]
    both = isinstance(left, Lanes) and isinstance(right, Lanes)
    lengths = [shape_of(eqn.invars[0])[i] for i in contract[0]]
    if batch[0] or (both and len(lengths) != 1):
        return by_vmap(eqn, operands, lanes)
    if both:
        return [Lanes(_product(left.value, right.value, contract, lanes))]
    rest = {k: v for k, v in eqn.params.items() if k != "dimension_numbers"}
    shared_first = isinstance(right, Lanes)
    table, value = (left, right.value) if shared_first else (right, left.value)
    axes = contract if shared_first else contract[::-1]
    free = [i for i in range(table.ndim) if i not in axes[0]]
    if (*free, *axes[0]) != tuple(range(table.ndim)):
        # The product reads its left side by rows, several times as fast as by columns; sealed,
        # because the compiler would undo the transposition.
        table = sealed(lax.transpose(table, (*free, *axes[0])), lanes)
    last = tuple(range(len(free), table.ndim))
    found = lax.dot_general(table, value, ((last, axes[1]), batch), **rest)
    if shared_first:
        return [Lanes(found)]
    order = (*range(len(free), found.ndim - 1), *range(len(free)), found.ndim - 1)
    return [Lanes(lax.transpose(found, order))]


def _product(left, right, contract, lanes):
    """A product of two tables that both differ by lane: a sum of broadcast products."""
    (i,), (j,) = contract
    left, right = jnp.moveaxis(left, i, 0), jnp.moveaxis(right, j, 0)
    first = left.ndim - 2
    left = left.reshape(*left.shape[:-1], *[1] * (right.ndim - 2), left.shape[-1])
    right = right.reshape(right.shape[0], *[1] * first, *right.shape[1:])
    return _sum_of_products(left, right, lanes)


def _sum_of_products(left, right, lanes):
    """`sum over k of left[k] * right[k]`, some of them in one pass."""

    def few(left, right):
        total = left[0] * right[0]
        for k in range(1, left.shape[0]):
            total = total + left[k] * right[k]
        return total

    number = left.shape[0]
    if number <= UNROLL:
        return sealed(few(left, right), lanes)

    def block(i, total):
        parts = [lax.dynamic_slice_in_dim(x, i * UNROLL, UNROLL) for x in (left, right)]
        return total + few(*(sealed(x, lanes) for x in parts))

    over = number % UNROLL
    shape = jnp.broadcast_shapes(left.shape[1:], right.shape[1:])
    begin = jnp.zeros(shape, jnp.result_type(left, right))
    if over:
        begin = begin + few(left[number - over :], right[number - over :])
    return sealed(lax.fori_loop(0, number // UNROLL, block, begin), lanes)
