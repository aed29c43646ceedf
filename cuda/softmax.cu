// Softmax and what is made of it along one axis. An array is (outer, n, inner), a row what lies along the axis.
#include "team.cuh"

namespace nnrs {

// The largest of some elements, and the sum of exp(x - max).
template <class R>
struct Peak {
  R max, sum;
};

template <class R>
struct Higher {
  __device__ inline R part(const Peak<R> &p, R max) const { return p.max == max ? p.sum : p.sum * exp(p.max - max); }
  __device__ inline Peak<R> operator()(const Peak<R> &a, const Peak<R> &b) const {
    R max = a.max > b.max ? a.max : b.max;
    return {max, part(a, max) + part(b, max)};
  }
};

// In one pass over the row. NaN and infinity make the sum NaN; -inf adds nothing, also where nothing else has come yet.
template <class R>
__device__ inline Peak<R> peak(const void *x, int type, long long base, long long n, long long inner, const Team &team) {
  Peak<R> p = {-NNRS_INF, 0};
  for (long long k = team.rank; k < n; k += BATCH * team.size) {
    R v[BATCH], top = p.max;
    load<R>(v, x, type, base, inner, k, n, team.size, -NNRS_INF);
    for (int u = 0; u < BATCH; ++u) top = v[u] > top ? v[u] : top;
    if (top > p.max) p = {top, p.sum * exp(p.max - top)};
    for (int u = 0; u < BATCH; ++u)
      if (v[u] != p.max || v[u] > -NNRS_INF) p.sum += exp(v[u] - p.max);
  }
  return all(p, team, Higher<R>());
}

__device__ inline long long row_base(long long row, long long n, long long inner) {
  long long column = row, outer = divide(column, inner);
  return outer * n * inner + column;
}

template <class R>
__device__ inline void softmax(const void *x, int from, void *y, int to, long long rows, long long n, long long inner,
                               int size, int log_) {
  Team team(blockIdx.x, size, inner == 1);
  bool live = team.row < rows;
  long long base = row_base(team.row, n, inner);
  Peak<R> p = peak<R>(x, from, base, live ? n : 0, inner, team);
  R log_sum = log(p.sum), each = 1 / p.sum;
  for (long long k = team.rank; live && k < n; k += BATCH * team.size) {
    R v[BATCH];
    load<R>(v, x, from, base, inner, k, n, team.size, 0);
    for (int u = 0; u < BATCH; ++u) {
      long long at = k + u * team.size;
      R d = v[u] - p.max;
      if (at < n) keep_real<R>(y, to, base + at * inner, log_ ? d - log_sum : exp(d) * each);
    }
  }
}

// gx may lie over gy.
template <class R>
__device__ inline void softmax_backward(const void *y, int y_type, const void *gy, int gy_type, void *gx, int to,
                                        long long rows, long long n, long long inner, int size, int log_, int add) {
  Team team(blockIdx.x, size, inner == 1);
  long long base = row_base(team.row, n, inner), end = team.row < rows ? n : 0;
  R sum = 0;
  for (long long k = team.rank; k < end; k += BATCH * team.size) {
    R v[BATCH], g[BATCH];
    load<R>(g, gy, gy_type, base, inner, k, end, team.size, 0);
    if (!log_) load<R>(v, y, y_type, base, inner, k, end, team.size, 0);
    for (int u = 0; u < BATCH; ++u) sum += log_ ? g[u] : g[u] * v[u];
  }
  sum = all(sum, team, Add());
  for (long long k = team.rank; k < end; k += BATCH * team.size) {
    R v[BATCH], g[BATCH];
    load<R>(g, gy, gy_type, base, inner, k, end, team.size, 0);
    load<R>(v, y, y_type, base, inner, k, end, team.size, 0);
    for (int u = 0; u < BATCH; ++u) {
      long long at = k + u * team.size, i = base + at * inner;
      R r = log_ ? g[u] - exp(v[u]) * sum : v[u] * (g[u] - sum);
      if (at < end) keep_real<R>(gx, to, i, add ? fetch_real<R>(gx, to, i) + r : r);
    }
  }
}

// y = -log_softmax(x)[label]; 0 where the label is negative, NaN where it is none of the n.
template <class R>
__device__ inline void cross_entropy(const void *x, int from, const long long *labels, void *y, int to, long long rows,
                                     long long n, long long inner, int size) {
  Team team(blockIdx.x, size, inner == 1);
  bool live = team.row < rows;
  long long base = row_base(team.row, n, inner), label = live ? labels[team.row] : -1;
  Peak<R> p = peak<R>(x, from, base, live ? n : 0, inner, team);
  if (!live || team.rank != 0) return;
  R loss = is_left_out(label) ? (R)0 : (R)NNRS_NAN;
  if (label >= 0 && label < n) loss = log(p.sum) - (fetch_real<R>(x, from, base + label * inner) - p.max);
  keep_real<R>(y, to, team.row, loss);
}

// gx = gy (softmax(x) - [k = label]); 0 where the label is negative.
template <class R>
__device__ inline void cross_entropy_backward(const void *x, int from, const long long *labels, const void *gy,
                                              int gy_type, void *gx, int to, long long rows, long long n,
                                              long long inner, int size, int add) {
  Team team(blockIdx.x, size, inner == 1);
  bool live = team.row < rows;
  long long base = row_base(team.row, n, inner), label = live ? labels[team.row] : -1;
  Peak<R> p = peak<R>(x, from, base, live ? n : 0, inner, team);
  bool left_out = is_left_out(label);
  R g = live && !left_out ? fetch_real<R>(gy, gy_type, team.row) : (R)0;
  R factor = left_out || (label >= 0 && label < n) ? g / p.sum : (R)NNRS_NAN;
  for (long long k = team.rank; live && k < n; k += BATCH * team.size) {
    R v[BATCH];
    load<R>(v, x, from, base, inner, k, n, team.size, 0);
    for (int u = 0; u < BATCH; ++u) {
      long long at = k + u * team.size, i = base + at * inner;
      R r = left_out ? (R)0 : exp(v[u] - p.max) * factor;
      if (at == label) r -= g;
      if (at < n) keep_real<R>(gx, to, i, add ? fetch_real<R>(gx, to, i) + r : r);
    }
  }
}

}  // namespace nnrs

#define NNRS_SOFTMAX(R, suffix)                                                                                          \
  extern "C" __global__ void softmax_##suffix(const void *x, int from, void *y, int to, long long rows, long long n,     \
                                              long long inner, int size, int log_) {                                    \
    nnrs::softmax<R>(x, from, y, to, rows, n, inner, size, log_);                                                        \
  }                                                                                                                      \
  extern "C" __global__ void softmax_backward_##suffix(const void *y, int y_type, const void *gy, int gy_type, void *gx, \
                                                       int to, long long rows, long long n, long long inner, int size,   \
                                                       int log_, int add) {                                              \
    nnrs::softmax_backward<R>(y, y_type, gy, gy_type, gx, to, rows, n, inner, size, log_, add);                          \
  }                                                                                                                      \
  extern "C" __global__ void cross_entropy_##suffix(const void *x, int from, const long long *labels, void *y, int to,   \
                                                    long long rows, long long n, long long inner, int size) {            \
    nnrs::cross_entropy<R>(x, from, labels, y, to, rows, n, inner, size);                                                \
  }                                                                                                                      \
  extern "C" __global__ void cross_entropy_backward_##suffix(                                                            \
      const void *x, int from, const long long *labels, const void *gy, int gy_type, void *gx, int to, long long rows,   \
      long long n, long long inner, int size, int add) {                                                                 \
    nnrs::cross_entropy_backward<R>(x, from, labels, gy, gy_type, gx, to, rows, n, inner, size, add);                    \
  }

NNRS_SOFTMAX(float, f32)
NNRS_SOFTMAX(double, f64)
