/* Types and functions for the generated programs, in which a vector holds one number of each lane,
   for as many lanes as a vector register holds doubles.

   A flag is a mask of 64 bits, all set or none. Functions whose names end in _s take numbers that
   all lanes share. Loops over LANES become vector instructions where the machine has them. */

/* The compiler compares and selects from vectors wider than a register entry by entry, which is many
   times slower. */
#ifndef LANES
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX2__)
#define LANES 4
#else
#define LANES 2
#endif
#endif
/* Where a register is filled, GCC's own names of instructions can be used; Clang says that it is GCC, too. */
#if defined(__GNUC__) && !defined(__clang__)
#if LANES == 8 && defined(__AVX512F__)
#define AVX512_BY_GCC
#elif LANES == 4 && defined(__AVX__)
#define AVX_BY_GCC
#elif LANES == 2 && defined(__SSE2__)
#define SSE2_BY_GCC
#endif
#endif
#if LANES == 1
#include "one_lane.h"
#else
#include "vectors.h"
#endif

#if LANES == 8
#define PER_LANE(f, between) f(0) between() f(1) between() f(2) between() f(3) between() f(4) between() f(5) between() f(6) between() f(7)
#elif LANES == 4
#define PER_LANE(f, between) f(0) between() f(1) between() f(2) between() f(3)
#elif LANES == 2
#define PER_LANE(f, between) f(0) between() f(1)
#else
#define PER_LANE(f, between) f(0)
#endif
#define COMMA() ,
#define OR() |
#define LIST(f) {PER_LANE(f, COMMA)}
#define EACH_LANE for (int lane = 0; lane < LANES; lane++)
typedef vi64 vb64;

/* Arguments and results in XLA's memory, in which a flag is a byte. */
#define MEMORY(type) \
  INLINE v##type load_##type(const void *p, i64 at) { return *(const m##type *)((const type *)p + at); } \
  INLINE void store_##type(void *p, i64 at, v##type x) { *(m##type *)((type *)p + at) = x; }
MEMORY(f64) MEMORY(f32) MEMORY(i64) MEMORY(i32) MEMORY(u64) MEMORY(u32)
INLINE vb64 load_b64(const void *p, i64 at) {
  vb64 r; EACH_LANE r[lane] = -(i64)(((const uint8_t *)p)[at + lane] != 0); return r;
}
INLINE void store_b64(void *p, i64 at, vb64 x) { EACH_LANE ((uint8_t *)p)[at + lane] = x[lane] != 0; }

#define SAME_NUMBER(lane) x
#define OWN_ENTRY(lane) p[at[lane]][lane]
#define SHARED_ENTRY(lane) p[at[lane]]
#define FLAG(lane) m[lane]
#define BASIC_FUNCTIONS(type) \
  INLINE v##type all_##type(type x) { return VECTOR_OF(v##type, LIST(SAME_NUMBER)); } \
  template <class P> INLINE v##type gather_own_##type(P p, vi64 at) { return VECTOR_OF(v##type, LIST(OWN_ENTRY)); } \
  template <class P> INLINE v##type gather_shared_##type(P p, vi64 at) { return VECTOR_OF(v##type, LIST(SHARED_ENTRY)); } \
  INLINE type select_##type##_s(b64 m, type a, type b) { return m ? a : b; } \
  INLINE type max_##type##_s(type a, type b) { return a > b || a != a ? a : b; } \
  INLINE type min_##type##_s(type a, type b) { return a < b || a != a ? a : b; } \
  INLINE type square_##type##_s(type a) { return a * a; } \
  INLINE v##type square_##type(v##type a) { return a * a; } \
  INLINE v##type power_##type(v##type x, int n) { v##type r = x; for (int i = 1; i < n; i++) r *= x; return r; } \
  INLINE type power_##type##_s(type x, int n) { type r = x; for (int i = 1; i < n; i++) r *= x; return r; }
BASIC_FUNCTIONS(f64) BASIC_FUNCTIONS(f32) BASIC_FUNCTIONS(i64) BASIC_FUNCTIONS(i32) BASIC_FUNCTIONS(u64) BASIC_FUNCTIONS(u32)
INLINE vb64 all_b64(b64 x) { return all_i64(x); }
template <class P> INLINE vb64 gather_own_b64(P p, vi64 at) { return gather_own_i64(p, at); }
template <class P> INLINE vb64 gather_shared_b64(P p, vi64 at) { return gather_shared_i64(p, at); }
INLINE b64 max_b64_s(b64 a, b64 b) { return a | b; }
INLINE b64 min_b64_s(b64 a, b64 b) { return a & b; }
INLINE vb64 max_b64(vb64 a, vb64 b) { return a | b; }
INLINE vb64 min_b64(vb64 a, vb64 b) { return a & b; }
INLINE b64 select_b64_s(b64 m, b64 a, b64 b) { return m ? a : b; }

/* x86 selects by the sign bit; `m ? a : b` would first compare with 0. */
#define SELECT64(type) \
  INLINE v##type select_##type(vb64 m, v##type a, v##type b) { \
    return m < 0 ? a : b; }
SELECT64(f64) SELECT64(i64) SELECT64(u64) SELECT64(b64)
INLINE vi32 half_width(vb64 m) { return CONVERT(m, vi32); }
#define SELECT32(type) \
  INLINE v##type select_##type(vb64 m, v##type a, v##type b) { \
    return half_width(m) < 0 ? a : b; }
SELECT32(f32) SELECT32(i32) SELECT32(u32)

/* The larger and the smaller of two floats, the second where either is NaN: one instruction of x86,
   which GCC does not find. */
#define LARGER(type) INLINE v##type larger_##type(v##type a, v##type b)
#define SMALLER(type) INLINE v##type smaller_##type(v##type a, v##type b)
#if defined(AVX512_BY_GCC)
LARGER(f64) { return __builtin_ia32_maxpd512_mask(a, b, a, -1, 4); }
SMALLER(f64) { return __builtin_ia32_minpd512_mask(a, b, a, -1, 4); }
LARGER(f32) { return __builtin_ia32_maxps256(a, b); }
SMALLER(f32) { return __builtin_ia32_minps256(a, b); }
#elif defined(AVX_BY_GCC)
LARGER(f64) { return __builtin_ia32_maxpd256(a, b); }
SMALLER(f64) { return __builtin_ia32_minpd256(a, b); }
LARGER(f32) { return __builtin_ia32_maxps(a, b); }
SMALLER(f32) { return __builtin_ia32_minps(a, b); }
#else
LARGER(f64) { return a > b ? a : b; }
SMALLER(f64) { return a < b ? a : b; }
LARGER(f32) { return a > b ? a : b; }
SMALLER(f32) { return a < b ? a : b; }
#endif

#define MASK64(m) (m)
#define MASK32(m) CONVERT(m, vi64)
#define FLOAT_EXTREMES(type, mask_of) \
  INLINE v##type max_##type(v##type a, v##type b) { return select_##type(mask_of(a != a), a, larger_##type(a, b)); } \
  INLINE v##type min_##type(v##type a, v##type b) { return select_##type(mask_of(a != a), a, smaller_##type(a, b)); }
#define INTEGER_EXTREMES(type, mask_of) \
  INLINE v##type max_##type(v##type a, v##type b) { return select_##type(mask_of(a > b), a, b); } \
  INLINE v##type min_##type(v##type a, v##type b) { return select_##type(mask_of(a < b), a, b); }
FLOAT_EXTREMES(f64, MASK64) FLOAT_EXTREMES(f32, MASK32)
INTEGER_EXTREMES(i64, MASK64) INTEGER_EXTREMES(u64, MASK64) INTEGER_EXTREMES(i32, MASK32) INTEGER_EXTREMES(u32, MASK32)

#if defined(AVX512_BY_GCC)
typedef long long words512 __attribute__((vector_size(64)));
INLINE b64 any(vb64 m) { return __builtin_ia32_ptestmq512((words512)m, (words512)m, -1) != 0; }
#elif defined(AVX_BY_GCC)
typedef long long words256 __attribute__((vector_size(32)));
INLINE b64 any(vb64 m) { return !__builtin_ia32_ptestz256((words256)m, (words256)m); }
#else
INLINE b64 any(vb64 m) { return (PER_LANE(FLAG, OR)) != 0; }
#endif

/* Floats as whole numbers, as XLA defines it: NaN is 0, what is out of range the nearest number in it;
   the C++ language leaves both open. */
#define WHOLE(from, to, mask_of, low, high, least, most) \
  INLINE to whole_##from##_##to##_s(from x) { return x >= (from)(high) ? (to)(most) : x < (from)(low) ? (to)(least) : x == x ? (to)x : 0; } \
  INLINE v##to whole_##from##_##to(v##from x) { \
    const vb64 below = mask_of(x < all_##from((from)(low))), above = mask_of(x >= all_##from((from)(high))); \
    const vb64 outside = below | above | mask_of(x != x); \
    const v##to inside = CONVERT(select_##from(outside, all_##from(0), x), v##to); \
    return select_##to(below, all_##to((to)(least)), select_##to(above, all_##to((to)(most)), inside)); }
#define WHOLE_NUMBERS(from, mask_of) \
  WHOLE(from, i64, mask_of, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX) WHOLE(from, u64, mask_of, 0, 0x1p64, 0, ~0ull) \
  WHOLE(from, i32, mask_of, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX) WHOLE(from, u32, mask_of, 0, 0x1p32, 0, ~0u)
WHOLE_NUMBERS(f64, MASK64) WHOLE_NUMBERS(f32, MASK32)

/* Division of integers as XLA defines it, without a trap for a divisor of 0 or an overflow. */
#define INTEGER_DIVISION(type, overflow) \
  INLINE type div_##type##_s(type a, type b) { return b == 0 ? (type)-1 : (overflow) ? a : a / b; } \
  INLINE type rem_##type##_s(type a, type b) { return b == 0 ? a : (overflow) ? 0 : a % b; } \
  INLINE v##type div_##type(v##type a, v##type b) { EACH_LANE a[lane] = div_##type##_s(a[lane], b[lane]); return a; } \
  INLINE v##type rem_##type(v##type a, v##type b) { EACH_LANE a[lane] = rem_##type##_s(a[lane], b[lane]); return a; }
INTEGER_DIVISION(i64, b == -1 && a == INT64_MIN) INTEGER_DIVISION(i32, b == -1 && a == INT32_MIN) INTEGER_DIVISION(u64, 0) INTEGER_DIVISION(u32, 0)

#define UNARY(name, type, function) \
  INLINE type name##_##type##_s(type x) { return function(x); } \
  INLINE v##type name##_##type(v##type x) { EACH_LANE x[lane] = function(x[lane]); return x; }
#define BINARY(name, type, function) \
  INLINE type name##_##type##_s(type x, type y) { return function(x, y); } \
  INLINE v##type name##_##type(v##type x, v##type y) { EACH_LANE x[lane] = function(x[lane], y[lane]); return x; }
#define UNARY_FLOAT(name) UNARY(name, f64, MATH(name)) UNARY(name, f32, MATH(name##f))
#define BINARY_FLOAT(name, function) BINARY(name, f64, MATH(function)) BINARY(name, f32, MATH(function##f))
UNARY_FLOAT(exp2) UNARY_FLOAT(expm1) UNARY_FLOAT(log) UNARY_FLOAT(log1p) UNARY_FLOAT(sin) UNARY_FLOAT(cos) UNARY_FLOAT(tan)
UNARY_FLOAT(asin) UNARY_FLOAT(acos) UNARY_FLOAT(atan) UNARY_FLOAT(sinh) UNARY_FLOAT(cosh) UNARY_FLOAT(tanh) UNARY_FLOAT(asinh) UNARY_FLOAT(acosh)
UNARY_FLOAT(atanh) UNARY_FLOAT(erf) UNARY_FLOAT(erfc) UNARY_FLOAT(lgamma) UNARY_FLOAT(cbrt) UNARY_FLOAT(floor) UNARY_FLOAT(ceil) UNARY_FLOAT(rint)
UNARY_FLOAT(round)
BINARY_FLOAT(pow, pow) BINARY_FLOAT(atan2, atan2) BINARY_FLOAT(rem, fmod)
UNARY(exp, f32, MATH(expf))
UNARY(sqrt, f32, MATH(sqrtf))
#define SIGN(type) \
  INLINE type sign_##type##_s(type x) { return x > 0 ? 1 : x < 0 ? -1 : x; } \
  INLINE v##type sign_##type(v##type x) { EACH_LANE x[lane] = sign_##type##_s(x[lane]); return x; }
INLINE u64 sign_u64_s(u64 x) { return x != 0; }
INLINE u32 sign_u32_s(u32 x) { return x != 0; }
INLINE vu64 sign_u64(vu64 x) { EACH_LANE x[lane] = x[lane] != 0; return x; }
INLINE vu32 sign_u32(vu32 x) { EACH_LANE x[lane] = x[lane] != 0; return x; }
SIGN(f64) SIGN(f32) SIGN(i64) SIGN(i32)
INLINE f64 sqrt_f64_s(f64 x) { return MATH(sqrt)(x); }
#if defined(AVX512_BY_GCC)
/* The machine's own square root takes 24 cycles. This one starts from 14 correct bits and doubles
   their number twice (Goldschmidt): within one or two units in the last place. Last, one instruction
   takes x itself where x is zero or infinite. Its table has four bits for each kind of number x: 1
   takes x, 0 keeps the root. */
#define TAKE_X 1ll
#define IF_ZERO 8 /* the first of the four bits */
#define IF_INFINITE 20
INLINE vf64 sqrt_f64(vf64 x) {
  vf64 y = __builtin_ia32_rsqrt14pd512_mask(x, x, -1), g = x * y, h = y * 0.5;
  vf64 r = 0.5 - g * h;
  g += g * r; h += h * r;
  g += g * (0.5 - g * h);
  const words512 table = (words512)all_i64(TAKE_X << IF_ZERO | TAKE_X << IF_INFINITE);
  return __builtin_ia32_fixupimmpd512_mask(g, x, table, 0, -1, 4);
}
#elif defined(AVX_BY_GCC)
/* GCC does not look for vectors in long programs, see QUICKER, and would take the roots one by one. */
INLINE vf64 sqrt_f64(vf64 x) { return __builtin_ia32_sqrtpd256(x); }
#elif defined(SSE2_BY_GCC)
INLINE vf64 sqrt_f64(vf64 x) { return __builtin_ia32_sqrtpd(x); }
#else
INLINE vf64 sqrt_f64(vf64 x) { EACH_LANE x[lane] = MATH(sqrt)(x[lane]); return x; }
#endif

INLINE vf64 abs_f64(vf64 x) { return (vf64)((vi64)x & INT64_MAX); }
INLINE vf32 abs_f32(vf32 x) { return (vf32)((vi32)x & INT32_MAX); }
INLINE vi64 abs_i64(vi64 x) { return select_i64(x < 0, -x, x); }
INLINE vi32 abs_i32(vi32 x) { EACH_LANE x[lane] = x[lane] < 0 ? -x[lane] : x[lane]; return x; }
INLINE f64 abs_f64_s(f64 x) { return MATH(fabs)(x); }
INLINE f32 abs_f32_s(f32 x) { return MATH(fabsf)(x); }
INLINE i64 abs_i64_s(i64 x) { return x < 0 ? -x : x; }
INLINE i32 abs_i32_s(i32 x) { return x < 0 ? -x : x; }
#define FINITE(type, mask_of) \
  INLINE b64 is_finite_##type##_s(type x) { return -(i64)(x - x == 0); } \
  INLINE vb64 is_finite_##type(v##type x) { return mask_of(x - x == 0); }
FINITE(f64, MASK64) FINITE(f32, MASK32)

/* The exponential: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2], within two units in the last
   place; a result below the normal numbers is rounded twice. */
INLINE vf64 times_power_of_two(vf64 x, vi64 n) {
  vi64 a = (vi64)((vu64)(n + 2048) >> 1) - 1024, b = n - a; /* n / 2, as few machines shift signed numbers */
  return x * (vf64)((a + 1023) << 52) * (vf64)((b + 1023) << 52);
}
INLINE vf64 exp_f64(vf64 x) {
  vf64 low = all_f64(-760.0), high = all_f64(720.0);
  vf64 t = x < high ? x : high;
  t = t > low ? t : low;
  vf64 shift = all_f64(0x1.8p52), n = t * 0x1.71547652b82fep+0 + shift;
  vi64 whole = (vi64)n - (vi64)shift;
  n = n - shift;
  vf64 r = (t - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b3ap-40;
  vf64 p = all_f64(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = (p * r) * r + r + 1.0;
  return select_f64(x == x, times_power_of_two(p, whole), x);
}
INLINE f64 exp_f64_s(f64 x) { return MATH(exp)(x); }
#define LOGISTIC(type) \
  INLINE v##type logistic_##type(v##type x) { return (type)1 / ((type)1 + exp_##type(-x)); } \
  INLINE type logistic_##type##_s(type x) { return (type)1 / ((type)1 + exp_##type##_s(-x)); }
LOGISTIC(f64) LOGISTIC(f32)

/* The same bits as another type of the same width. */
template <class To, class From> INLINE To bits_as(From x) { union { From from; To to; } bits; bits.from = x; return bits.to; }

/* Bits of numbers without the last `drop`: to nearest, ties to even. A carry into the exponent is right. */
template <class Bits> INLINE Bits without_last(Bits bits, int drop) {
  return (bits + (((i64)1 << (drop - 1)) - 1) + ((bits >> (i64)drop) & (i64)1)) & ~(((i64)1 << drop) - 1);
}

/* A number rounded to fewer bits. */
INLINE f64 reduce_precision_f64_s(f64 x, int exponent, int mantissa) {
  if (!(x - x == 0)) return x;
  i64 bits = bits_as<i64>(x);
  int drop = 52 - mantissa;
  if (drop > 0) bits = without_last(bits, drop);
  x = bits_as<f64>(bits);
  int bias = (1 << (exponent - 1)) - 1, power = (int)((bits >> 52) & 2047) - 1023;
  return exponent >= 11 ? x : power > bias ? MATH(copysign)((f64)INFINITY, x) : power < 1 - bias ? MATH(copysign)((f64)0, x) : x;
}
INLINE f32 reduce_precision_f32_s(f32 x, int exponent, int mantissa) {
  return (f32)reduce_precision_f64_s((f64)x, exponent, mantissa);
}
INLINE vf32 reduce_precision_f32(vf32 x, int exponent, int mantissa) {
  EACH_LANE x[lane] = reduce_precision_f32_s(x[lane], exponent, mantissa);
  return x;
}
INLINE vf64 reduce_precision_f64(vf64 x, int exponent, int mantissa) {
  if (exponent >= 11 && mantissa < 52)
    return select_f64(x == x, bits_as<vf64>(without_last(bits_as<vi64>(x), 52 - mantissa)), x);
  EACH_LANE x[lane] = reduce_precision_f64_s(x[lane], exponent, mantissa);
  return x;
}

/* Threefry-2x32, 20 rounds. */
#define ROUND(n) a += b; b = a ^ ((b << n) | (b >> (32 - n)));
#define ROUNDS_1 ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define ROUNDS_2 ROUND(17) ROUND(29) ROUND(16) ROUND(24)
#define ADD_KEYS(p, q, n) a += p; b += q + n;
template <class word> INLINE void threefry(word k0, word k1, word a, word b, word *high, word *low) {
  word k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  a += k0; b += k1;
  ROUNDS_1 ADD_KEYS(k1, k2, 1) ROUNDS_2 ADD_KEYS(k2, k0, 2) ROUNDS_1 ADD_KEYS(k0, k1, 3) ROUNDS_2 ADD_KEYS(k1, k2, 4) ROUNDS_1 ADD_KEYS(k2, k0, 5)
  *high = a; *low = b;
}
INLINE vu32 bits_32(vu32 k0, vu32 k1, u64 at) {
  vu32 h, l;
  threefry(k0, k1, all_u32(at >> 32), all_u32((u32)at), &h, &l);
  return h ^ l;
}
INLINE vu64 bits_64(vu32 k0, vu32 k1, u64 at) {
  vu32 h, l;
  threefry(k0, k1, all_u32(at >> 32), all_u32((u32)at), &h, &l);
  return (CONVERT(h, vu64) << 32) | CONVERT(l, vu64);
}
INLINE u32 bits_32(u32 k0, u32 k1, u64 at) {
  u32 h, l;
  threefry(k0, k1, (u32)(at >> 32), (u32)at, &h, &l);
  return h ^ l;
}
INLINE u64 bits_64(u32 k0, u32 k1, u64 at) {
  u32 h, l;
  threefry(k0, k1, (u32)(at >> 32), (u32)at, &h, &l);
  return ((u64)h << 32) | l;
}

/* The random words at an even position and at the next one: for all lanes together, both fill a
   register. */
#if LANES > 1 && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif
#ifdef HAS_SHUFFLE
#define OF_FIRST(lane) lane
#define OF_SECOND(lane) LANES + lane
#define BOTH(a, b) __builtin_shufflevector(a, b, PER_LANE(OF_FIRST, COMMA), PER_LANE(OF_SECOND, COMMA))
#define FIRST(both) __builtin_shufflevector(both, both, PER_LANE(OF_FIRST, COMMA))
#define SECOND(both) __builtin_shufflevector(both, both, PER_LANE(OF_SECOND, COMMA))
typedef u32 u32_of_two __attribute__((vector_size(2 * LANES * sizeof(u32))));
INLINE void words_of_two(vu32 k0, vu32 k1, u64 at, vu32 *h, vu32 *l) {
  vu32 upper = all_u32(at >> 32), lower = all_u32((u32)at);
  u32_of_two high, low;
  threefry(BOTH(k0, k0), BOTH(k1, k1), BOTH(upper, upper), BOTH(lower, lower + 1), &high, &low);
  h[0] = FIRST(high); h[1] = SECOND(high); l[0] = FIRST(low); l[1] = SECOND(low);
}
#else
INLINE void words_of_two(vu32 k0, vu32 k1, u64 at, vu32 *h, vu32 *l) {
  for (int i = 0; i < 2; i++) threefry(k0, k1, all_u32(at >> 32), all_u32((u32)at + i), &h[i], &l[i]);
}
#endif
INLINE void bits_32_of_two(vu32 k0, vu32 k1, u64 at, vu32 *to) {
  vu32 h[2], l[2];
  words_of_two(k0, k1, at, h, l);
  for (int i = 0; i < 2; i++) to[i] = h[i] ^ l[i];
}
INLINE void bits_64_of_two(vu32 k0, vu32 k1, u64 at, vu64 *to) {
  vu32 h[2], l[2];
  words_of_two(k0, k1, at, h, l);
  for (int i = 0; i < 2; i++) to[i] = (CONVERT(h[i], vu64) << 32) | CONVERT(l[i], vu64);
}

/* Positions in the order that less wants, from a stable sort: short runs by insertion, longer ones
   by merging with a second array. */
#define SHORT_RUN 8
template <class P, class Less> INLINE void sort_positions(P order, P other, i64 number, Less less) {
  for (i64 i = 0; i < number; i++) {
    i64 j = i;
    for (; j % SHORT_RUN && less(i, order[j - 1]); j--) order[j] = order[j - 1];
    order[j] = i;
  }
  for (i64 run = SHORT_RUN; run < number; run *= 2) {
    for (i64 i = 0; i < number; i++) other[i] = order[i];
    for (i64 begin = 0; begin < number; begin += 2 * run) {
      i64 middle = begin + run < number ? begin + run : number;
      i64 end = middle + run < number ? middle + run : number;
      for (i64 i = begin, a = begin, b = middle; i < end; i++)
        order[i] = a == middle || (b < end && less(other[b], other[a])) ? other[b++] : other[a++];
    }
  }
}

#ifdef __CUDACC__
#define HAS_TIME() 1
#else
#include <time.h>
#include "xla/ffi/api/c_api.h"

/* Whether a step may be repeated, or another group of lanes be stepped, in this call. The host looks
   for signals between calls, so one that takes long leaves the rest to the next; no result depends
   on it. Seconds of other processes do not count. */
#ifndef CALL_NANOSECONDS
#define CALL_NANOSECONDS 50000000
#endif
#define NOT_BEGUN (-1)
static thread_local i64 began, began_working;
INLINE i64 nanoseconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (i64)t.tv_sec * 1000000000 + t.tv_nsec;
}
RARE int has_worked_little() {
  return nanoseconds(CLOCK_THREAD_CPUTIME_ID) - began_working < CALL_NANOSECONDS;
}
INLINE int HAS_TIME() {
  i64 now = nanoseconds(CLOCK_MONOTONIC);
  if (began == NOT_BEGUN) { /* the first step of a call is always made */
    began = now;
    began_working = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    return 1;
  }
  return now - began < CALL_NANOSECONDS || has_worked_little();
}

/* Called by XLA, first for the version of the interface, then for a pass over all lanes. */
typedef void program(void **in, void **out, i64 lanes, i64 at);
INLINE XLA_FFI_Error *handle_call(XLA_FFI_CallFrame *frame, program *run_block, int groups) {
  auto *extension = frame->extension_start; /* auto, because the type has another name since jax 0.12 */
  if (extension && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return 0;
  }
  void *in[frame->args.size + 1], *out[frame->rets.size + 1];
  for (i64 i = 0; i < frame->args.size; i++) in[i] = ((XLA_FFI_Buffer *)frame->args.args[i])->data;
  for (i64 i = 0; i < frame->rets.size; i++) out[i] = ((XLA_FFI_Buffer *)frame->rets.rets[i])->data;
  XLA_FFI_Buffer *first = (XLA_FFI_Buffer *)frame->args.args[0];
  i64 lanes = first->dims[first->rank - 1];
  static thread_local i64 first_block; /* that for which an earlier call had no time */
  i64 blocks = (lanes + groups * LANES - 1) / (groups * LANES), served = 0;
  began = NOT_BEGUN;
  for (i64 k = 0; k < blocks; k++) {
    run_block(in, out, lanes, (first_block + k) % blocks * groups * LANES);
    if (began == NOT_BEGUN || HAS_TIME()) served++;
  }
  if (served < blocks) first_block = (first_block + served + 1) % blocks;
  return 0;
}
#endif
