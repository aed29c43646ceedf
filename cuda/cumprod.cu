// Products along an axis up to each element, and the recurrence of their derivative, in double; a thread a line. An array is
// (outer, n, inner).
#include "common.cuh"

extern "C" __global__ void cumprod(const void *x, int from, void *y, int to, long long lines, long long n, long long inner,
                                   int exclusive, int reverse) {
  using namespace nnrs;
  for (long long line = first(); line < lines; line += step()) {
    long long column = line, base = divide(column, inner) * n * inner;
    double product = 1;
    for (long long k = 0; k < n; ++k) {
      long long at = base + column + (reverse ? n - 1 - k : k) * inner;
      double before = product;
      product *= fetch_real<double>(x, from, at);
      keep_real<double>(y, to, at, exclusive ? before : product);
    }
  }
}

extern "C" __global__ void recurrence(const void *a, int a_type, const void *b, int b_type, void *y, int to, long long lines,
                                      long long n, long long inner, int reverse) {
  using namespace nnrs;
  for (long long line = first(); line < lines; line += step()) {
    long long column = line, base = divide(column, inner) * n * inner;
    double last = 0;
    for (long long k = 0; k < n; ++k) {
      long long at = base + column + (reverse ? n - 1 - k : k) * inner;
      last = fetch_real<double>(a, a_type, at) * last + fetch_real<double>(b, b_type, at);
      keep_real<double>(y, to, at, last);
    }
  }
}
