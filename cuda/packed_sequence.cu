// Sequences of several lengths, padded or packed: a packed row for each step of each sequence, steps first.
#include "common.cuh"

// The numbers of the padded rows, in the order of the packed ones. `counts` are the lengths of the sequences, from the longest
// down, or how many sequences have each step; places beyond `rows` are left out.
extern "C" __global__ void packed_rows(const long long *counts, long long n, int are_lengths, long long batch, long long steps,
                                       int batch_first, long long *numbers, long long rows, long long places) {
  using namespace nnrs;
  for (long long i = first(); i < places; i += step()) {
    long long b = i, t = divide(b, batch), row = are_lengths ? 0 : b;
    const bool there = are_lengths ? counts[b] > t : t < n && counts[t] > b;
    if (!there) continue;
    // Nobody has checked the counts: each is cut to what it can be, so sums stay sums and no two places share a row.
    if (are_lengths)
      for (long long k = 0; k < n; ++k) row += (counts[k] < t ? counts[k] < 0 ? 0 : counts[k] : t) + (k < b && counts[k] > t);
    else
      for (long long k = 0; k < t; ++k) row += counts[k] < batch ? counts[k] < 0 ? 0 : counts[k] : batch;
    if (row < rows) numbers[row] = batch_first ? b * steps + t : t * batch + b;
  }
}

// How many counts are greater than each number from 0 on.
extern "C" __global__ void greater(const long long *counts, long long n, int *y, long long size) {
  for (long long i = nnrs::first(); i < size; i += nnrs::step()) {
    int sum = 0;
    for (long long k = 0; k < n; ++k) sum += counts[k] > i;
    y[i] = sum;
  }
}
