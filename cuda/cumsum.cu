// Sums along an axis up to each element. An array is (outer, n, inner), a line what lies along the axis.
#include "common.cuh"

namespace nnrs {

template <class R>
__device__ inline void store(void *y, int to, long long at, R v, int add) {
  keep_real<R>(y, to, at, add ? fetch_real<R>(y, to, at) + v : v);
}

// A block a line of neighbours: as many elements as there are threads at a time, each of which adds what is 1, 2, 4, ...
// places before it.
template <class R>
__device__ inline void cumsum_lines(const void *x, int from, void *y, int to, long long lines, long long n, long long inner,
                                    int exclusive, int reverse, int add) {
  NNRS_SHARED(R, sums, 256);
  int t = threadIdx.x, size = blockDim.x;
  for (long long line = blockIdx.x; line < lines; line += gridDim.x) {
    R before = 0;
    for (long long k = 0; k < n; k += size) {
      long long i = k + t, at = line * n + (reverse ? n - 1 - i : i);
      sums[t] = i < n ? fetch_real<R>(x, from, at) : (R)0;
      for (int d = 1; d < size; d *= 2) {
        __syncthreads();
        R other = t >= d ? (R)sums[t - d] : (R)0;
        __syncthreads();
        sums[t] = (R)sums[t] + other;
      }
      __syncthreads();
      if (i < n) store<R>(y, to, at, exclusive ? (t > 0 ? before + (R)sums[t - 1] : before) : before + (R)sums[t], add);
      before += (R)sums[size - 1];
      __syncthreads();
    }
  }
}

// A thread a line.
template <class R>
__device__ inline void cumsum_columns(const void *x, int from, void *y, int to, long long lines, long long n,
                                      long long inner, int exclusive, int reverse, int add) {
  for (long long line = first(); line < lines; line += step()) {
    long long column = line, base = divide(column, inner) * n * inner;
    R sum = 0;
    for (long long k = 0; k < n; ++k) {
      long long at = base + column + (reverse ? n - 1 - k : k) * inner;
      R before = sum;
      sum += fetch_real<R>(x, from, at);
      store<R>(y, to, at, exclusive ? before : sum, add);
    }
  }
}

}  // namespace nnrs

#define NNRS_CUMSUM(R, suffix)                                                                                            \
  extern "C" __global__ void cumsum_lines_##suffix(const void *x, int from, void *y, int to, long long lines,             \
                                                   long long n, long long inner, int exclusive, int reverse, int add) {   \
    nnrs::cumsum_lines<R>(x, from, y, to, lines, n, inner, exclusive, reverse, add);                                      \
  }                                                                                                                       \
  extern "C" __global__ void cumsum_columns_##suffix(const void *x, int from, void *y, int to, long long lines,           \
                                                     long long n, long long inner, int exclusive, int reverse, int add) { \
    nnrs::cumsum_columns<R>(x, from, y, to, lines, n, inner, exclusive, reverse, add);                                    \
  }

NNRS_CUMSUM(float, f32)
NNRS_CUMSUM(double, f64)
