// What all kernels stand on: element types chosen at run time, shared memory, sums over a block.
#ifndef NNRS_COMMON
#define NNRS_COMMON

#include "elementwise.cuh"

namespace nnrs {

// sum + x y in one rounding where the device has it: for products of matrices. Elsewhere nothing is fused (--fmad=false).
#ifdef NNRS_EMULATE
__device__ inline float mad(float x, float y, float sum) { return x * y + sum; }
__device__ inline double mad(double x, double y, double sum) { return x * y + sum; }
#else
__device__ inline float mad(float x, float y, float sum) { return fmaf(x, y, sum); }
__device__ inline double mad(double x, double y, double sum) { return fma(x, y, sum); }
#endif

// Numbers of DType in kernels/src/base/dtype.rs.
enum Type { BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64 };

// Element i of an array of `type` as R, float or double.
template <class R>
__device__ inline R fetch(const void *x, int type, long long i) {
  switch (type) {
    case BOOL: return (R)(((const unsigned char *)x)[i] != 0);
    case U8: return (R)((const unsigned char *)x)[i];
    case I8: return (R)((const signed char *)x)[i];
    case I16: return (R)((const short *)x)[i];
    case U16: return (R)((const u16 *)x)[i];
    case I32: return (R)((const int *)x)[i];
    case U32: return (R)((const u32 *)x)[i];
    case I64: return (R)((const long long *)x)[i];
    case U64: return (R)((const u64 *)x)[i];
    case F16: return (R)load((const half *)x, i);
    case BF16: return (R)load((const bfloat16 *)x, i);
    case F32: return (R)((const float *)x)[i];
    default: return (R)((const double *)x)[i];
  }
}

// v cut towards zero; what does not fit becomes the nearest number that does, NaN 0.
template <class I>
__device__ inline I cut(double v, I least, I most) {
  if (v != v) return 0;
  if (v <= (double)least) return least;
  if (v >= (double)most) return most;
  return (I)v;
}

__device__ inline void keep(void *y, int type, long long i, double v) {
  switch (type) {
    case BOOL: ((unsigned char *)y)[i] = v != 0; break;
    case I8: ((signed char *)y)[i] = cut<signed char>(v, -128, 127); break;
    case U8: ((unsigned char *)y)[i] = cut<unsigned char>(v, 0, 255); break;
    case I16: ((short *)y)[i] = cut<short>(v, -32768, 32767); break;
    case U16: ((u16 *)y)[i] = cut<u16>(v, 0, 65535); break;
    case I32: ((int *)y)[i] = cut<int>(v, -2147483647 - 1, 2147483647); break;
    case U32: ((u32 *)y)[i] = cut<u32>(v, 0, 0xffffffffu); break;
    case I64: ((long long *)y)[i] = cut<long long>(v, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll); break;
    case U64: ((u64 *)y)[i] = cut<u64>(v, 0, 0xffffffffffffffffull); break;
    case F16: put((half *)y, i, narrow(v)); break;
    case BF16: put((bfloat16 *)y, i, narrow(v)); break;
    case F32: ((float *)y)[i] = (float)v; break;
    default: ((double *)y)[i] = v;
  }
}

// The same for whole numbers, which keep their low bits. I is long long or u64.
template <class I>
__device__ inline void keep_whole(void *y, int type, long long i, I v) {
  switch (type) {
    case BOOL: ((unsigned char *)y)[i] = v != 0; break;
    case I8:
    case U8: ((unsigned char *)y)[i] = (unsigned char)v; break;
    case I16:
    case U16: ((u16 *)y)[i] = (u16)v; break;
    case I32:
    case U32: ((u32 *)y)[i] = (u32)v; break;
    case I64:
    case U64: ((u64 *)y)[i] = (u64)v; break;
    case F32: ((float *)y)[i] = (float)v; break;
    default: keep(y, type, i, (double)v);
  }
}

// The same two for floating-point types alone: less code where it stands often.
template <class R>
__device__ inline R fetch_real(const void *x, int type, long long i) {
  switch (type) {
    case F32: return (R)((const float *)x)[i];
    case F16: return (R)load((const half *)x, i);
    case BF16: return (R)load((const bfloat16 *)x, i);
    default: return (R)((const double *)x)[i];
  }
}

template <class R>
__device__ inline void keep_real(void *y, int type, long long i, R v) {
  switch (type) {
    case F32: ((float *)y)[i] = (float)v; break;
    case F16: put((half *)y, i, narrow(v)); break;
    case BF16: put((bfloat16 *)y, i, narrow(v)); break;
    default: ((double *)y)[i] = (double)v;
  }
}

// i / n and, in i, the rest; by division of 32 bits where that does, which is several times faster.
__device__ inline long long divide(long long &i, long long n) {
  const long long q = (u64)(i | n) >> 32 ? i / n : (long long)((u32)i / (u32)n);
  i -= q * n;
  return q;
}

}  // namespace nnrs

#ifndef NNRS_NOINLINE
#define NNRS_NOINLINE __noinline__
#endif

// Shared memory of a block. The emulated device checks each index, and that what is read was written.
#ifndef NNRS_SHARED
#define NNRS_SHARED(T, name, n) __shared__ T name[n]
#endif

// The kernel template `stem` for every float type, as stem_f32 and so on.
#define NNRS_FLOATS(INSTANCE) \
  INSTANCE(float, f32)        \
  INSTANCE(double, f64)       \
  INSTANCE(nnrs::half, f16)   \
  INSTANCE(nnrs::bfloat16, bf16)

#endif
