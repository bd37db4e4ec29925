/* The types of lanes.h as the vectors of GCC and Clang: one number of each of LANES lanes. */

#include <stddef.h>
#include <stdint.h>

typedef double f64;
typedef float f32;
typedef int64_t i64;
typedef int32_t i32;
typedef uint64_t u64;
typedef uint32_t u32;
typedef int64_t b64;

#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline, cold)) /* called rarely: not in the way of the rest */
#define BLOCK static
/* The compiler's builtins, because including <math.h> takes as long as compiling most programs. */
#define MATH(name) __builtin_##name
#define INFINITY __builtin_inf()
#define NAN __builtin_nan("")

#define VECTOR(type) \
  typedef type v##type __attribute__((vector_size(LANES * sizeof(type)))); \
  typedef type m##type __attribute__((vector_size(LANES * sizeof(type)), aligned(sizeof(type))));
VECTOR(f64) VECTOR(f32) VECTOR(i64) VECTOR(i32) VECTOR(u64) VECTOR(u32)

#define CONVERT(x, type) converted(x, (type *)0)
template <class From, class To> INLINE To converted(From x, To *) { return __builtin_convertvector(x, To); }
#if defined(__x86_64__) && !defined(__AVX512DQ__)
/* These machines convert entry by entry. Here the lower 32 bits become the last bits of a double,
   2^52 + low, and the upper 32 bits those of another, 2^84 + 2^63 + 2^32 high. Subtracting the
   constants is exact; only the last addition rounds. */
INLINE vf64 converted(vi64 x, vf64 *) {
  vu64 low = ((vu64)x & 0xffffffffull) | 0x4330000000000000ull;
  vu64 high = ((vu64)x >> 32) ^ 0x4530000080000000ull;
  return ((vf64)high - (0x1p84 + 0x1p63 + 0x1p52)) + (vf64)low;
}
#endif
#define VECTOR_OF(type, list) (type)list
#define ENTRY(type, array, at) ((type *)((array) + (at)[lane]))[lane]
