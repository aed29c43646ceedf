// The indices of places in an array, an axis a row; the largest number for a place beyond the array.
#include "common.cuh"

extern "C" __global__ void unravel(const long long *places, long long n, const long long *sizes, int axes, long long size,
                                   unsigned long long *y) {
  using namespace nnrs;
  for (long long k = first(); k < n; k += step()) {
    long long rest = places[k];
    const bool there = rest >= 0 && rest < size;
    for (int a = axes - 1; a >= 0; --a) {
      long long at = rest;
      if (there) rest = divide(at, sizes[a]);
      y[a * n + k] = there ? (u64)at : ~0ull;
    }
  }
}
