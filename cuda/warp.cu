// Images read at places that an array says, and the elements that they are read from with their weights.
#include "common.cuh"

namespace nnrs {

enum Padding { ZERO, REPEAT, REFLECT };

struct Warp {
  long long channels;
  int channel_last;
  long long from[3], to[3];
  int dims, flow, nearest, padding, corners, order[3];
  // The places are those of a kernel of so many columns, if it has any; what follows is of height and width.
  long long columns, stride[2], pad[2], dilation[2];

  __device__ long long image() const { return from[0] * from[1] * from[2]; }
  __device__ long long places() const { return to[0] * to[1] * to[2]; }
  __device__ int taps() const { return nearest ? 1 : 1 << dims; }

  // The place on axis a, and its derivative by v.
  __device__ double place(int a, double i, double v, double *by) const {
    const double n = (double)from[a];
    double p;
    if (flow) p = i + v, *by = 1;
    else if (corners) p = (v + 1) / 2 * (n - 1), *by = (n - 1) / 2;
    else p = ((v + 1) * n - 1) / 2, *by = n / 2;
    if (padding == ZERO) return p;
    if (padding == REFLECT) {
      const double first = corners ? 0 : -0.5, length = corners ? n - 1 : n;
      if (length == 0) {
        *by = 0;
        return 0 * p;
      }
      const double away = fabs(p - first), turns = floor(away / length), rest = away - turns * length;
      if (p < first) *by = -*by;
      if (turns - 2 * floor(turns / 2) == 0) p = first + rest;
      else p = first + length - rest, *by = -*by;
    }
    if (p < 0 || p > n - 1) *by = 0, p = p < 0 ? 0 : n - 1;
    return p;
  }

  // The number of the element at p; -1 if it is none.
  __device__ long long inside(int a, double p) const {
    const double last = (double)(from[a] - 1);
    if (padding == ZERO && (p < 0 || p > last)) return -1;
    return p > 0 ? (p < last ? (long long)p : from[a] - 1) : 0;
  }

  // The element before or behind (k) the place that v says on axis a, and its weight.
  __device__ long long tap(int a, double i, double v, int k, double *weight) const {
    double by;
    const double p = place(a, i, v, &by);
    if (nearest) {
      *weight = order[a] ? 0 : 1 + 0 * p;
      return inside(a, round(p));
    }
    const double t = p - floor(p);
    if (order[a] > 1) *weight = 0;
    else if (order[a]) *weight = (k ? by : -by) + 0 * t;
    else *weight = k ? t : 1 - t;
    return inside(a, floor(p) + k);
  }

  // Where on axis a distances count from.
  __device__ double origin(int a, const long long *index) const {
    if (!columns) return (double)index[a];
    const long long tap = a == 1 ? index[0] / columns : index[0] % columns;
    return (double)(index[a] * stride[a - 1] + tap * dilation[a - 1] - pad[a - 1]);
  }

  // Where a plane of numbers has that of an element of the result.
  __device__ long long in_plane(long long plane, const long long *index) const {
    return (plane * from[1] + index[1] * stride[0]) * from[2] + index[2] * stride[1];
  }

  __device__ void split(long long p, long long *index) const {
    index[2] = p;
    index[1] = divide(index[2], to[2]);
    index[0] = divide(index[1], to[1]);
  }

  // Where the mask has the factor of place p of image b.
  __device__ long long factor(long long b, long long p) const {
    if (!columns) return b * places() + p;
    long long index[3];
    split(p, index);
    return in_plane(b * to[0] + index[0], index);
  }

  // Which number of the grid is about axis a.
  __device__ long long number(int a, long long b, long long p, const long long *index) const {
    const int component = 2 - a;
    if (columns) return in_plane((b * to[0] + index[0]) * 2 + a - 1, index);
    return flow ? (b * dims + component) * places() + p : (b * places() + p) * dims + component;
  }

  // Tap t of place p of image b: its element and its weight.
  template <class R>
  __device__ long long tap(const void *grid, int type, long long b, long long p, int t, double *weight) const {
    long long index[3], at = 0;
    split(p, index);
    *weight = 1;
    for (int a = 3 - dims; a < 3; ++a) {
      double w;
      const double v = (double)fetch_real<R>(grid, type, number(a, b, p, index));
      const long long i = tap(a, origin(a, index), v, t >> (2 - a) & 1, &w);
      if (i < 0) return -1;
      at = at * from[a] + i;
      *weight *= w;
    }
    return at;
  }

  // Which image, channel and place element e of an array of `size` elements a channel is.
  __device__ void where(long long e, long long size, long long *b, long long *c, long long *p) const {
    const long long inner = channel_last ? channels : size;
    long long last = e;
    long long first = divide(last, inner);
    *b = divide(first, channel_last ? size : channels);
    *c = channel_last ? last : first;
    *p = channel_last ? first : last;
  }

  __device__ long long element(long long b, long long c, long long at, long long size) const {
    return channel_last ? (b * size + at) * channels + c : (b * channels + c) * size + at;
  }
};

template <class R>
__device__ inline void warp_gather(const void *x, int type, const void *grid, const void *mask, void *y,
                                    long long count, const Warp &w) {
  for (long long e = first(); e < count; e += step()) {
    long long b, c, p;
    w.where(e, w.places(), &b, &c, &p);
    R sum = 0;
    for (int t = 0; t < w.taps(); ++t) {
      double weight;
      const long long at = w.tap<R>(grid, type, b, p, t, &weight);
      if (at >= 0) sum += fetch_real<R>(x, type, w.element(b, c, at, w.image())) * (R)weight;
    }
    keep_real<R>(y, type, e, mask ? sum * fetch_real<R>(mask, type, w.factor(b, p)) : sum);
  }
}

// A place's taps follow each other.
template <class R>
__device__ inline void warp_parts(const void *gy, int type, const void *grid, const void *mask, void *parts,
                                  long long *numbers, long long count, const Warp &w) {
  const long long taps = w.taps(), places = w.places();
  for (long long e = first(); e < count; e += step()) {
    long long b, c, p;
    w.where(e, places * taps, &b, &c, &p);
    long long t = p;
    p = divide(t, taps);
    double weight;
    const long long at = w.tap<R>(grid, type, b, p, (int)t, &weight);
    if (mask) weight *= (double)fetch_real<R>(mask, type, w.factor(b, p));
    keep_real<R>(parts, type, e, at < 0 ? (R)0 : fetch_real<R>(gy, type, w.element(b, c, p, places)) * (R)weight);
    if (c == 0) numbers[(b * places + p) * taps + t] = at;
  }
}

}  // namespace nnrs

#define NNRS_SIZES                                                                                               \
  long long count, long long channels, int channel_last, long long from0, long long from1, long long from2,      \
      long long to0, long long to1, long long to2, int dims, int flow, int nearest, int padding, int corners,    \
      int order0, int order1, int order2, long long columns, long long stride0, long long stride1, long long pad0, \
      long long pad1, long long dilation0, long long dilation1
#define NNRS_GIVEN                                                                                               \
  nnrs::Warp{channels, channel_last, {from0, from1, from2}, {to0, to1, to2}, dims, flow, nearest, padding,       \
             corners, {order0, order1, order2}, columns, {stride0, stride1}, {pad0, pad1}, {dilation0, dilation1}}

#define NNRS_WARP(R, suffix)                                                                                     \
  extern "C" __global__ void warp_gather_##suffix(const void *x, int type, const void *grid, const void *mask, void *y, NNRS_SIZES) { \
    nnrs::warp_gather<R>(x, type, grid, mask, y, count, NNRS_GIVEN);                                                   \
  }                                                                                                              \
  extern "C" __global__ void warp_parts_##suffix(const void *gy, int type, const void *grid, const void *mask,   \
                                                 void *parts, long long *numbers, NNRS_SIZES) {                               \
    nnrs::warp_parts<R>(gy, type, grid, mask, parts, numbers, count, NNRS_GIVEN);                                      \
  }

NNRS_WARP(float, f32)
NNRS_WARP(double, f64)
