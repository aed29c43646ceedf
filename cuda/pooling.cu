// Max, sum and average pooling. Gradients are gathered by the places of x, so no two threads write one number; their order
// of summation is that of the windows.
#include "common.cuh"

namespace nnrs {

enum Divisor { ONE, PADDED, INSIDE };  // as kernels/src/kernel/pooling/cpu.rs has them

// Images of outer x input x inner.
struct Pooling {
  long long inner, divisor;
  int input[3], output[3], kernel[3], stride[3], pad[3];
};

// An element: its place along each axis, and where its plane begins in the other image, which has `other` sizes.
struct Spot {
  int at[3];
  long long plane;
};

__device__ inline Spot spot(const Pooling *p, const int (&size)[3], const int (&other)[3], long long i) {
  Spot s;
  long long inner = i;
  i = divide(inner, p->inner);
  for (int a = 2; a >= 0; --a) {
    long long at = i;
    i = divide(at, size[a]);
    s.at[a] = (int)at;
  }
  s.plane = i * (other[0] * other[1] * other[2]) * p->inner + inner;
  return s;
}

__device__ inline long long element(const Pooling *p, const int (&size)[3], const Spot &s, int d, int h, int w) {
  return s.plane + ((d * size[1] + h) * size[2] + w) * p->inner;
}

// Along each axis: places that a window sees, or windows that see a place; `first`: the window's, with padding.
struct Range {
  int from[3], to[3], first[3];
};

#define NNRS_EACH_OF(r, d, h, w)              \
  for (int d = r.from[0]; d < r.to[0]; ++d)   \
    for (int h = r.from[1]; h < r.to[1]; ++h) \
      for (int w = r.from[2]; w < r.to[2]; ++w)

__device__ inline Range window(const Pooling *p, const Spot &s) {
  Range r;
  for (int a = 0; a < 3; ++a) {
    const int first = s.at[a] * p->stride[a] - p->pad[a], end = first + p->kernel[a];
    r.first[a] = first;
    r.from[a] = first < 0 ? 0 : first;
    r.to[a] = end < p->input[a] ? end : p->input[a];
  }
  return r;
}

__device__ inline Range windows(const Pooling *p, const Spot &s) {
  Range r;
  for (int a = 0; a < 3; ++a) {
    const int at = s.at[a] + p->pad[a], before = at - p->kernel[a], last = at / p->stride[a] + 1;
    r.first[a] = 0;
    r.from[a] = before < 0 ? 0 : before / p->stride[a] + 1;
    r.to[a] = last < p->output[a] ? last : p->output[a];
  }
  return r;
}

// What the sum of a window is divided by.
__device__ inline long long count(const Pooling *p, int d, int h, int w) {
  const int at[3] = {d, h, w};
  long long n = 1;
  for (int a = 0; a < 3; ++a) {
    const bool padded = p->divisor == PADDED;
    const int low = padded ? -p->pad[a] : 0, high = p->input[a] + (padded ? p->pad[a] : 0);
    const int first = at[a] * p->stride[a] - p->pad[a], end = first + p->kernel[a];
    n *= (end < high ? end : high) - (first > low ? first : low);
  }
  return n;
}

__device__ inline void keep_place(void *places, bool wide, long long i, int place) {
  if (wide) ((u32 *)places)[i] = (u32)place;
  else ((unsigned char *)places)[i] = (unsigned char)place;
}

// The first largest number of a window, or its last NaN, where it is, and its place in the window.
template <class R>
struct Best {
  R value;
  long long at;  // -1: the window sees only padding
  int place;
};

template <class R>
__device__ inline Best<R> best_of(const Pooling *p, const Spot &s, const Range &r, const void *x, int type) {
  Best<R> best = {-NNRS_INF, -1, 0};
  NNRS_EACH_OF(r, d, h, w) {
    const long long at = element(p, p->input, s, d, h, w);
    const R v = fetch_real<R>(x, type, at);
    if (best.at >= 0 && !(v > best.value || v != v)) continue;
    best.value = v, best.at = at;
    best.place = ((d - r.first[0]) * p->kernel[1] + h - r.first[1]) * p->kernel[2] + w - r.first[2];
  }
  return best;
}

// The largest number of each window goes to y, or what g has at its place; and its place in the window to `places`.
template <class R>
__device__ inline void max_pool(const Pooling *p, const void *x, int x_type, const void *g, int g_type, void *y, int y_type,
                                void *places, int wide, long long n) {
  for (long long i = first(); i < n; i += step()) {
    const Spot s = spot(p, p->output, p->input, i);
    const Best<R> best = best_of<R>(p, s, window(p, s), x, x_type);
    if (y) keep_real<R>(y, y_type, i, g ? fetch_real<R>(g, g_type, best.at < 0 ? 0 : best.at) : best.value);
    if (places) keep_place(places, wide != 0, i, best.place);
  }
}

// The gradient of windows that share no place: each goes to its maximum; with `whole` the others of its window become 0.
template <class R>
__device__ inline void max_pool_apart(const Pooling *p, const void *x, int x_type, const void *gy, int gy_type, void *gx,
                                      int gx_type, int add, int whole, long long n) {
  for (long long i = first(); i < n; i += step()) {
    const Spot s = spot(p, p->output, p->input, i);
    const Range r = window(p, s);
    const long long best = best_of<R>(p, s, r, x, x_type).at;
    const R g = fetch_real<R>(gy, gy_type, i);
    if (whole)
      NNRS_EACH_OF(r, d, h, w) {
        const long long at = element(p, p->input, s, d, h, w);
        keep_real<R>(gx, gx_type, at, at == best ? g : (R)0);
      }
    else if (best >= 0) keep_real<R>(gx, gx_type, best, add ? fetch_real<R>(gx, gx_type, best) + g : g);
  }
}

// To each place the gradients of the windows whose maximum it has.
template <class R>
__device__ inline void max_pool_back(const Pooling *p, const void *gy, int gy_type, const void *places, int wide, void *gx,
                                     int gx_type, int add, long long n) {
  for (long long i = first(); i < n; i += step()) {
    const Spot s = spot(p, p->input, p->output, i);
    const Range r = windows(p, s);
    R sum = 0;
    NNRS_EACH_OF(r, d, h, w) {
      const long long o = element(p, p->output, s, d, h, w);
      int place = s.at[0] + p->pad[0] - d * p->stride[0];
      place = place * p->kernel[1] + s.at[1] + p->pad[1] - h * p->stride[1];
      place = place * p->kernel[2] + s.at[2] + p->pad[2] - w * p->stride[2];
      const int found = wide ? (int)((const u32 *)places)[o] : ((const unsigned char *)places)[o];
      if (found == place) sum += fetch_real<R>(gy, gy_type, o);
    }
    keep_real<R>(gx, gx_type, i, add ? fetch_real<R>(gx, gx_type, i) + sum : sum);
  }
}

template <class R>
__device__ inline void sum_pool(const Pooling *p, const void *x, int x_type, void *y, int y_type, long long n) {
  for (long long i = first(); i < n; i += step()) {
    const Spot s = spot(p, p->output, p->input, i);
    const Range r = window(p, s);
    R sum = 0;
    NNRS_EACH_OF(r, d, h, w) sum += fetch_real<R>(x, x_type, element(p, p->input, s, d, h, w));
    if (p->divisor != ONE) sum /= (R)count(p, s.at[0], s.at[1], s.at[2]);
    keep_real<R>(y, y_type, i, sum);
  }
}

template <class R>
__device__ inline void sum_pool_back(const Pooling *p, const void *gy, int gy_type, void *gx, int gx_type, int add,
                                     long long n) {
  for (long long i = first(); i < n; i += step()) {
    const Spot s = spot(p, p->input, p->output, i);
    const Range r = windows(p, s);
    R sum = 0;
    NNRS_EACH_OF(r, d, h, w) {
      R g = fetch_real<R>(gy, gy_type, element(p, p->output, s, d, h, w));
      if (p->divisor != ONE) g /= (R)count(p, d, h, w);
      sum += g;
    }
    keep_real<R>(gx, gx_type, i, add ? fetch_real<R>(gx, gx_type, i) + sum : sum);
  }
}

}  // namespace nnrs

#define NNRS_POOLING(R, suffix)                                                                                        \
  extern "C" __global__ void max_pool_##suffix(const nnrs::Pooling *p, const void *x, int x_type, const void *g,       \
                                               int g_type, void *y, int y_type, void *places, int wide, long long n) { \
    nnrs::max_pool<R>(p, x, x_type, g, g_type, y, y_type, places, wide, n);                                            \
  }                                                                                                                    \
  extern "C" __global__ void max_pool_apart_##suffix(const nnrs::Pooling *p, const void *x, int x_type, const void *gy, \
                                                     int gy_type, void *gx, int gx_type, int add, int whole,           \
                                                     long long n) {                                                    \
    nnrs::max_pool_apart<R>(p, x, x_type, gy, gy_type, gx, gx_type, add, whole, n);                                    \
  }                                                                                                                    \
  extern "C" __global__ void max_pool_back_##suffix(const nnrs::Pooling *p, const void *gy, int gy_type,               \
                                                    const void *places, int wide, void *gx, int gx_type, int add,      \
                                                    long long n) {                                                     \
    nnrs::max_pool_back<R>(p, gy, gy_type, places, wide, gx, gx_type, add, n);                                         \
  }                                                                                                                    \
  extern "C" __global__ void sum_pool_##suffix(const nnrs::Pooling *p, const void *x, int x_type, void *y, int y_type, \
                                               long long n) {                                                          \
    nnrs::sum_pool<R>(p, x, x_type, y, y_type, n);                                                                     \
  }                                                                                                                    \
  extern "C" __global__ void sum_pool_back_##suffix(const nnrs::Pooling *p, const void *gy, int gy_type, void *gx,     \
                                                    int gx_type, int add, long long n) {                               \
    nnrs::sum_pool_back<R>(p, gy, gy_type, gx, gx_type, add, n);                                                       \
  }

NNRS_POOLING(float, f32)
NNRS_POOLING(double, f64)
