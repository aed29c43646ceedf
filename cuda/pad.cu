// Borders around an array: a constant, its reflection, or its edge; and their sums onto what they show.
#include "common.cuh"

namespace nnrs {

enum Mode { CONSTANT, REFLECT, REPEAT };

struct Border {
  long long n, before, total, x, y;  // sizes without and with the border, and strides
};

struct Borders {
  long long axes;
  Border axis[12];
};

// The position on an axis that position p of the padded axis shows; -1 if it is none.
__device__ inline long long source(const Border &b, long long p, int mode) {
  p -= b.before;
  if (p >= 0 && p < b.n) return p;
  if (mode == CONSTANT) return -1;
  if (b.n == 1) return 0;
  if (mode == REPEAT) return p < 0 ? 0 : b.n - 1;
  const long long period = 2 * (b.n - 1);
  p %= period;
  if (p < 0) p += period;
  return p < b.n ? p : period - p;
}

// Positions of the padded axis: `count` from `first` on and `more` from `second` on, `step` apart.
struct Shown {
  long long first, count, second, more, step;

  __device__ static long long times(long long first, long long total, long long step) {
    const long long room = total - first;
    return room <= 0 ? 0 : room <= step ? 1 : (room - 1) / step + 1;
  }

  // Those that show position i.
  __device__ Shown(const Border &b, long long i, int mode) : first(b.before + i), count(1), second(0), more(0), step(1) {
    if (b.n == 1) {
      first = 0, count = b.total;
    } else if (mode == REPEAT) {
      if (i == 0) first = 0, count = b.before + 1;
      else if (i == b.n - 1) count = b.total - first;
    } else {
      step = 2 * (b.n - 1);
      if (first >= step) first %= step;
      count = times(first, b.total, step);
      second = b.before - i;
      if (second < 0) second += step;
      if (second >= step) second %= step;
      if (i > 0 && i < b.n - 1) more = times(second, b.total, step);
    }
  }

  __device__ long long size() const { return count + more; }
  __device__ long long at(long long k) const { return k < count ? first + k * step : second + (k - count) * step; }
};

template <class R>
__device__ inline void pad(const void *x, void *y, int type, const Borders *borders, int mode, double value, long long n) {
  for (long long i = first(); i < n; i += step()) {
    long long rest = i, from = 0;
    bool inside = true;
    for (int a = (int)borders->axes - 1; a >= 0; --a) {
      const Border b = borders->axis[a];
      long long p = rest;
      rest = divide(p, b.total);
      p = source(b, p, mode);
      inside = inside && p >= 0;
      from += p * b.x;
    }
    keep_real<R>(y, type, i, inside ? fetch_real<R>(x, type, from) : (R)value);
  }
}

// Of each element the sum of those that show it, in the order of their axes.
template <class R>
__device__ inline void unpad(const void *gy, void *gx, int type, const Borders *borders, int mode, int add, long long n) {
  const int axes = (int)borders->axes;
  for (long long i = first(); i < n; i += step()) {
    long long rest = i, times = 1, from = 0;
    for (int a = axes - 1; a >= 0; --a) {
      const Border b = borders->axis[a];
      long long p = rest;
      rest = divide(p, b.n);
      const Shown shown(b, p, mode);
      times *= shown.size();
      from += shown.at(0) * b.y;
    }
    R sum = 0;
    if (times == 1) sum = fetch_real<R>(gy, type, from);
    for (long long t = 0; times > 1 && t < times; ++t) {
      long long k = t;
      rest = i, from = 0;
      for (int a = axes - 1; a >= 0; --a) {
        const Border b = borders->axis[a];
        long long p = rest;
        rest = divide(p, b.n);
        const Shown shown(b, p, mode);
        long long which = k;
        k = divide(which, shown.size());
        from += shown.at(which) * b.y;
      }
      sum += fetch_real<R>(gy, type, from);
    }
    keep_real<R>(gx, type, i, add ? fetch_real<R>(gx, type, i) + sum : sum);
  }
}

}  // namespace nnrs

#define NNRS_PAD(R, suffix)                                                                                          \
  extern "C" __global__ void pad_##suffix(const void *x, void *y, int type, const nnrs::Borders *borders, int mode,  \
                                          double value, long long n) {                                               \
    nnrs::pad<R>(x, y, type, borders, mode, value, n);                                                               \
  }                                                                                                                  \
  extern "C" __global__ void unpad_##suffix(const void *gy, void *gx, int type, const nnrs::Borders *borders,        \
                                            int mode, int add, long long n) {                                        \
    nnrs::unpad<R>(gy, gx, type, borders, mode, add, n);                                                             \
  }

NNRS_PAD(float, f32)
NNRS_PAD(double, f64)
