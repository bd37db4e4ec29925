import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against import LANES, by_native, same
from jax import lax

from jaxbandits.compilers.cpp import program

RNG = np.random.default_rng(0)
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 1e300, -1e-300, 7.25]
PAIRS = np.array([(a, b) for a in ODD for b in ODD]).reshape(9, LANES, 2).transpose(2, 0, 1)


def integers(dtype):
    """Integers of a dtype with its extremes, zeros and pairs whose division would trap."""
    info = np.iinfo(dtype)
    a = RNG.integers(info.min, info.max, (4, LANES), dtype, endpoint=True)
    b = RNG.integers(max(info.min, -9), 9, (4, LANES)).astype(dtype)
    a[0, :6] = [info.min, info.max, 0, info.min, 1, 7]
    b[0, :6] = [info.max, info.min, 0, 2, 0, 3]
    if info.min < 0:
        b[0, 0] = -1
    b[1] = np.arange(LANES) % 7
    return a, b


def compared(a, b):
    return a == b, a != b, a < b, a <= b, a > b, a >= b


def on_floats(a, b):
    return (
        (a + b, a - b, a * b, a / b, lax.rem(a, b), -a, compared(a, b)),
        (jnp.maximum(a, b), jnp.minimum(a, b), lax.max(a, b), lax.min(b, a)),
        (jnp.abs(a), lax.sign(a), lax.square(a), jnp.isfinite(a), jnp.isnan(a), jnp.isinf(b)),
        (jnp.floor(a), jnp.ceil(a), jnp.round(a), lax.round(a), jnp.sqrt(a), lax.rsqrt(a)),
        (jnp.where(a < b, a, b), jnp.where(a > 0, 1.0, b), a % b, jnp.floor_divide(a, b)),
        [lax.integer_pow(a, p) for p in (1, 2, 3, 5, -1, -2, -3)],
    )


def on_shared_numbers(n):
    """The same operations on numbers that all lanes share."""
    x = jnp.arange(-4, 5).astype(n.dtype)
    bad = (x / x) * 0 + 1 / (x + 2)  # NaN in the middle, an infinity
    return n, on_floats(bad, x), on_floats(x, bad), jnp.clip(x, bad, 2.0)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_floats_and_nan_equal_vmap(dtype):
    with np.errstate(over="ignore"):
        a, b = PAIRS.astype(dtype)
    same(on_floats, a, b)
    same(on_shared_numbers, a[0])


def test_the_zeroth_power_is_one():
    a = jnp.asarray(PAIRS[0])
    same(lambda a: (lax.integer_pow(a, 0), lax.integer_pow(a.astype(jnp.float32), 0)), a)


def on_signs(a):
    results = (-a, jnp.abs(a), lax.sign(a), jnp.sqrt(jnp.abs(a) * lax.sign(a)), jnp.round(a))
    results += (jnp.floor(a), jnp.ceil(a), a * -1.0, a * 0.0, lax.integer_pow(a, 3), a * a)
    return [lax.bitcast_convert_type(x, jnp.int64) for x in results]


def test_zeros_keep_their_sign():
    x = np.array([0.0, -0.0, 0.25, -0.25, 4.0, -0.0, 0.0, 2.25] * 2)
    same(on_signs, x)


WHOLE = [jnp.int64, jnp.uint64, jnp.int32, jnp.uint32]
BOUNDS = [2.0**p for p in (31, 32, 63, 64)]
FAR = [*ODD, *BOUNDS, *(-x for x in BOUNDS), *(np.nextafter(x, 0) for x in BOUNDS), 1e19, -0.9]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_become_the_nearest_whole_numbers_in_range_and_nan_becomes_0(dtype):
    with np.errstate(over="ignore"):
        far = np.array(FAR, dtype)
    whole = lambda x: [x.astype(kind) for kind in WHOLE]  # noqa: E731
    same(whole, np.resize(far, (2, LANES)))
    shared = lambda: far * (jnp.arange(far.size) > -1).astype(dtype)  # noqa: E731
    same(lambda n: (n, whole(shared())), np.ones(LANES))
    found = by_native(lambda x: x.astype(jnp.int64), jnp.array([np.nan, np.inf, -np.inf, 1e19] * 4))
    assert found[:4].tolist() == [0, 2**63 - 1, -(2**63), 2**63 - 1]


def on_integers(a, b):
    width = a.dtype.itemsize * 8
    by = jnp.abs(b.astype(jnp.int64) % width).astype(a.dtype)
    signed = (lax.sign(a), jnp.abs(a)) if a.dtype.kind == "i" else ()
    return (
        (a + b, a - b, a * b, -a, ~a, a & b, a | b, a ^ b, compared(a, b), signed),
        (lax.div(a, b), lax.rem(a, b), lax.max(a, b), lax.min(a, b), a // (b | 1), a % (b | 1)),
        (lax.shift_left(a, by), lax.shift_right_logical(a, by), a >> by, a << 3, a >> 1),
        (
            lax.clamp(b, a, b + 3),
            jnp.where(a > b, a, b),
            [lax.integer_pow(a, p) for p in (0, 2, 3)],
        ),
    )


def on_shared_integers(a, b):
    i = jnp.arange(-3, 6).astype(a.dtype)
    return on_integers(a, b), on_integers(i, i[::-1] - 3), on_integers(a[0], i[0])


SOMETIMES = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in (np.int32, np.uint64)]


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, *SOMETIMES])
def test_integers_equal_vmap(dtype):
    same(on_shared_integers, *integers(dtype))


def test_division_by_zero_and_overflow_do_not_trap():
    a, b = (x[0] for x in integers(np.int64))
    quotient, rest = by_native(lambda a, b: (lax.div(a, b), lax.rem(a, b)), a, b)
    assert (quotient[0], rest[0]) == (np.iinfo(int).min, 0)
    np.testing.assert_array_equal(quotient[b == 0], -1)
    np.testing.assert_array_equal(rest[b == 0], a[b == 0])


def test_signs_of_unsigned_numbers_equal_vmap():
    same(lambda a: (lax.sign(a), lax.sign(a.astype(jnp.uint64))), integers(np.uint32)[0])


def on_flags(p, q, x):
    i = jnp.arange(6) % 2 == 0
    return (
        (p & q, p | q, p ^ q, ~p, p == q, p != q, jnp.where(p, q, ~q), jnp.where(q, x, 2.0)),
        (lax.max(p, q), lax.min(p, q), p.any(), p.all(), p.sum(), q.any(0), (p & i).sum()),
        (p.astype(int), p.astype(float), p.astype(jnp.uint32), p.astype(jnp.float32), p * x),
        (i.astype(float), i.astype(int).sum(), ~i, i & p, i.any(), jnp.where(i, x, -x), x != 0),
        (p.prod(), jnp.cumsum(p), p.mean(), jnp.count_nonzero(p), x.astype(bool)),
    )


FLAGS = RNG.random((2, 6, LANES)) < 0.6


def test_booleans_equal_vmap():
    same(on_flags, *FLAGS, np.round(RNG.normal(size=(6, LANES))))


def test_comparisons_of_booleans_equal_vmap():
    i = np.arange(6) % 2 == 0
    same(lambda p, q: (compared(p, q), compared(p, jnp.arange(6) < 3), p < i), *FLAGS)


def test_extremes_of_booleans_are_the_first_ones():
    def first(p, q):
        i = jnp.arange(6) > 2
        return (p.argmax(), p.argmin(), (p | q).argmax(), (p & ~p).argmax(), i.argmax() + 0 * p[0])

    same(first, *FLAGS)


def conversions(x, i, u):
    types = jnp.float64, jnp.float32, jnp.int64, jnp.int32, jnp.bool_
    small = jnp.arange(5) - 2
    return (
        [x.astype(t) for t in types],
        [i.astype(t) for t in (*types, jnp.uint32, jnp.uint64)],
        [u.astype(t) for t in types],
        [small.astype(t) for t in (*types, jnp.uint32, jnp.uint64)],
        [(small + 0.5).astype(t) for t in types],
        (lax.bitcast_convert_type(x, jnp.int64), lax.bitcast_convert_type(x, jnp.uint64)),
        lax.bitcast_convert_type(x.astype(jnp.float32), jnp.int32),
        lax.bitcast_convert_type(u, jnp.float32),
        lax.bitcast_convert_type(small * 2**40 + 2**52, jnp.float64),
        lax.bitcast_convert_type(small.astype(float), jnp.int64),
    )


def test_conversions_equal_vmap():
    x = RNG.normal(size=(5, LANES)) * 1e5
    i = RNG.integers(-(2**40), 2**40, (5, LANES))
    i[0] = RNG.integers(-3, 3, LANES)
    u = RNG.integers(0, 2**30, (5, LANES)).astype(np.uint32)
    same(conversions, x, i, u)


def test_integers_become_the_nearest_floats():
    ends = [0, 1, -1, 2**52, 2**53 + 1, -(2**53) - 1, 2**53 + 3, 2**32 - 1, -(2**32), -(2**32) - 1]
    ends += [2**63 - 1, -(2**63), 2**63 - 513, 2**63 - 512, 2**62 + 256, 2**62 + 257]
    some = RNG.integers(-(2**63), 2**63 - 1, (40, LANES)) >> RNG.integers(0, 64, (40, LANES))
    i = np.concatenate([some, [ends]])
    found = by_native(lambda i: i.astype(float), i)
    np.testing.assert_array_equal(found, i.astype(np.float64))


def choices(x, i, p):
    cases = x, 2 * x, -x
    which = jnp.clip(i, 0, 2)
    of_all = jnp.arange(4) % 3
    return (
        lax.select_n(which.astype(jnp.int32), *cases),
        lax.select_n(which, i, i + 10, i * i),
        lax.select_n(of_all.astype(jnp.int32), *cases),
        lax.select_n(of_all, of_all, of_all + 5, of_all * 7),
        lax.select_n(which[0].astype(jnp.int32), *cases),
        lax.select_n(which, p, ~p, p & (x > 0)),
        lax.select_n(p, x.astype(jnp.float32), -x.astype(jnp.float32)),
        lax.select_n(p[0], i.astype(jnp.int32), -i.astype(jnp.int32)),
        (lax.clamp(0.0, x, 1.0), lax.clamp(-x, x, x + 1), jnp.clip(i, 1, 2), jnp.clip(x, None, 0)),
        lax.clamp(x[0], x, x[0] + 1),
    )


def test_selections_equal_vmap():
    x, i = RNG.normal(size=(4, LANES)), RNG.integers(0, 3, (4, LANES))
    x[0, :3] = np.nan, np.inf, -np.inf
    same(choices, x, i, RNG.random((4, LANES)) < 0.5)


def coarse(x):
    i = jnp.arange(40.0) - 20
    widths = (8, 23), (5, 10), (8, 7), (11, 52), (11, 30)
    return [[lax.reduce_precision(y, *w) for w in widths] for y in (x, 7.3 * i, 1e19 * i)]


def test_reduced_precision_equals_vmap():
    x = RNG.normal(size=(30, LANES)) * np.exp(RNG.normal(size=(30, LANES)) * 30)
    x[:, :5] = np.inf, -np.inf, np.nan, 0.0, -0.0
    # Ties, and what rounds to an infinity.
    x[:4, 5] = 1 + 2.0**-24, 1 + 3 * 2.0**-24, 65520.0, np.finfo(float).max
    same(coarse, x, rtol=0)


def test_halves_are_rounded_as_by_numpy():
    x = np.arange(LANES) / 2 - 3
    rounded = by_native(lambda x: (lax.round(x), jnp.round(x), jnp.rint(-x)), x)
    np.testing.assert_array_equal(rounded[0], np.trunc(x + np.copysign(0.5, x)))
    np.testing.assert_array_equal(rounded[1], np.round(x))
    np.testing.assert_array_equal(rounded[2], np.round(-x))


def test_reduced_precision_of_float32_equals_vmap():
    same(lambda x: lax.reduce_precision(x, 5, 10), RNG.normal(size=LANES).astype(np.float32))


@pytest.mark.parametrize("lanes", [16, 48])
def test_quotients_of_a_table_by_one_number_equal_vmap(lanes):
    def quotients(x, y):
        return x / y, x / y[None], x / 3.0, x / x[1], jnp.arange(1.0, 8.0) / 3.0, (x[:2] / y)

    x, y = RNG.normal(size=(7, lanes)), RNG.normal(size=lanes)
    y[:4] = 0.0, np.inf, -np.inf, np.nan
    x[0], x[1, 4] = 0.0, 0.0
    same(quotients, x, y, rtol=4e-16)


def test_results_have_the_dtypes_of_jax():
    def types(x):
        return [(x * 0).astype(t) + jnp.ones((), t) for t in (jnp.float32, jnp.int32, jnp.uint64)]

    found = by_native(types, np.arange(16.0))
    assert [x.dtype for x in found] == [jnp.float32, jnp.int32, jnp.uint64]
    assert all((np.asarray(x) == 1).all() for x in jax.tree.leaves(found))


@pytest.mark.skipif(shutil.which("clang++") is None, reason="needs clang++")
def test_clang_compiles_bits_of_what_lanes_share(monkeypatch):
    monkeypatch.setenv("CXX", "clang++")

    def one(x):
        def add(k, x):
            bits = lax.bitcast_convert_type(1.5 * k, jnp.int64) & -(2**40)
            return x + lax.bitcast_convert_type(bits, float)

        return lax.fori_loop(0, 3, add, x)

    assert "bits_as<f64>" in program.write(jax.make_jaxpr(one)(1.0)).text
    same(one, np.arange(float(LANES)))
