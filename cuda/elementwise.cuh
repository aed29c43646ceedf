// What the printed element-wise kernels stand on: element types, layouts, and the operations that CUDA C has no word for.
//
// No header is included, so NVRTC compiles this without a toolkit beside it. Compile with --fmad=false: the CPU does not
// fuse multiplications with additions either, and these kernels wait for memory, not for arithmetic.
#ifndef NNRS_ELEMENTWISE
#define NNRS_ELEMENTWISE

namespace nnrs {

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// ---- Element types. Half types are stored in 16 bits and computed in float.

struct half { u16 bits; };
struct bfloat16 { u16 bits; };

// Double to float such that a later rounding to 16 bits gives what rounding the double at once would: the last bit says
// that something was cut off (round to odd).
__device__ inline float narrow(double x) {
  float f = (float)x;
  double back = f;
  if (back == x || x != x) return f;
  u32 bits = __float_as_uint(f);
  if (fabs(back) > fabs(x)) bits -= 1;
  return __uint_as_float(bits | 1);
}

__device__ inline float narrow(float x) { return x; }

// Kernels that are compiled for the very device have an instruction for it. (The others are stored for old and new devices
// alike.)
#if defined(NNRS_GENERATED) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ inline bfloat16 to_bfloat16(float x) {
  bfloat16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
#else
__device__ inline bfloat16 to_bfloat16(float x) {
  u32 bits = __float_as_uint(x);
  if (x != x) return {(u16)((bits >> 16) | 0x40)};
  return {(u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
#endif

__device__ inline float to_float(bfloat16 h) { return __uint_as_float((u32)h.bits << 16); }

#ifdef __CUDA_ARCH__
__device__ inline half to_half(float x) {
  half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}

__device__ inline float to_float(half h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
}
#else
// The same by hand, for tests that compile this as C++.
__device__ inline half to_half(float x) {
  u32 bits = __float_as_uint(x), a = bits & 0x7fffffff;
  u16 sign = (u16)((bits >> 16) & 0x8000);
  if (a > 0x7f800000) return {(u16)(sign | 0x7e00)};
  if (a >= 0x47800000) return {(u16)(sign | 0x7c00)};
  if (a < 0x38800000) {
    // Subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the last bits.
    return {(u16)(sign | (__float_as_uint(__uint_as_float(a) + 0.5f) - 0x3f000000))};
  }
  return {(u16)(sign | ((a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13))};
}

__device__ inline float to_float(half h) {
  u32 a = h.bits & 0x7fff, sign = (u32)(h.bits & 0x8000) << 16;
  if (a >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | (a & 0x3ff) << 13);
  float x = (float)(a & 0x3ff) * 0x1p-24f;
  if (a >= 0x400) x = __uint_as_float((a << 13) + 0x38000000);
  return __uint_as_float(__float_as_uint(x) | sign);
}
#endif

__device__ inline float load(const float *x, long long i) { return x[i]; }
__device__ inline double load(const double *x, long long i) { return x[i]; }
__device__ inline float load(const half *x, long long i) { return to_float(x[i]); }
__device__ inline float load(const bfloat16 *x, long long i) { return to_float(x[i]); }

__device__ inline void put(float *y, long long i, float v) { y[i] = v; }
__device__ inline void put(double *y, long long i, double v) { y[i] = v; }
__device__ inline void put(half *y, long long i, float v) { y[i] = to_half(v); }
__device__ inline void put(bfloat16 *y, long long i, float v) { y[i] = to_bfloat16(v); }

// Stores v, or adds it to what is there; a null y is an output that is not asked for.
template <class T, class R>
__device__ inline void store(T *y, long long i, R v, bool add) {
  if (y) put(y, i, add ? load(y, i) + v : v);
}

// ---- Layouts.

// Neighbouring axes that all inputs walk alike are merged by the host, so this is plenty.
const int AXES = 12;

// Where the inputs' elements are. Outputs are dense, with the joint shape of the inputs.
template <int INPUTS>
struct Layout {
  long long n;                     // elements of an output
  long long axes;                  // axes in use; 0: all inputs are dense too
  long long size[AXES];            // sizes of the axes, the last one fastest
  long long stride[INPUTS][AXES];  // in elements; 0 where an input is broadcast

  // Offsets of element i in all inputs.
  __device__ inline void offsets(long long i, long long (&at)[INPUTS]) const {
    for (int k = 0; k < INPUTS; ++k) at[k] = axes ? 0 : i;
    if (!axes) return;
    // Division of 32-bit numbers is several times faster.
    if (n <= 0xffffffffll) walk<u32>(i, at);
    else walk<u64>(i, at);
  }

  template <class U>
  __device__ inline void walk(long long i, long long (&at)[INPUTS]) const {
    U rest = (U)i;
#pragma unroll 1  // a fourth of the code
    for (long long a = axes - 1; a >= 0; --a) {
      U size_a = (U)size[a], next = rest / size_a;
      for (int k = 0; k < INPUTS; ++k) at[k] += (long long)(rest - next * size_a) * stride[k][a];
      rest = next;
    }
  }
};

__device__ inline long long first() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
__device__ inline long long step() { return gridDim.x * (long long)blockDim.x; }

// ---- Operations.

// -1 or 1; zeros and NaN as they are.
template <class R>
__device__ inline R sign(R x) {
  return x > 0 ? (R)1 : x < 0 ? (R)-1 : x;
}

template <class R>
__device__ inline R sigmoid(R x) {
  return 1 / (1 + exp(-x));
}

template <class R>
__device__ inline R round_f16(R x) {
  return to_float(to_half(narrow(x)));
}

template <class R>
__device__ inline R round_bf16(R x) {
  return to_float(to_bfloat16(narrow(x)));
}

}  // namespace nnrs

#define NNRS_INF __uint_as_float(0x7f800000u)
#define NNRS_NAN __uint_as_float(0x7fc00000u)

#endif
