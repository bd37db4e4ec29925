"""Rules for arithmetic, changes of shape, and products of tables."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import JaxprEqn
from jaxtyping import Array

from .. import logarithms
from ..jaxprs import bind, shape_of
from ..keys import is_key
from .interpreter import LaneContext, PerLane, by_vmap, rule, with_lanes
from .reductions import materialised

UNROLL: int = 32  # so many products are written out in one expression, which vectorises over lanes

ELEMENTWISE: str = """
    abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp conj
    convert_element_type copy cos cosh digamma div eq erf erfc exp exp2 expm1 floor
    ge gt imag integer_pow is_finite le lgamma logistic lt max min mul ne neg nextafter
    not or population_count pow real reduce_precision rem round rsqrt select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor
"""
SAME_AXES: str = """
    concatenate cummax cummin cumprod cumsum rev sort squeeze
"""


@rule(*ELEMENTWISE.split())
def elementwise(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Operands of one shape, or scalars, which are broadcast: the lanes are one more axis."""
    shape = shape_of(eqn.outvars[0])
    # The others take a number beside tables and broadcast it without an operation of their own.
    takes_numbers = eqn.primitive is not lax.select_n_p

    def fit(x, atom):
        own = shape_of(atom)
        if isinstance(x, PerLane):
            x, axes = x.value, (*range(len(own)), len(shape))
            return x if own == shape else lax.broadcast_in_dim(x, (*shape, x.shape[-1]), axes)
        if takes_numbers and not own:
            return x
        x = x if isinstance(x, jax.Array) else jnp.asarray(x)
        return lax.broadcast_in_dim(x, (*shape, lanes.number), tuple(range(len(own))))

    fitted = [fit(x, atom) for x, atom in zip(operands, eqn.invars, strict=True)]
    return list(map(PerLane, bind(eqn, fitted)))


# Jitted, so that JAX traces each once for a shape and a program holds each once.
LOGARITHMS: dict[str, Callable[[Array], Array]] = {
    name: jax.jit(function) for name, function in logarithms.FUNCTIONS.items()
}


@rule(*logarithms.FUNCTIONS)
def logarithm(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """In double precision the functions of this package, otherwise those of the compiler."""
    value = operands[0].value
    if value.dtype != jnp.float64:
        return elementwise(eqn, operands, lanes)
    return [PerLane(LOGARITHMS[eqn.primitive.name](value))]


@rule(*SAME_AXES.split())
def same_axes(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Primitives whose parameters name axes, which stay the same as the lane axis is the last."""
    return list(map(PerLane, bind(eqn, [with_lanes(x, lanes) for x in operands])))


@rule("optimization_barrier")
def barrier(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """What goes through a barrier is computed once, not again in each use."""

    def once(x):
        numbers = isinstance(x, PerLane) and not is_key(x.value.dtype)
        return PerLane(materialised(x.value, lanes.unit)) if numbers else x

    return [once(x) for x in operands]


@rule("broadcast_in_dim")
def broadcast_in_dim(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The lanes are the last axis of the result too."""
    shape, axes = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    value = operands[0].value
    return [PerLane(lax.broadcast_in_dim(value, (*shape, lanes.number), (*axes, len(shape))))]


@rule("reshape")
def reshape(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The lanes stay the last axis, because entries keep their row-major order."""
    if eqn.params["dimensions"] is not None:
        return by_vmap(eqn, operands, lanes)
    return [PerLane(lax.reshape(operands[0].value, (*eqn.params["new_sizes"], lanes.number)))]


@rule("transpose")
def transpose(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The other axes are permuted."""
    order = eqn.params["permutation"]
    return [PerLane(lax.transpose(operands[0].value, (*order, len(order))))]


@rule("tile")
def tile(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The table is repeated along the other axes."""
    return list(map(PerLane, bind(eqn, [operands[0].value], reps=(*eqn.params["reps"], 1))))


@rule("slice")
def slice_(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """The slice is the same in all lanes."""
    p = eqn.params
    strides = None if p["strides"] is None else (*p["strides"], 1)
    value = operands[0].value
    return [
        PerLane(
            lax.slice(value, (*p["start_indices"], 0), (*p["limit_indices"], lanes.number), strides)
        )
    ]


@rule("pad")
def pad(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Padding by a number that all lanes share."""
    table, filler = operands
    if isinstance(filler, PerLane):
        return by_vmap(eqn, operands, lanes)
    config = (*eqn.params["padding_config"], (0, 0, 0))
    return [PerLane(lax.pad(table.value, filler, config))]


@rule("dot_general")
def dot_general(eqn: JaxprEqn, operands: Sequence[Any], lanes: LaneContext) -> list[Any]:
    """Where one table is shared, one product of matrices serves all lanes."""
    left, right = operands
    (contract, batch) = eqn.params["dimension_numbers"]
    both = isinstance(left, PerLane) and isinstance(right, PerLane)
    lengths = [shape_of(eqn.invars[0])[i] for i in contract[0]]
    if batch[0] or (both and len(lengths) != 1):
        return by_vmap(eqn, operands, lanes)
    if both:
        return [PerLane(_product(left.value, right.value, contract, lanes))]
    options = {k: v for k, v in eqn.params.items() if k != "dimension_numbers"}
    shared_first = isinstance(right, PerLane)
    table, value = (left, right.value) if shared_first else (right, left.value)
    axes = contract if shared_first else contract[::-1]
    free = [i for i in range(table.ndim) if i not in axes[0]]
    if (*free, *axes[0]) != tuple(range(table.ndim)):
        # XLA's product is several times faster where it reads the left table by rows. Without
        # `materialised` the compiler would undo the transposition.
        table = materialised(lax.transpose(table, (*free, *axes[0])), lanes.unit)
    last = tuple(range(len(free), table.ndim))
    found = lax.dot_general(table, value, ((last, axes[1]), batch), **options)
    if shared_first:
        return [PerLane(found)]
    order = (*range(len(free), found.ndim - 1), *range(len(free)), found.ndim - 1)
    return [PerLane(lax.transpose(found, order))]


def _product(left, right, contract, lanes):
    """The product of two tables that both differ by lane: a sum of products of slices."""
    (i,), (j,) = contract
    left, right = jnp.moveaxis(left, i, 0), jnp.moveaxis(right, j, 0)
    first = left.ndim - 2
    left = left.reshape(*left.shape[:-1], *[1] * (right.ndim - 2), left.shape[-1])
    right = right.reshape(right.shape[0], *[1] * first, *right.shape[1:])
    return _sum_of_products(left, right, lanes)


@jax.jit  # traced once for shapes, however often they occur
def _written_out(left, right):
    """`sum over k of left[k] * right[k]`."""
    total = left[0] * right[0]
    for k in range(1, left.shape[0]):
        total = total + left[k] * right[k]
    return total


def _sum_of_products(left, right, lanes):
    """`sum over k of left[k] * right[k]`, in blocks of `UNROLL` products."""
    number = left.shape[0]
    if number <= UNROLL:
        return materialised(_written_out(left, right), lanes.unit)

    def block(i, total):
        parts = [lax.dynamic_slice_in_dim(x, i * UNROLL, UNROLL) for x in (left, right)]
        return total + _written_out(*(materialised(x, lanes.unit) for x in parts))

    rest = number % UNROLL
    shape = jnp.broadcast_shapes(left.shape[1:], right.shape[1:])
    initial = jnp.zeros(shape, jnp.result_type(left, right))
    if rest:
        initial = initial + _written_out(left[number - rest :], right[number - rest :])
    return materialised(lax.fori_loop(0, number // UNROLL, block, initial), lanes.unit)
