// Windowed frames of signals as lines of complex numbers, and lines added up to signals.
#include "common.cuh"

namespace nnrs {

enum Window { HANNING, HAMMING, RECTANGULAR };

struct Frames {
  long long samples, border;
  int reflect;
  long long frames, stride, size, width;
  int window, inverse;

  __device__ long long bins() const { return size / 2 + 1; }
  __device__ long long padded() const { return samples + 2 * border; }

  __device__ double weight(long long i) const {
    i -= (size - width) / 2;
    if (i < 0 || i >= width) return 0;
    const double c = window == RECTANGULAR ? 0 : cos(6.283185307179586476925 * (double)i / (double)width);
    return window == HANNING ? 0.5 - 0.5 * c : window == HAMMING ? 0.54 - 0.46 * c : 1;
  }

  // The frames that have sample p, which counts from the beginning of the border.
  __device__ long long first_over(long long p) const { return p < size ? 0 : (p - size) / stride + 1; }
  __device__ long long end_over(long long p) const { return p / stride + 1 < frames ? p / stride + 1 : frames; }

  __device__ double overlap(long long p) const {
    double sum = 0;
    for (long long f = first_over(p); f < end_over(p); ++f) {
      const double w = weight(p - f * stride);
      sum += w * w;
    }
    return sum;
  }

  // The sample that position p with the border shows; -1 if it is none.
  __device__ long long source(long long p) const {
    p -= border;
    if (p >= 0 && p < samples) return p;
    if (!reflect) return -1;
    if (samples == 1) return 0;
    const long long period = 2 * (samples - 1);
    p %= period;
    if (p < 0) p += period;
    return p < samples ? p : period - p;
  }

  __device__ double scale(long long bin) const {
    if (!inverse) return 1;
    return (bin == 0 || 2 * bin == size ? 1.0 : 2.0) / (double)size;
  }
};

template <class R>
__device__ inline void frames_load(const void *x, int type, void *z, int to, long long count, const Frames &s) {
  for (long long e = first(); e < count; e += step()) {
    long long i = e;
    long long f = divide(i, s.size);
    const long long b = divide(f, s.frames), p = f * s.stride + i, from = s.source(p);
    double v = from < 0 ? 0 : (double)fetch_real<R>(x, type, b * s.samples + from);
    if (s.inverse && from >= 0) v = (R)(v / s.overlap(p));
    keep_real<R>(z, to, 2 * e, (R)v * (R)s.weight(i));
    keep_real<R>(z, to, 2 * e + 1, (R)0);
  }
}

template <class R>
__device__ inline void frames_store(const void *z, void *y, int type, int part, int add, long long count,
                                    const Frames &s) {
  for (long long e = first(); e < count; e += step()) {
    long long f = e;
    long long bin = divide(f, s.frames);
    const long long b = divide(bin, s.bins()), at = 2 * ((b * s.frames + f) * s.size + bin);
    const R v = fetch_real<R>(z, type, at + part) * (R)s.scale(bin);
    keep_real<R>(y, type, e, add ? fetch_real<R>(y, type, e) + v : v);
  }
}

template <class R>
__device__ inline void frames_spread(const void *re, const void *im, void *z, int type, long long count,
                                     const Frames &s) {
  for (long long e = first(); e < count; e += step()) {
    long long bin = e;
    long long f = divide(bin, s.size);
    const long long b = divide(f, s.frames), at = (b * s.bins() + bin) * s.frames + f;
    const bool there = bin < s.bins(), ends = bin == 0 || 2 * bin == s.size;
    const R scale = (R)s.scale(bin);
    keep_real<R>(z, type, 2 * e, there && re ? fetch_real<R>(re, type, at) * scale : (R)0);
    keep_real<R>(z, type, 2 * e + 1, there && !ends && im ? fetch_real<R>(im, type, at) * scale : (R)0);
  }
}

template <class R>
__device__ inline R added(const void *z, int type, const Frames &s, long long b, long long p) {
  R sum = 0;
  for (long long f = s.first_over(p); f < s.end_over(p); ++f) {
    const long long i = p - f * s.stride;
    sum += fetch_real<R>(z, type, 2 * ((b * s.frames + f) * s.size + i)) * (R)s.weight(i);
  }
  return s.inverse ? (R)((double)sum / s.overlap(p)) : sum;
}

template <class R>
__device__ inline void frames_add(const void *z, void *x, int type, int add, long long count, const Frames &s) {
  for (long long e = first(); e < count; e += step()) {
    long long i = e;
    const long long b = divide(i, s.samples);
    R sum = 0;
    if (!s.reflect || !s.border) {
      sum = added<R>(z, type, s, b, s.border + i);
    } else if (s.samples == 1) {
      for (long long p = 0; p < s.padded(); ++p) sum += added<R>(z, type, s, b, p);
    } else {
      const long long period = 2 * (s.samples - 1);
      for (long long p = (s.border + i) % period; p < s.padded(); p += period) sum += added<R>(z, type, s, b, p);
      const bool mirrored = i > 0 && i < s.samples - 1;
      long long p = (s.border - i) % period;
      if (p < 0) p += period;
      for (; mirrored && p < s.padded(); p += period) sum += added<R>(z, type, s, b, p);
    }
    keep_real<R>(x, type, e, add ? fetch_real<R>(x, type, e) + sum : sum);
  }
}

}  // namespace nnrs

#define NNRS_SIZES                                                                                               \
  long long count, long long samples, long long border, int reflect, long long frames, long long stride,         \
      long long size, long long width, int window, int inverse
#define NNRS_GIVEN nnrs::Frames{samples, border, reflect, frames, stride, size, width, window, inverse}

#define NNRS_FRAMES(R, suffix)                                                                                   \
  extern "C" __global__ void frames_load_##suffix(const void *x, int type, void *z, int to, NNRS_SIZES) {        \
    nnrs::frames_load<R>(x, type, z, to, count, NNRS_GIVEN);                                                     \
  }                                                                                                              \
  extern "C" __global__ void frames_store_##suffix(const void *z, void *y, int type, int part, int add,          \
                                                   NNRS_SIZES) {                                                 \
    nnrs::frames_store<R>(z, y, type, part, add, count, NNRS_GIVEN);                                             \
  }                                                                                                              \
  extern "C" __global__ void frames_spread_##suffix(const void *re, const void *im, void *z, int type,           \
                                                    NNRS_SIZES) {                                                \
    nnrs::frames_spread<R>(re, im, z, type, count, NNRS_GIVEN);                                                  \
  }                                                                                                              \
  extern "C" __global__ void frames_add_##suffix(const void *z, void *x, int type, int add, NNRS_SIZES) {        \
    nnrs::frames_add<R>(z, x, type, add, count, NNRS_GIVEN);                                                     \
  }

NNRS_FRAMES(float, f32)
NNRS_FRAMES(double, f64)
