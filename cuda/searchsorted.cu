// Where numbers belong in sorted lines of n elements: how many are less, or not greater.
#include "common.cuh"

namespace nnrs {

// NaN is the largest.
__device__ inline bool less_than(double a, double b) { return a < b || (b != b && a == a); }

}  // namespace nnrs

extern "C" __global__ void searchsorted(const void *lines, int type, const void *values, int from, void *y, int to,
                                        long long size, long long n, long long each, int right) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    const double v = fetch_real<double>(values, from, i);
    const long long base = i / each * n;
    long long low = 0, high = n;
    while (low < high) {
      const long long middle = low + (high - low) / 2;
      const double a = fetch_real<double>(lines, type, base + middle);
      if (right ? !less_than(v, a) : less_than(a, v))
        low = middle + 1;
      else
        high = middle;
    }
    keep_real<double>(y, to, i, (double)low);
  }
}
