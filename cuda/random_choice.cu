// Elements picked at random from rows by weights, as in kernels/src/kernel/random_choice/. Weights that cannot be count as 0.
#include "common.cuh"

namespace nnrs {

__device__ inline double weight(const void *w, int type, long long i) {
  const double v = fetch_real<double>(w, type, i);
  return v > 0 && v < (double)NNRS_INF ? v : 0.0;
}

}  // namespace nnrs

// Sums of the weights of a row up to each; a thread a row, in the order of the host.
extern "C" __global__ void choice_sums(const void *w, int type, double *sums, long long rows, long long n) {
  for (long long row = nnrs::first(); row < rows; row += nnrs::step()) {
    double sum = 0;
    for (long long i = 0; i < n; ++i) sums[row * n + i] = sum += nnrs::weight(w, type, row * n + i);
  }
}

// The element whose part of the sum a number falls into; -1 in a row without weights.
extern "C" __global__ void choice_pick(const double *sums, const double *numbers, long long *y, long long size, long long n,
                                       long long picks) {
  for (long long e = nnrs::first(); e < size; e += nnrs::step()) {
    const double *row = sums + e / picks * n;
    const double total = row[n - 1], at = numbers[e] * total;
    long long low = 0, high = n;
    while (low < high) {
      const long long middle = low + (high - low) / 2;
      if (row[middle] <= at) low = middle + 1;
      else high = middle;
    }
    // Rounded up to the whole sum: the last element that has a part of it.
    while (low >= n || (low > 0 && row[low] == row[low - 1])) --low;
    y[e] = total > 0 ? low : -1;
  }
}

// Exponential keys with the weights as rates.
extern "C" __global__ void choice_keys(const void *w, int type, const double *numbers, double *keys, long long size) {
  for (long long e = nnrs::first(); e < size; e += nnrs::step()) {
    const double v = nnrs::weight(w, type, e);
    keys[e] = v > 0 ? -log(1.0 - numbers[e]) / v : (double)NNRS_INF;
  }
}

// The elements with the least keys, from the least on; -1 for one without a weight.
extern "C" __global__ void choice_rank(const double *keys, long long *y, long long size, long long n, long long picks) {
  for (long long e = nnrs::first(); e < size; e += nnrs::step()) {
    const long long row = e / n, own = e - row * n;
    const double *k = keys + row * n;
    long long rank = 0;
    for (long long i = 0; i < n && rank < picks; ++i) rank += k[i] < k[own] || (k[i] == k[own] && i < own);
    if (rank < picks) y[row * picks + rank] = k[own] < (double)NNRS_INF ? own : -1;
  }
}
