// Labels along an axis of an array (outer, n, inner): losses and errors of many classes. What is said of a label that is
// none of the n numbers is NaN.
#include "team.cuh"

namespace nnrs {

__device__ inline long long element(long long row, long long label, long long n, long long inner) {
  long long column = row, outer = divide(column, inner);
  return (outer * n + label) * inner + column;
}

// Not less than the smallest normal float; NaN stays.
template <class R>
__device__ inline R guarded(R v) {
  const R tiny = (R)1.17549435082228750797e-38;
  return v < tiny ? tiny : v;
}

// y = -log(x[label])
template <class R>
__device__ inline void log_loss(const void *x, int from, const long long *labels, void *y, int to, long long rows,
                                long long n, long long inner) {
  for (long long r = first(); r < rows; r += step()) {
    long long label = labels[r];
    R v = is_left_out(label) ? (R)0 : (R)NNRS_NAN;
    if (label >= 0 && label < n) v = -log(guarded(fetch_real<R>(x, from, element(r, label, n, inner))));
    keep_real<R>(y, to, r, v);
  }
}

// Adds the gradient of log_loss at the labels.
template <class R>
__device__ inline void log_loss_backward(const void *x, int from, const long long *labels, const void *gy, int gy_type,
                                         void *gx, int to, long long rows, long long n, long long inner) {
  for (long long r = first(); r < rows; r += step()) {
    long long label = labels[r];
    if (label < 0 || label >= n) continue;
    long long i = element(r, label, n, inner);
    R v = fetch_real<R>(gy, gy_type, r) / guarded(fetch_real<R>(x, from, i));
    keep_real<R>(gx, to, i, fetch_real<R>(gx, to, i) - v);
  }
}

// 1 where more than `most` of a row's elements are at least the label's.
template <class R>
__device__ inline void top_errors(const void *x, int from, const long long *labels, void *y, int to, long long rows,
                                  long long n, long long inner, int size, long long most) {
  Team team(blockIdx.x, size, inner == 1);
  bool live = team.row < rows;
  long long label = live ? labels[team.row] : -1, count = 0;
  bool known = label >= 0 && label < n;
  R mine = known ? fetch_real<R>(x, from, element(team.row, label, n, inner)) : (R)0;
  for (long long k = team.rank; known && k < n; k += team.size)
    count += !(fetch_real<R>(x, from, element(team.row, k, n, inner)) < mine);  // NaN counts
  count = all(count, team, Add());
  R error = known || is_left_out(label) ? (R)(known && count > most) : (R)NNRS_NAN;
  if (live && team.rank == 0) keep_real<R>(y, to, team.row, error);
}

}  // namespace nnrs

// 1 at the labels, 0 elsewhere.
extern "C" __global__ void label_mask(const long long *labels, void *y, int to, long long size, long long n,
                                      long long inner) {
  for (long long i = nnrs::first(); i < size; i += nnrs::step()) {
    long long column = i, k = nnrs::divide(column, inner), outer = nnrs::divide(k, n);
    nnrs::keep_real<float>(y, to, i, labels[outer * inner + column] == k);
  }
}

// Counts rows by their label and the place of their largest element. Whole numbers: the order of the sums does not matter.
extern "C" __global__ void confusion(const void *x, int from, const long long *labels, int *counts, long long rows, long long n,
                                     long long inner) {
  using namespace nnrs;
  for (long long r = first(); r < rows; r += step()) {
    const long long label = labels[r];
    if (label < 0 || label >= n) continue;
    long long found = 0;
    double most = fetch_real<double>(x, from, element(r, 0, n, inner));
    for (long long k = 1; k < n; ++k) {
      const double v = fetch_real<double>(x, from, element(r, k, n, inner));
      if (v > most) most = v, found = k;
    }
    atomicAdd(&counts[label * n + found], 1);
  }
}

#define NNRS_LABELS(R, suffix)                                                                                          \
  extern "C" __global__ void log_loss_##suffix(const void *x, int from, const long long *labels, void *y, int to,       \
                                               long long rows, long long n, long long inner) {                          \
    nnrs::log_loss<R>(x, from, labels, y, to, rows, n, inner);                                                          \
  }                                                                                                                     \
  extern "C" __global__ void log_loss_backward_##suffix(const void *x, int from, const long long *labels,               \
                                                        const void *gy, int gy_type, void *gx, int to, long long rows,  \
                                                        long long n, long long inner) {                                 \
    nnrs::log_loss_backward<R>(x, from, labels, gy, gy_type, gx, to, rows, n, inner);                                   \
  }                                                                                                                     \
  extern "C" __global__ void top_errors_##suffix(const void *x, int from, const long long *labels, void *y, int to,     \
                                                 long long rows, long long n, long long inner, int size,                \
                                                 long long most) {                                                      \
    nnrs::top_errors<R>(x, from, labels, y, to, rows, n, inner, size, most);                                            \
  }

NNRS_LABELS(float, f32)
NNRS_LABELS(double, f64)
