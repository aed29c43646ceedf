// Convolutions summed one by one: those of few channels a group (depthwise ones), and those over more than three axes.
// The order of summation depends on sizes alone.
#include "common.cuh"

namespace nnrs {

const int MOST_AXES = 8;

struct DirectAxis {
  long long from_size, to_size, kernel, stride, pad, dilation;
  long long from_stride, to_stride, tap_stride;  // in elements
};

// What is read is `from` (x, or the gradient of y), what is made is `to`; channels are those of a group.
struct Direct {
  long long batch, group, from_channels, to_channels;
  long long from_image, to_image, from_channel, to_channel;
  long long weight_group, weight_from, weight_to;
  long long last, back;  // back: the transposed convolution
  long long points, taps;
  DirectAxis axis[MOST_AXES];
};

// The place that tap k of place p reads along an axis, or -1.
__device__ inline int source(const DirectAxis &a, bool back, int p, int k) {
  const int pad = (int)a.pad, tap = k * (int)a.dilation, stride = (int)a.stride;
  int at = back ? p + pad - tap : p * stride - pad + tap;
  if (back && at >= 0 && stride != 1) at = at % stride ? -1 : at / stride;
  return at < (int)a.from_size ? at : -1;
}

// The sum of one element over channels and taps.
template <class R, int N>
__device__ inline R direct_sum(const Direct *g, const int (&p)[N], const void *x, int x_type, long long x0,
                               const void *w, int w_type, long long w0) {
  R sum = 0;
  int k[N];
  for (int a = 0; a < N; ++a) k[a] = 0;
  for (long long u = 0; u < g->taps; ++u) {
    long long from = x0, weight = w0;
    bool seen = true;
    for (int a = 0; a < N; ++a) {
      const int at = source(g->axis[a], g->back != 0, p[a], k[a]);
      seen = seen && at >= 0;
      from += at * g->axis[a].from_stride;
      weight += k[a] * g->axis[a].tap_stride;
    }
    if (seen)
      for (long long c = 0; c < g->from_channels; ++c)
        sum += fetch_real<R>(x, x_type, from + c * g->from_channel) * fetch_real<R>(w, w_type, weight + c * g->weight_from);
    bool carry = true;  // the next tap
    for (int a = N - 1; a >= 0; --a) {
      k[a] += carry;
      carry = carry && k[a] == (int)g->axis[a].kernel;
      if (carry) k[a] = 0;
    }
  }
  return sum;
}

template <class R, int N>
__device__ inline void direct(const Direct *g, const void *x, int x_type, const void *w, int w_type, const void *bias,
                              int bias_type, void *y, int y_type, long long n, int add) {
  const long long channels = g->group * g->to_channels;
  for (long long i = first(); i < n; i += step()) {
    // The image and the channel of this element, and its place along each axis.
    long long rest = i, channel;
    int p[N];
    if (g->last) {
      long long above = divide(rest, channels);
      channel = rest;
      rest = above;
    } else {
      long long plane = divide(rest, g->points), spot = rest, image = divide(plane, channels);
      channel = plane;
      rest = image * g->points + spot;
    }
    for (int a = N - 1; a >= 0; --a) {
      long long above = divide(rest, g->axis[a].to_size);
      p[a] = (int)rest;
      rest = above;
    }
    const long long c = channel, group = divide(channel, g->to_channels);
    const long long x0 = rest * g->from_image + group * g->from_channels * g->from_channel;
    R sum = direct_sum<R, N>(g, p, x, x_type, x0, w, w_type, group * g->weight_group + channel * g->weight_to);
    if (bias) sum += fetch_real<R>(bias, bias_type, c);
    keep_real<R>(y, y_type, i, add ? fetch_real<R>(y, y_type, i) + sum : sum);
  }
}

// Gradient of the weight. A block makes one tap and channel of `width` maps, summed over blockIdx.y's part of the points;
// its other threads share in the points.
template <class R, int N>
__device__ inline void direct_weight(const Direct *g, const void *x, int x_type, const void *gy, int gy_type, int width,
                                     long long part, void *gw, int gw_type, int add) {
  NNRS_SHARED(R, sums, 256);
  const long long maps = g->group * g->to_channels, chunks = (maps + width - 1) / width;
  const int t = threadIdx.x, lanes = blockDim.x / width;
  long long u = blockIdx.x, rest = u;
  u = divide(rest, chunks);
  const long long map = rest * width + t % width, c = divide(u, g->taps);
  long long tap = u;
  int k[N];
  long long o = map, group = 0, weight = 0;
  if (map < maps) group = divide(o, g->to_channels);
  for (int a = N - 1; a >= 0; --a) {
    long long above = divide(tap, g->axis[a].kernel);
    k[a] = (int)tap;
    weight += tap * g->axis[a].tap_stride;
    tap = above;
  }
  const long long n = g->batch * g->points, begin = blockIdx.y * part, end = begin + part < n ? begin + part : n;
  const long long x0 = (group * g->from_channels + c) * g->from_channel;
  R sum = 0;
  for (long long i = begin + t / width; i < end && map < maps; i += lanes) {
    long long spot = i, from = x0, to = map * g->to_channel;
    bool seen = true;
    for (int a = N - 1; a >= 0; --a) {
      long long above = divide(spot, g->axis[a].to_size);
      const int at = source(g->axis[a], false, (int)spot, k[a]);
      seen = seen && at >= 0;
      from += at * g->axis[a].from_stride;
      to += spot * g->axis[a].to_stride;
      spot = above;
    }
    if (seen) sum += fetch_real<R>(x, x_type, from + spot * g->from_image) * fetch_real<R>(gy, gy_type, to + spot * g->to_image);
  }
  sums[t] = sum;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half * width) sums[t] = (R)sums[t] + (R)sums[t + half * width];
  }
  if (t >= width || map >= maps) return;
  const long long at = blockIdx.y * maps * g->from_channels * g->taps + group * g->weight_group + o * g->weight_to +
                       c * g->weight_from + weight;
  sum = sums[t];
  keep_real<R>(gw, gw_type, at, add ? fetch_real<R>(gw, gw_type, at) + sum : sum);
}

}  // namespace nnrs

#define NNRS_DIRECT(R, N, suffix)                                                                                      \
  extern "C" __global__ void direct_##suffix(const nnrs::Direct *g, const void *x, int x_type, const void *w,          \
                                             int w_type, const void *bias, int bias_type, void *y, int y_type,         \
                                             long long n, int add) {                                                   \
    nnrs::direct<R, N>(g, x, x_type, w, w_type, bias, bias_type, y, y_type, n, add);                                   \
  }                                                                                                                    \
  extern "C" __global__ void direct_weight_##suffix(const nnrs::Direct *g, const void *x, int x_type, const void *gy,  \
                                                    int gy_type, int width, long long part, void *gw, int gw_type,     \
                                                    int add) {                                                         \
    nnrs::direct_weight<R, N>(g, x, x_type, gy, gy_type, width, part, gw, gw_type, add);                               \
  }

NNRS_DIRECT(float, 3, f32)
NNRS_DIRECT(double, 3, f64)
NNRS_DIRECT(float, 8, many_f32)
NNRS_DIRECT(double, 8, many_f64)
