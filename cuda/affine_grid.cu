// Grids of coordinates from -1 to 1, mapped by affine maps.
#include "common.cuh"

namespace nnrs {

__device__ inline double coordinate(long long i, long long n, int corners) {
  if (!corners) return (double)(2 * i + 1 - n) / (double)n;
  return n > 1 ? (double)(2 * i - (n - 1)) / (double)(n - 1) : 0;
}

template <class R>
__device__ inline void affine_grid(const void *theta, int type, void *y, long long count, long long depth,
                                   long long height, long long width, int dims, int corners) {
  for (long long e = first(); e < count; e += step()) {
    long long row = e;
    long long i = divide(row, dims);
    long long h = divide(i, width);
    long long z = divide(h, height);
    const long long b = divide(z, depth), base = (b * dims + row) * (dims + 1);
    const double at[3] = {coordinate(i, width, corners), coordinate(h, height, corners), coordinate(z, depth, corners)};
    R sum = 0;
    for (int k = 0; k < dims; ++k) sum += fetch_real<R>(theta, type, base + k) * (R)at[k];
    keep_real<R>(y, type, e, sum + fetch_real<R>(theta, type, base + dims));
  }
}

}  // namespace nnrs

#define NNRS_GRID(R, suffix)                                                                                     \
  extern "C" __global__ void affine_grid_##suffix(const void *theta, int type, void *y, long long count,         \
                                                  long long depth, long long height, long long width, int dims,  \
                                                  int corners) {                                                 \
    nnrs::affine_grid<R>(theta, type, y, count, depth, height, width, dims, corners);                            \
  }

NNRS_GRID(float, f32)
NNRS_GRID(double, f64)
