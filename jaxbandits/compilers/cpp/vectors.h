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

#define CONVERT(x, type) __builtin_convertvector(x, type)
#define VECTOR_OF(type, list) (type)list
#define ENTRY(type, array, at) ((type *)((array) + (at)[lane]))[lane]
