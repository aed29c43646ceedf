// Elements moved along an axis of an array (outer, n, inner).
#include "common.cuh"

namespace nnrs {

// As of `ShiftBorder` in kernels/src/kernel/shift/mod.rs.
enum { SHIFT_NEAREST, SHIFT_REFLECT };

// y[i] = x[i - by]
template <class R>
__device__ inline void shift(const void *x, int from, void *y, int to, long long size, long long n, long long inner,
                             long long by, int border, int add) {
  for (long long e = first(); e < size; e += step()) {
    long long column = e, i = divide(column, inner), outer = divide(i, n), at = i - by;
    if (border == SHIFT_NEAREST) at = at < 0 ? 0 : at < n ? at : n - 1;
    if (border == SHIFT_REFLECT) {
      at %= 2 * n;
      if (at < 0) at += 2 * n;
      if (at >= n) at = 2 * n - 1 - at;
    }
    R v = fetch_real<R>(x, from, (outer * n + at) * inner + column);
    keep_real<R>(y, to, e, add ? fetch_real<R>(y, to, e) + v : v);
  }
}

// y[i] = the sum of all that shift reads from there
template <class R>
__device__ inline void unshift(const void *x, int from, void *y, int to, long long size, long long n, long long inner,
                               long long by, int border, int add) {
  for (long long e = first(); e < size; e += step()) {
    long long column = e, i = divide(column, inner), base = divide(i, n) * n * inner + column;
    // The places from `least` to `most` show this element; when they are mirrored, two places at most.
    long long least = i + by, most = i + by;
    if (border == SHIFT_NEAREST && i == 0) least = 0;
    if (border == SHIFT_NEAREST && i == n - 1) most = n - 1;
    R sum = add ? fetch_real<R>(y, to, e) : (R)0;
    if (border == SHIFT_REFLECT) {
      for (int mirrored = 0; mirrored < 2; ++mirrored) {
        long long at = ((mirrored ? 2 * n - 1 - i : i) + by) % (2 * n);
        if (at < 0) at += 2 * n;
        if (at < n) sum += fetch_real<R>(x, from, base + at * inner);
      }
    } else {
      for (long long at = least < 0 ? 0 : least; at <= most && at < n; ++at) sum += fetch_real<R>(x, from, base + at * inner);
    }
    keep_real<R>(y, to, e, sum);
  }
}

}  // namespace nnrs

#define NNRS_SHIFT(R, suffix)                                                                                           \
  extern "C" __global__ void shift_##suffix(const void *x, int from, void *y, int to, long long size, long long n,      \
                                            long long inner, long long by, int border, int add) {                       \
    nnrs::shift<R>(x, from, y, to, size, n, inner, by, border, add);                                                    \
  }                                                                                                                     \
  extern "C" __global__ void unshift_##suffix(const void *x, int from, void *y, int to, long long size, long long n,    \
                                              long long inner, long long by, int border, int add) {                     \
    nnrs::unshift<R>(x, from, y, to, size, n, inner, by, border, add);                                                  \
  }

NNRS_SHIFT(float, f32)
NNRS_SHIFT(double, f64)
