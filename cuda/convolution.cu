// Convolutions where cuDNN is not: products of matrices that are never stored. Their operands are gathered from the image
// by tables of offsets in shared memory, and multiplied tile by tile as in matmul.cu. The data's gradient is the same sum
// as the convolution: seen from x, with the places of x grouped by their remainder by the stride, each group has its own
// taps, all at whole distances. The order of summation depends on sizes alone.
#include "common.cuh"

namespace nnrs {

const int DEEP = 16, EACH = 4, THREADS = 256;  // a block of 256 threads makes 4 x 4 sums each

// Along one axis: places of the result with one remainder, the first place that they read, and the taps that meet them.
struct Walk {
  long long count, to_first, from_first, taps, tap_first, shift_first;
};

struct Axis {
  long long walks, first, most;  // how many walks, which is the first, and the largest count among them
  long long to_step, from_step, tap_step, shift_step;
  long long size;                            // of the image that is read
  long long to_stride, from_stride, tap_stride;  // in elements
};

// What is read is `from` (x, or the gradient of y), what is made is `to`; channels are those of a group.
struct Geometry {
  long long batch, group, from_channels, to_channels;
  long long from_image, to_image, from_channel, to_channel;  // in elements, from one to the next
  long long weight_group, weight_from, weight_to;
  long long last;  // the channels are the last axis
  Axis axis[3];
};

struct Steps {
  Walk walk[3];
  long long points;
  int depth;
};

__device__ inline Steps steps_of(const Geometry *g, const Walk *walks, unsigned number) {
  Steps s;
  s.points = g->batch;
  s.depth = (int)g->from_channels;
  for (int a = 2; a >= 0; --a) {
    const unsigned n = (unsigned)g->axis[a].walks;
    s.walk[a] = walks[g->axis[a].first + number % n];
    number /= n;
    s.points *= s.walk[a].count;
    s.depth *= (int)s.walk[a].taps;
  }
  return s;
}

// Where a point of the result begins to read, and where it lies: offsets without the channel.
struct Point {
  long long from, to;
  int origin[3];
};

__device__ inline Point point(const Geometry *g, const Steps &s, long long i) {
  Point p = {0, 0, {0, 0, 0}};
  for (int a = 2; a >= 0; --a) {
    const Walk &w = s.walk[a];
    const long long next = i / w.count, at = i - next * w.count;
    const long long origin = w.from_first + at * g->axis[a].from_step;
    p.origin[a] = (int)origin;
    p.from += origin * g->axis[a].from_stride;
    p.to += (w.to_first + at * g->axis[a].to_step) * g->axis[a].to_stride;
    i = next;
  }
  p.from += i * g->from_image;
  p.to += i * g->to_image;
  return p;
}

// A channel and a tap: how far from the origin it reads, and its place in the weight.
struct Tap {
  long long shift, weight;
  int at[3];
};

__device__ inline Tap tap(const Geometry *g, const Steps &s, int k) {
  // Channels are innermost where they are so in memory.
  const int channels = (int)g->from_channels, taps = s.depth / channels;
  const int c = g->last ? k % channels : k / taps;
  int u = g->last ? k / channels : k % taps;
  Tap t = {c * g->from_channel, c * g->weight_from, {0, 0, 0}};
  for (int a = 2; a >= 0; --a) {
    const int n = (int)s.walk[a].taps, at = u % n;
    u /= n;
    t.at[a] = (int)(s.walk[a].shift_first + at * g->axis[a].shift_step);
    t.shift += t.at[a] * g->axis[a].from_stride;
    t.weight += (s.walk[a].tap_first + at * g->axis[a].tap_step) * g->axis[a].tap_stride;
  }
  return t;
}

__device__ inline bool inside(int at, int size) { return (unsigned)at < (unsigned)size; }

// Multiplies a step's tiles: `wide` lies along the threads' first direction.
#define NNRS_MULTIPLY(WIDE, TALL, image, weight, across, up)                             \
  _Pragma("unroll 4") for (int d = 0; d < DEEP; ++d) {                                   \
    R x[EACH], y[EACH];                                                                  \
    for (int i = 0; i < EACH; ++i) x[i] = image[d * (WIDE + 1) + across + i * (WIDE / EACH)]; \
    for (int j = 0; j < EACH; ++j) y[j] = weight[d * (TALL + 1) + up + j * (TALL / EACH)];    \
    for (int i = 0; i < EACH; ++i)                                                       \
      for (int j = 0; j < EACH; ++j) sum[i][j] = mad(x[i], y[j], sum[i][j]);            \
  }

// y = convolution of x (+ bias), or its transpose. A block makes WIDE points of TALL channels.
template <class R, int WIDE, int TALL>
__device__ inline void convolve(const Geometry *g, const Walk *walks, const void *x, int x_type, const void *w, int w_type,
                                const void *bias, int bias_type, void *y, int y_type, int add) {
  NNRS_SHARED(R, image, DEEP * (WIDE + 1));
  NNRS_SHARED(R, weight, DEEP * (TALL + 1));
  NNRS_SHARED(long long, from, WIDE);
  NNRS_SHARED(long long, to, WIDE);
  NNRS_SHARED(int, origin, 3 * WIDE);
  NNRS_SHARED(long long, shift, DEEP);
  NNRS_SHARED(long long, place, DEEP);
  NNRS_SHARED(int, at, 3 * DEEP);
  const int t = threadIdx.x;
  // Blocks side by side share the points: their reads of x meet in the cache.
  const int tall = (int)((g->to_channels + TALL - 1) / TALL);
  const unsigned columns = (unsigned)(tall * g->group);
  const int row0 = blockIdx.x % columns % tall * TALL;
  const long long group = blockIdx.x % columns / tall;
  const unsigned tiles = (unsigned)((g->batch * g->axis[0].most * g->axis[1].most * g->axis[2].most + WIDE - 1) / WIDE);
  const Steps s = steps_of(g, walks, blockIdx.x / columns / tiles);
  const long long point0 = blockIdx.x / columns % tiles * (long long)WIDE;
  if (point0 >= s.points) return;  // the whole block
  const int points = (int)(s.points - point0 < WIDE ? s.points - point0 : WIDE);
  const int rows = (int)(g->to_channels - row0 < TALL ? g->to_channels - row0 : TALL);
  for (int p = t; p < points; p += THREADS) {
    const Point q = point(g, s, point0 + p);
    from[p] = q.from + group * g->from_channels * g->from_channel;
    to[p] = q.to + (group * g->to_channels + row0) * g->to_channel;
    for (int a = 0; a < 3; ++a) origin[a * WIDE + p] = q.origin[a];
  }
  const long long w0 = group * g->weight_group + row0 * g->weight_to;
  const int size0 = (int)g->axis[0].size, size1 = (int)g->axis[1].size, size2 = (int)g->axis[2].size;
  const bool last = g->last != 0, weight_rows = g->weight_to == 1;
  const int across = last ? t / (TALL / EACH) : t % (WIDE / EACH), up = last ? t % (TALL / EACH) : t / (WIDE / EACH);
  R sum[EACH][EACH];
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) sum[i][j] = 0;
  for (int k0 = 0; k0 < s.depth; k0 += DEEP) {
    const int deep = s.depth - k0 < DEEP ? s.depth - k0 : DEEP;
    if (t < deep) {
      const Tap q = tap(g, s, k0 + t);
      shift[t] = q.shift;
      place[t] = q.weight;
      for (int a = 0; a < 3; ++a) at[a * DEEP + t] = q.at[a];
    }
    __syncthreads();
    for (int e = t; e < DEEP * WIDE; e += THREADS) {
      // Neighbouring threads read neighbouring elements.
      const int d = last ? e % DEEP : e / WIDE, p = last ? e / DEEP : e % WIDE;
      R v = 0;
      if (d < deep && p < points && inside(origin[p] + at[d], size0) &&
          inside(origin[WIDE + p] + at[DEEP + d], size1) && inside(origin[2 * WIDE + p] + at[2 * DEEP + d], size2))
        v = fetch_real<R>(x, x_type, from[p] + shift[d]);
      image[d * (WIDE + 1) + p] = v;
    }
    for (int e = t; e < DEEP * TALL; e += THREADS) {
      const int d = weight_rows ? e / TALL : e % DEEP, r = weight_rows ? e % TALL : e / DEEP;
      weight[d * (TALL + 1) + r] = d < deep && r < rows ? fetch_real<R>(w, w_type, w0 + r * g->weight_to + place[d]) : (R)0;
    }
    __syncthreads();
    NNRS_MULTIPLY(WIDE, TALL, image, weight, across, up)
  }
  if (s.depth == 0) __syncthreads();
#pragma unroll
  for (int j = 0; j < EACH; ++j) {
    const int r = up + j * (TALL / EACH);
    if (r >= rows) continue;
    const R b = bias ? fetch_real<R>(bias, bias_type, group * g->to_channels + row0 + r) : (R)0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int p = across + i * (WIDE / EACH);
      if (p >= points) continue;
      const long long o = to[p] + r * g->to_channel;
      keep_real<R>(y, y_type, o, add ? fetch_real<R>(y, y_type, o) + (sum[i][j] + b) : sum[i][j] + b);
    }
  }
}

// Gradient of the weight: a block makes TALL maps of WIDE channels and taps, summed over blockIdx.y's part of the points.
template <class R, int WIDE, int TALL>
__device__ inline void weight_gradient(const Geometry *g, const Walk *walks, const void *x, int x_type, const void *gy,
                                       int gy_type, long long part, void *gw, int gw_type, int add) {
  NNRS_SHARED(R, image, DEEP * (WIDE + 1));
  NNRS_SHARED(R, maps, DEEP * (TALL + 1));
  NNRS_SHARED(long long, shift, WIDE);
  NNRS_SHARED(int, at, 3 * WIDE);
  NNRS_SHARED(long long, from, DEEP);
  NNRS_SHARED(long long, to, DEEP);
  NNRS_SHARED(int, origin, 3 * DEEP);
  const int t = threadIdx.x;
  const Steps s = steps_of(g, walks, 0);
  const unsigned wide = (unsigned)((s.depth + WIDE - 1) / WIDE), tall = (unsigned)((g->to_channels + TALL - 1) / TALL);
  const int column0 = (int)(blockIdx.x % wide) * WIDE, row0 = (int)(blockIdx.x / wide % tall) * TALL;
  const long long group = blockIdx.x / wide / tall;
  const int columns = s.depth - column0 < WIDE ? s.depth - column0 : WIDE;
  const int rows = (int)(g->to_channels - row0 < TALL ? g->to_channels - row0 : TALL);
  for (int c = t; c < columns; c += THREADS) {
    const Tap q = tap(g, s, column0 + c);
    shift[c] = q.shift + group * g->from_channels * g->from_channel;
    for (int a = 0; a < 3; ++a) at[a * WIDE + c] = q.at[a];
  }
  const int size0 = (int)g->axis[0].size, size1 = (int)g->axis[1].size, size2 = (int)g->axis[2].size;
  const bool last = g->last != 0;
  const int across = t % (WIDE / EACH), up = t / (WIDE / EACH);
  R sum[EACH][EACH];
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) sum[i][j] = 0;
  const long long begin = blockIdx.y * part, end = begin + part < s.points ? begin + part : s.points;
  for (long long k0 = begin; k0 < end; k0 += DEEP) {
    const int deep = (int)(end - k0 < DEEP ? end - k0 : DEEP);
    if (t < deep) {
      const Point q = point(g, s, k0 + t);
      from[t] = q.from;
      to[t] = q.to + (group * g->to_channels + row0) * g->to_channel;
      for (int a = 0; a < 3; ++a) origin[a * DEEP + t] = q.origin[a];
    }
    __syncthreads();
    for (int e = t; e < DEEP * WIDE; e += THREADS) {
      const int d = last ? e / WIDE : e % DEEP, c = last ? e % WIDE : e / DEEP;
      R v = 0;
      if (d < deep && c < columns && inside(origin[d] + at[c], size0) &&
          inside(origin[DEEP + d] + at[WIDE + c], size1) && inside(origin[2 * DEEP + d] + at[2 * WIDE + c], size2))
        v = fetch_real<R>(x, x_type, from[d] + shift[c]);
      image[d * (WIDE + 1) + c] = v;
    }
    for (int e = t; e < DEEP * TALL; e += THREADS) {
      const int d = last ? e / TALL : e % DEEP, r = last ? e % TALL : e / DEEP;
      maps[d * (TALL + 1) + r] = d < deep && r < rows ? fetch_real<R>(gy, gy_type, to[d] + r * g->to_channel) : (R)0;
    }
    __syncthreads();
    NNRS_MULTIPLY(WIDE, TALL, image, maps, across, up)
  }
  // The weight has the columns' order, and so have the parts' sums, one part after the other.
  const long long row = (blockIdx.y * g->group + group) * g->to_channels + row0;
#pragma unroll
  for (int j = 0; j < EACH; ++j)
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int r = up + j * (TALL / EACH), c = across + i * (WIDE / EACH);
      if (r >= rows || c >= columns) continue;
      const long long o = (row + r) * s.depth + column0 + c;
      keep_real<R>(gw, gw_type, o, add ? fetch_real<R>(gw, gw_type, o) + sum[i][j] : sum[i][j]);
    }
}

}  // namespace nnrs

#define NNRS_CONVOLUTION(R, WIDE, TALL, suffix)                                                                        \
  extern "C" __global__ void __launch_bounds__(256, 2)                                                                 \
      convolve_##suffix(const nnrs::Geometry *g, const nnrs::Walk *walks, const void *x, int x_type, const void *w,     \
                        int w_type, const void *bias, int bias_type, void *y, int y_type, int add) {                   \
    nnrs::convolve<R, WIDE, TALL>(g, walks, x, x_type, w, w_type, bias, bias_type, y, y_type, add);                    \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256, 2)                                                                 \
      convolution_weight_##suffix(const nnrs::Geometry *g, const nnrs::Walk *walks, const void *x, int x_type,         \
                                  const void *gy, int gy_type, long long part, void *gw, int gw_type, int add) {       \
    nnrs::weight_gradient<R, WIDE, TALL>(g, walks, x, x_type, gy, gy_type, part, gw, gw_type, add);                    \
  }

NNRS_CONVOLUTION(float, 64, 64, f32)
NNRS_CONVOLUTION(float, 256, 16, flat_f32)
NNRS_CONVOLUTION(double, 64, 64, f64)
NNRS_CONVOLUTION(double, 256, 16, flat_f64)
