// Axes resampled to other sizes, one at a time: nearest elements, linear or cubic interpolation; and the transpose.
#include "common.cuh"

namespace nnrs {

enum Way { FLOOR, CEIL, NEAREST_FIRST, NEAREST_SECOND, LINEAR, CUBIC, CUBIC_INSIDE };

struct Sampling {
  long long n, m;
  double scale, shift, by;
  int way;
  double cubic;
  int cut;

  __device__ double place(long long j) const {
    if (!cut) return (scale * (double)j + shift) / by;
    const float last = (float)(n - 1);
    return (float)shift * last + (float)j * (float)scale * last / (float)by;
  }
  __device__ bool outside(double p) const { return cut && !(p >= 0 && p <= (double)(n - 1)); }

  __device__ long long clamped(double i) const {
    return i > 0 ? (i < (double)(n - 1) ? (long long)i : n - 1) : 0;
  }

  // First of the elements around a place, before it is clamped.
  __device__ double base(double p) const {
    switch (way) {
      case FLOOR: return floor(p);
      case CEIL: return ceil(p);
      case NEAREST_FIRST: return ceil(p - 0.5);
      case NEAREST_SECOND: return floor(p + 0.5);
      case LINEAR: return floor(p);
      default: return floor(p) - 1;
    }
  }

  __device__ int count() const { return way < LINEAR ? 1 : way == LINEAR ? 2 : 4; }

  // Weight of the element that is k behind the first.
  __device__ double weight(double p, int k) const {
    if (outside(p)) return 0;
    if (way < LINEAR) return 1;
    const double i = floor(p), t = p - i;
    if (way == LINEAR) return k ? t : 1 - t;
    if (way == CUBIC) return keys(t, k);
    double sum = 0, mine = 0;
    for (int l = 0; l < 4; ++l) {
      const double at = i + l - 1;
      if (!(at >= 0 && at < (double)n)) continue;
      const double w = keys(t, l);
      sum += w;
      if (l == k) mine = w;
    }
    return mine / sum;
  }

  __device__ double keys(double t, int k) const {
    const double a = cubic, d = fabs(t - (double)(k - 1));
    if (k == 1 || k == 2) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
};

// Places go up with j, or down where the scale is negative: `turned` counts from the end then.
__device__ inline long long turned(const Sampling &s, long long j) { return s.scale < 0 ? s.m - 1 - j : j; }

// The first j, in the order of their places, whose last element is i or one behind it.
__device__ inline long long first_of(const Sampling &s, long long i) {
  long long low = 0, high = s.m;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    const double p = s.place(turned(s, middle));
    if (s.clamped(s.base(p) + s.count() - 1) >= i) high = middle;
    else low = middle + 1;
  }
  return low;
}

template <class R>
__device__ inline R made(const Sampling &s, const void *x, int from, long long line, long long j, long long behind,
                         long long at) {
  const double p = s.place(j), base = s.base(p);
  R sum = 0;
  for (int k = 0; k < s.count(); ++k) {
    const long long i = s.clamped(base + k);
    sum += fetch_real<R>(x, from, (line * s.n + i) * behind + at) * (R)s.weight(p, k);
  }
  return sum;
}

template <class R>
__device__ inline R gathered(const Sampling &s, const void *gy, int from, long long line, long long i, long long behind,
                             long long at) {
  R sum = 0;
  for (long long t = first_of(s, i); t < s.m; ++t) {
    const long long j = turned(s, t);
    const double p = s.place(j), base = s.base(p);
    if (s.clamped(base) > i) break;
    for (int k = 0; k < s.count(); ++k)
      if (s.clamped(base + k) == i) sum += fetch_real<R>(gy, from, (line * s.m + j) * behind + at) * (R)s.weight(p, k);
  }
  return sum;
}

template <class R>
__device__ inline void resample(const void *x, int from, void *y, int to, long long size, long long behind,
                                const Sampling &s, int transposed, int add) {
  for (long long e = first(); e < size; e += step()) {
    long long at = e;
    long long line = divide(at, behind);
    long long j = line;
    line = divide(j, transposed ? s.n : s.m);
    const R v = transposed ? gathered<R>(s, x, from, line, j, behind, at) : made<R>(s, x, from, line, j, behind, at);
    keep_real<R>(y, to, e, add ? fetch_real<R>(y, to, e) + v : v);
  }
}

}  // namespace nnrs

#define NNRS_SAMPLING \
  long long n, long long m, double scale, double shift, double by, int way, double cubic, int cut

#define NNRS_RESAMPLE(R, suffix)                                                                                      \
  extern "C" __global__ void resample_##suffix(const void *x, int from, void *y, int to, long long size,              \
                                               long long behind, NNRS_SAMPLING, int transposed, int add) {            \
    nnrs::resample<R>(x, from, y, to, size, behind, nnrs::Sampling{n, m, scale, shift, by, way, cubic, cut}, transposed, \
                      add);                                                                                           \
  }

NNRS_RESAMPLE(float, f32)
NNRS_RESAMPLE(double, f64)

// The value beyond the ends of an axis that is cut there.
extern "C" __global__ void resample_beyond(void *y, int to, long long size, long long behind, NNRS_SAMPLING,
                                           double value) {
  const nnrs::Sampling s{n, m, scale, shift, by, way, cubic, cut};
  for (long long e = nnrs::first(); e < size; e += nnrs::step()) {
    long long at = e;
    long long j = nnrs::divide(at, behind);
    nnrs::divide(j, m);
    if (s.outside(s.place(j))) nnrs::keep_real<double>(y, to, e, value);
  }
}
