/* The types of lanes.h for one lane to a thread: CUDA C++, or the C++ of a CPU where GPUs are
   absent. A vector is a class with one number, since compilers for GPUs have no vector types. */

typedef double f64;
typedef float f32;
typedef long long i64;
typedef int i32;
typedef unsigned long long u64;
typedef unsigned u32;
typedef long long b64;

#ifdef __CUDACC__
typedef unsigned char uint8_t;
#define MEMBER __device__ __forceinline__
#define INLINE static __device__ __forceinline__
#define RARE static __device__ __noinline__
#define BLOCK INLINE
#define MATH(name) name
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define NAN __longlong_as_double(0x7ff8000000000000ll)
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffll
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <stddef.h>
#include <stdint.h>
#define MEMBER inline __attribute__((always_inline))
#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline, cold)) /* called rarely: not in the way of the rest */
#define BLOCK static
#define MATH(name) __builtin_##name
#define INFINITY __builtin_inf()
#define NAN __builtin_nan("")
#endif

/* Memory on the chip that CHIP_LANES threads of a block share, or memory of each thread. */
#ifdef CHIP_LANES
#define ON_CHIP(bytes) extern __shared__ f64 chip_memory[]; char *const on_chip = (char *)chip_memory;
#define CHIP_LANE threadIdx.x
#else
#define ON_CHIP(bytes) f64 chip_memory[(bytes) / 8]; char *const on_chip = (char *)chip_memory;
#define CHIP_LANES 1
#define CHIP_LANE 0
#endif

/* The flag that a comparison gives is as wide as what is compared. */
template <int bytes> struct Integer;
template <> struct Integer<4> { typedef i32 type; };
template <> struct Integer<8> { typedef i64 type; };

template <class T> struct One {
  T x;
  One() = default;
  MEMBER One(T x) : x(x) {}
  MEMBER T &operator[](int) { return x; }
  MEMBER const T &operator[](int) const { return x; }
  MEMBER explicit operator bool() const { return x != 0; }
  /* The same bits as another type. */
  template <class U> MEMBER explicit operator One<U>() const {
    static_assert(sizeof(T) == sizeof(U), "types of one width");
    union { T from; U to; } bits;
    bits.from = x;
    return One<U>(bits.to);
  }
  MEMBER One operator-() const { return One(-x); }
  MEMBER One operator~() const { return One(~x); }
#define ARITHMETIC(sign) \
  friend MEMBER One operator sign(One a, One b) { return One(a.x sign b.x); } \
  MEMBER One &operator sign##=(One b) { x = x sign b.x; return *this; }
  ARITHMETIC(+) ARITHMETIC(-) ARITHMETIC(*) ARITHMETIC(/) ARITHMETIC(&) ARITHMETIC(|) ARITHMETIC(^) ARITHMETIC(<<) ARITHMETIC(>>)
  typedef typename Integer<sizeof(T)>::type Flag;
#define COMPARISON(sign) friend MEMBER One<Flag> operator sign(One a, One b) { return One<Flag>(-(Flag)(a.x sign b.x)); }
  COMPARISON(<) COMPARISON(>) COMPARISON(<=) COMPARISON(>=) COMPARISON(==) COMPARISON(!=)
};
#define VECTOR(type) typedef One<type> v##type, m##type;
VECTOR(f64) VECTOR(f32) VECTOR(i64) VECTOR(i32) VECTOR(u64) VECTOR(u32)

template <class U, class T> INLINE U converted(One<T> a) { return U((decltype(U::x))a.x); }
#define CONVERT(x, type) converted<type>(x)
#define VECTOR_OF(type, list) type list
#define ENTRY(type, array, at) (array)[(at)[lane]][lane]

/* An array in the memory of all lanes: neighbouring lanes hold the same entry side by side. */
template <class T> struct Spread {
  T *first;
  i64 lanes;
  MEMBER Spread(void *memory, i64 lanes, i64 at) : first((T *)memory + at), lanes(lanes) {}
  MEMBER T &operator[](i64 i) const { return first[i * lanes]; }
  friend MEMBER Spread operator+(Spread a, i64 i) { a.first += i * a.lanes; return a; }
};
