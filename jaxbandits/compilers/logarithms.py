"""Logarithms and the inverse error function in double precision, in operations that vectorise.

On a CPU, XLA has vector code for the exponential and for single precision. A logarithm in double
precision is one function call for each number: 17 ns and more, most of the cost of drawing a
normal number.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

BITS, BIAS = 52, 1023  # number of bits of the fraction, and the offset of the exponent
FRACTION: int = (1 << BITS) - 1
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# log((1 + s) / (1 - s)) = 2 s + s R(s^2): the coefficients of R in fdlibm (Sun, 1993).
R: tuple[float, ...] = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)

# Inverse error function by three polynomials (Giles, "Approximating the erfinv function", 2010).
CENTRE: tuple[float, ...] = (
    -3.6444120640178196921e-21,
    -1.685059138182016589e-19,
    1.2858480715256400167e-18,
    1.115787767802518096e-17,
    -1.333171662854620906e-16,
    2.0972767875968561637e-17,
    6.6376381343583238325e-15,
    -4.0545662729752068639e-14,
    -8.1519341976054721522e-14,
    2.6335093153082322977e-12,
    -1.2975133253453532498e-11,
    -5.4154120542946279317e-11,
    1.051212273321532285e-09,
    -4.1126339803469836976e-09,
    -2.9070369957882005086e-08,
    4.2347877827932403518e-07,
    -1.3654692000834678645e-06,
    -1.3882523362786468719e-05,
    0.0001867342080340571352,
    -0.00074070253416626697512,
    -0.0060336708714301490533,
    0.24015818242558961693,
    1.6536545626831027356,
)
SIDE: tuple[float, ...] = (
    2.2137376921775787049e-09,
    9.0756561938885390979e-08,
    -2.7517406297064545428e-07,
    1.8239629214389227755e-08,
    1.5027403968909827627e-06,
    -4.013867526981545969e-06,
    2.9234449089955446044e-06,
    1.2475304481671778723e-05,
    -4.7318229009055733981e-05,
    6.8284851459573175448e-05,
    2.4031110387097893999e-05,
    -0.0003550375203628474796,
    0.00095328937973738049703,
    -0.0016882755560235047313,
    0.0024914420961078508066,
    -0.0037512085075692412107,
    0.005370914553590063617,
    1.0052589676941592334,
    3.0838856104922207635,
)
TAIL: tuple[float, ...] = (
    -2.7109920616438573243e-11,
    -2.5556418169965252055e-10,
    1.5076572693500548083e-09,
    -3.7894654401267369937e-09,
    7.6157012080783393804e-09,
    -1.4960026627149240478e-08,
    2.9147953450901080826e-08,
    -6.7711997758452339498e-08,
    2.2900482228026654717e-07,
    -9.9298272942317002539e-07,
    4.5260625972231537039e-06,
    -1.9681778105531670567e-05,
    7.5995277030017761139e-05,
    -0.00021503011930044477347,
    -0.00013871931833623122026,
    1.0103004648645343977,
    4.8499064014085844221,
)


def log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The logarithm, within one or two units in the last place; subnormal numbers count as 0."""
    special = jnp.where(x < jnp.finfo(x.dtype).tiny, jnp.where(x < 0, jnp.nan, -jnp.inf), x)
    return jnp.where((special > 0) & (x < jnp.inf), _by_parts(*_split(x)), special)


def log1p(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log(1 + x)`; 0 keeps its sign, because a sampler that divides by it would never end."""
    return jnp.where(x == 0.0, x, _log1p(x))


def _log1p(x):
    """`log(1 + x)`; near 0 the sum `1 + x`, in which x would be rounded away, is not used."""
    total = 1.0 + x
    near = (x > -0.29) & (x < 0.41)
    fraction, exponent = _split(total)
    found = _by_parts(jnp.where(near, x, fraction), jnp.where(near, 0.0, exponent))
    special = jnp.where(total > 0, total, jnp.where(total < 0, jnp.nan, -jnp.inf))
    special = jnp.where(x == x, special, x)
    return jnp.where((total > 0) & (total < jnp.inf), found, special)


def _split(x):
    """Fraction and exponent: `x = 2^exponent (1 + fraction)`, fraction between -0.3 and 0.42."""
    bits = lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits >> BITS) - BIAS
    part = lax.bitcast_convert_type((bits & FRACTION) | (BIAS << BITS), x.dtype)
    large = part > 1.4142135623730951
    return jnp.where(large, 0.5 * part, part) - 1.0, (exponent + large).astype(x.dtype)


def _by_parts(fraction, exponent):
    """The logarithm of `2^exponent (1 + fraction)`."""
    s = fraction / (2.0 + fraction)
    half = 0.5 * fraction * fraction
    rest = s * (half + s * s * _polynomial(R, s * s)) + exponent * LN2_LOW
    return exponent * LN2_HIGH - ((half - rest) - fraction)


def erf_inv_near_0(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Bool[Array, "..."]]:
    """The inverse of the error function where it is within 2.33 of 0, and whether it is there.

    That holds for 99.9% of all x. Elsewhere the number that is returned means nothing.
    """
    square = -x * x
    total = 1.0 + square
    fraction, exponent = _split(total)
    near = square > -0.29
    w = -_by_parts(jnp.where(near, square, fraction), jnp.where(near, 0.0, exponent))
    return _polynomial(CENTRE, w - 3.125) * x, (total > 0) & (w < 6.25)


def erf_inv(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The inverse of the error function."""
    w = -_log1p(-x * x)
    root = jnp.sqrt(w)
    outer = jnp.where(w < 16.0, _polynomial(SIDE, root - 3.25), _polynomial(TAIL, root - 5.0))
    found = jnp.where(w < 6.25, _polynomial(CENTRE, w - 3.125), outer) * x
    return jnp.where(jnp.abs(x) == 1.0, x * jnp.inf, found)


def _polynomial(coefficients, x):
    total = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


# By the names of JAX's primitives.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {"log": log, "log1p": log1p, "erf_inv": erf_inv}
