// The upper or lower triangles of matrices.
#include "common.cuh"

namespace nnrs {

template <class R>
__device__ inline void trilu(const void *x, int from, void *y, int to, long long size, long long rows, long long columns,
                             long long k, int upper, int add) {
  for (long long i = first(); i < size; i += step()) {
    long long column = i, r = divide(column, columns);
    divide(r, rows);
    bool kept = upper ? column - r >= k : column - r <= k;
    R v = kept ? fetch_real<R>(x, from, i) : (R)0;
    keep_real<R>(y, to, i, add ? fetch_real<R>(y, to, i) + v : v);
  }
}

}  // namespace nnrs

#define NNRS_TRILU(R, suffix)                                                                                      \
  extern "C" __global__ void trilu_##suffix(const void *x, int from, void *y, int to, long long size, long long rows, \
                                            long long columns, long long k, int upper, int add) {                  \
    nnrs::trilu<R>(x, from, y, to, size, rows, columns, k, upper, add);                                            \
  }

NNRS_TRILU(float, f32)
NNRS_TRILU(double, f64)
