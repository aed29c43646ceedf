// Elements moved at random along an axis of an array (outer, n, inner), or with whole samples: as in
// kernels/src/kernel/random_moves/. The random numbers, a row a sample, are made before.
#include "common.cuh"

namespace nnrs {

// As of `MoveKind`.
enum { MOVE_STAY, MOVE_CROP, MOVE_FLIP, MOVE_NEAREST, MOVE_REFLECT, MOVE_CONSTANT };

struct Move {
  long long kind, most, n, to;

  __device__ inline long long choose(double u, long long choices) const {
    long long v = (long long)(u * (double)choices);
    return v < choices ? v : choices - 1;
  }

  // How far elements move.
  __device__ inline long long amount(double u) const {
    if (kind == MOVE_STAY) return 0;
    if (kind == MOVE_CROP) return -choose(u, n - to + 1);
    if (kind == MOVE_FLIP) return u < 0.5;
    return choose(u, 2 * most + 1) - most;
  }

  // The place that place i of the result shows; -1 where a constant comes in.
  __device__ inline long long source(long long by, long long i) const {
    long long at = i - by;
    if (kind == MOVE_FLIP) at = by ? n - 1 - i : i;
    if (kind == MOVE_NEAREST) at = at < 0 ? 0 : at < n ? at : n - 1;
    if (kind == MOVE_REFLECT) {
      at %= 2 * n;
      if (at < 0) at += 2 * n;
      if (at >= n) at = 2 * n - 1 - at;
    }
    return at >= 0 && at < n ? at : -1;
  }
};

#define NNRS_MOVE_PARAMETERS                                                                                        \
  const void *x, int from, void *y, int into, long long size, long long n, long long to, long long inner,          \
      long long parts, const double *table, long long columns, long long column, long long kind, long long most,   \
      double constant

template <class R>
__device__ inline void move(NNRS_MOVE_PARAMETERS) {
  const Move rule = {kind, most, n, to};
  for (long long e = first(); e < size; e += step()) {
    long long rest = e, i = divide(rest, inner), outer = divide(i, to);
    long long at = rule.source(rule.amount(table[outer / parts * columns + column]), i);
    keep_real<R>(y, into, e, at < 0 ? (R)constant : fetch_real<R>(x, from, (outer * n + at) * inner + rest));
  }
}

// y[i] = the sum of all places of x that show it
template <class R>
__device__ inline void unmove(NNRS_MOVE_PARAMETERS) {
  const Move rule = {kind, most, n, to};
  for (long long e = first(); e < size; e += step()) {
    long long rest = e, i = divide(rest, inner), outer = divide(i, n), base = outer * to * inner + rest;
    const long long by = rule.amount(table[outer / parts * columns + column]);
    R sum = 0;
    if (kind == MOVE_REFLECT) {
      for (int mirrored = 0; mirrored < 2; ++mirrored) {
        long long at = ((mirrored ? 2 * n - 1 - i : i) + by) % (2 * n);
        if (at < 0) at += 2 * n;
        if (at < to) sum += fetch_real<R>(x, from, base + at * inner);
      }
    } else {
      long long least = i + by, most_ = i + by;
      if (kind == MOVE_FLIP) least = most_ = by ? n - 1 - i : i;
      if (kind == MOVE_NEAREST && i == 0) least = 0;
      if (kind == MOVE_NEAREST && i == n - 1) most_ = n - 1;
      if (least < 0) least = 0;
      for (long long at = least; at <= most_ && at < to; ++at) sum += fetch_real<R>(x, from, base + at * inner);
    }
    keep_real<R>(y, into, e, sum);
  }
}

// The sample that sample s of the result shows, or -1. Each axis has a row: kind, most, n, to, column.
__device__ inline long long shown(long long s, const long long *rules, int axes, const double *table, long long columns) {
  long long rest = s, at = 0, stride = 1;
  for (int a = axes - 1; a >= 0; --a) {
    const long long *r = rules + 5 * a;
    const Move rule = {r[0], r[1], r[2], r[3]};
    long long i = rest;
    rest = divide(i, rule.to);
    long long k = rule.source(rule.kind == MOVE_STAY ? 0 : rule.amount(table[s * columns + r[4]]), i);
    if (k < 0) return -1;
    at += stride * k;
    stride *= rule.n;
  }
  return at;
}

#define NNRS_SAMPLE_PARAMETERS                                                                                      \
  const void *x, int from, void *y, int into, long long size, long long inner, long long samples,                  \
      const long long *rules, int axes, const double *table, long long columns, double constant

template <class R>
__device__ inline void move_samples(NNRS_SAMPLE_PARAMETERS) {
  for (long long e = first(); e < size; e += step()) {
    long long rest = e, s = divide(rest, inner), at = shown(s, rules, axes, table, columns);
    keep_real<R>(y, into, e, at < 0 ? (R)constant : fetch_real<R>(x, from, at * inner + rest));
  }
}

template <class R>
__device__ inline void unmove_samples(NNRS_SAMPLE_PARAMETERS) {
  for (long long e = first(); e < size; e += step()) {
    long long rest = e, own = divide(rest, inner);
    R sum = 0;
    for (long long s = 0; s < samples; ++s) {
      if (shown(s, rules, axes, table, columns) == own) sum += fetch_real<R>(x, from, s * inner + rest);
    }
    keep_real<R>(y, into, e, sum);
  }
}

}  // namespace nnrs

#define NNRS_MOVES(R, suffix)                                                                                       \
  extern "C" __global__ void move_##suffix(NNRS_MOVE_PARAMETERS) {                                                  \
    nnrs::move<R>(x, from, y, into, size, n, to, inner, parts, table, columns, column, kind, most, constant);       \
  }                                                                                                                 \
  extern "C" __global__ void unmove_##suffix(NNRS_MOVE_PARAMETERS) {                                                \
    nnrs::unmove<R>(x, from, y, into, size, n, to, inner, parts, table, columns, column, kind, most, constant);     \
  }                                                                                                                 \
  extern "C" __global__ void move_samples_##suffix(NNRS_SAMPLE_PARAMETERS) {                                        \
    nnrs::move_samples<R>(x, from, y, into, size, inner, samples, rules, axes, table, columns, constant);           \
  }                                                                                                                 \
  extern "C" __global__ void unmove_samples_##suffix(NNRS_SAMPLE_PARAMETERS) {                                      \
    nnrs::unmove_samples<R>(x, from, y, into, size, inner, samples, rules, axes, table, columns, constant);         \
  }

NNRS_MOVES(float, f32)
NNRS_MOVES(double, f64)
