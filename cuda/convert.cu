// Conversion between element types, and constants. The rules are those of kernels/src/simd/convert.rs.
#include "common.cuh"

extern "C" __global__ void convert(void *y, int to, const void *x, int from, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    switch (from) {
      case BOOL: keep_whole(y, to, i, (long long)(((const unsigned char *)x)[i] != 0)); break;
      case U8: keep_whole(y, to, i, (long long)((const unsigned char *)x)[i]); break;
      case I8: keep_whole(y, to, i, (long long)((const signed char *)x)[i]); break;
      case I16: keep_whole(y, to, i, (long long)((const short *)x)[i]); break;
      case U16: keep_whole(y, to, i, (long long)((const u16 *)x)[i]); break;
      case I32: keep_whole(y, to, i, (long long)((const int *)x)[i]); break;
      case U32: keep_whole(y, to, i, (long long)((const u32 *)x)[i]); break;
      case I64: keep_whole(y, to, i, ((const long long *)x)[i]); break;
      case U64: keep_whole(y, to, i, ((const u64 *)x)[i]); break;
      default: keep(y, to, i, fetch<double>(x, from, i));
    }
  }
}

extern "C" __global__ void fill(void *y, int type, double v, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) keep(y, type, i, v);
}

// y += x, in double: what is stored in less is rounded once.
extern "C" __global__ void add(void *y, int to, const void *x, int from, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) keep(y, to, i, fetch<double>(y, to, i) + fetch<double>(x, from, i));
}

// Labels and indices from numbers that are none: cut towards zero, NaN is the smallest.
extern "C" __global__ void indices(long long *y, const void *x, int from, long long n) {
  using namespace nnrs;
  const long long least = -0x7fffffffffffffffll - 1;
  for (long long i = first(); i < n; i += step()) {
    double v = fetch<double>(x, from, i);
    y[i] = v != v ? least : cut<long long>(v, least, 0x7fffffffffffffffll);
  }
}
