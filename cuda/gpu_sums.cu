// Sums of what several devices have, as they lie in rows one after the other: from the first row to the last.
#include "common.cuh"

namespace nnrs {

// Half types are summed in float and rounded once.
template <class R>
__device__ inline void sum_real(void *y, int type, const void *x, long long rows, long long n, long long by) {
  for (long long i = first(); i < n; i += step()) {
    R sum = fetch_real<R>(x, type, i);
    for (long long row = 1; row < rows; ++row) sum += fetch_real<R>(x, type, row * n + i);
    keep_real<R>(y, type, i, by == 1 ? sum : sum / (R)by);
  }
}

// Whole numbers wrap around, and quotients are cut off towards zero. Long is the type of 64 bits with T's sign.
template <class T, class Long>
__device__ inline void sum_whole(void *y, const void *x, long long rows, long long n, long long by) {
  const T *from = (const T *)x;
  for (long long i = first(); i < n; i += step()) {
    u64 sum = 0;
    for (long long row = 0; row < rows; ++row) sum += (u64)from[row * n + i];
    T total = (T)sum;
    ((T *)y)[i] = by == 1 ? total : (T)((Long)total / (Long)by);
  }
}

__device__ inline void any(void *y, const void *x, long long rows, long long n) {
  const unsigned char *from = (const unsigned char *)x;
  for (long long i = first(); i < n; i += step()) {
    unsigned char found = 0;
    for (long long row = 0; row < rows; ++row) found |= from[row * n + i];
    ((unsigned char *)y)[i] = found != 0;
  }
}

}  // namespace nnrs

// y may be one of the rows.
extern "C" __global__ void sum_rows(void *y, int type, const void *x, long long rows, long long n, long long by) {
  using namespace nnrs;
  switch (type) {
    case BOOL: any(y, x, rows, n); break;
    case I8: sum_whole<signed char, long long>(y, x, rows, n, by); break;
    case U8: sum_whole<unsigned char, u64>(y, x, rows, n, by); break;
    case I16: sum_whole<short, long long>(y, x, rows, n, by); break;
    case U16: sum_whole<u16, u64>(y, x, rows, n, by); break;
    case I32: sum_whole<int, long long>(y, x, rows, n, by); break;
    case U32: sum_whole<u32, u64>(y, x, rows, n, by); break;
    case I64: sum_whole<long long, long long>(y, x, rows, n, by); break;
    case U64: sum_whole<u64, u64>(y, x, rows, n, by); break;
    case F64: sum_real<double>(y, type, x, rows, n, by); break;
    default: sum_real<float>(y, type, x, rows, n, by);
  }
}

extern "C" __global__ void scale(void *x, int type, double factor, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) keep(x, type, i, fetch<double>(x, type, i) * factor);
}
