// Determinants, inverses and Cholesky factors of matrices of n rows and columns, a block a matrix, in double.
#include "common.cuh"

namespace nnrs {

// As of `Wanted` in kernels/src/kernel/batch_matrix/mod.rs.
enum { DETERMINANT, LOG_DETERMINANT, INVERSE, LOWER, UPPER, COFACTORS };

}  // namespace nnrs

// Gauss's elimination, for the inverse and the cofactors Gauss-Jordan's, with the largest element of each column as its pivot. Of
// cofactors the last pivot is no divisor, so it may be 0; a column that has no other one becomes the last. If two have none, all is 0.
extern "C" __global__ void __launch_bounds__(128) eliminate(const void *x, int from, void *y, int to, double *work,
                                                            long long batch, long long n, int wanted) {
  using namespace nnrs;
  NNRS_SHARED(long long, pivot, 1);
  const int t = (int)threadIdx.x, threads = (int)blockDim.x;
  double *a = work + blockIdx.x * 2 * n * n, *inverse = a + n * n;
  const bool cofactors = wanted == COFACTORS, whole = wanted == INVERSE || cofactors;
  const long long last = n - 1, steps = cofactors ? last : n;
  for (long long m = blockIdx.x; m < batch; m += gridDim.x) {
    for (long long e = t; e < n * n; e += threads) {
      a[e] = fetch_real<double>(x, from, m * n * n + e);
      if (whole) inverse[e] = e / n == e % n;
    }
    bool singular = false, odd = false;
    long long exchanged = -1;  // the column that became the last one
    for (long long k = 0; k < steps; ++k) {
      __syncthreads();
      if (t == 0) {
        long long best = k;
        for (long long i = k + 1; i < n; ++i)
          if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        pivot[0] = cofactors && a[best * n + k] == 0 ? -1 : best;
      }
      __syncthreads();
      const long long p = pivot[0];
      if (p < 0) {
        singular |= exchanged >= 0;
        if (singular) break;
        exchanged = k--;
        odd = !odd;
        __syncthreads();
        for (long long i = t; i < n; i += threads) {
          const double one = a[i * n + exchanged];
          a[i * n + exchanged] = a[i * n + last], a[i * n + last] = one;
        }
        continue;
      }
      for (long long j = t; p != k && j < n; j += threads) {
        const double one = a[k * n + j];
        a[k * n + j] = a[p * n + j], a[p * n + j] = one;
        if (whole) {
          const double other = inverse[k * n + j];
          inverse[k * n + j] = inverse[p * n + j], inverse[p * n + j] = other;
        }
      }
      __syncthreads();
      const double v = a[k * n + k];
      odd ^= p != k;
      singular |= v == 0;
      if (v == 0) continue;
      // The elements of column k are read by all and change no more.
      const long long width = whole ? 2 * n : n;
      for (long long e = t; e < n * width; e += threads) {
        const long long i = e / width, j = e % width;
        if (i == k || (!whole && i < k) || (j <= k)) continue;
        const double factor = a[i * n + k] / v;
        if (j < n)
          a[i * n + j] -= factor * a[k * n + j];
        else
          inverse[i * n + j - n] -= factor * inverse[k * n + j - n];
      }
    }
    __syncthreads();
    if (cofactors) {
      double product = odd ? -1 : 1;
      for (long long k = 0; k < last; ++k) product *= a[k * n + k];
      for (long long e = t; e < n * n; e += threads) {
        const long long i = e / n, j = e % n, row = exchanged < 0 ? i : i == last ? exchanged : i == exchanged ? last : i;
        double v = inverse[last * n + j];
        if (i != last) v = (a[last * n + last] * inverse[e] - a[i * n + last] * v) / a[i * n + i];
        keep_real<double>(y, to, (m * n + j) * n + row, singular ? 0 : product * v);
      }
    } else if (whole) {
      for (long long e = t; e < n * n; e += threads) {
        const long long i = e / n;
        keep_real<double>(y, to, m * n * n + e, singular ? (double)NNRS_NAN : inverse[e] / a[i * n + i]);
      }
    } else if (t == 0) {
      // Not on the way: what lives through the elimination takes registers from it.
      double product = odd ? -1 : 1, logarithm = 0;
      for (long long k = 0; k < n; ++k) {
        product *= a[k * n + k];
        logarithm += log(fabs(a[k * n + k]));
      }
      keep_real<double>(y, to, m, wanted == DETERMINANT ? product : logarithm);
    }
    __syncthreads();
  }
}

// Cholesky's decomposition, column by column, of the lower triangle.
extern "C" __global__ void __launch_bounds__(128) cholesky(const void *x, int from, void *y, int to, double *work,
                                                           long long batch, long long n, int wanted) {
  using namespace nnrs;
  const int t = (int)threadIdx.x, threads = (int)blockDim.x;
  double *l = work + blockIdx.x * 2 * n * n;
  for (long long m = blockIdx.x; m < batch; m += gridDim.x) {
    for (long long e = t; e < n * n; e += threads) l[e] = fetch_real<double>(x, from, m * n * n + e);
    bool definite = true;
    for (long long k = 0; k < n; ++k) {
      __syncthreads();
      double rest = l[k * n + k];
      for (long long j = 0; j < k; ++j) rest -= l[k * n + j] * l[k * n + j];
      definite = definite && rest > 0;
      const double root = sqrt(rest);
      __syncthreads();
      if (t == 0) l[k * n + k] = root;
      for (long long i = k + 1 + t; i < n; i += threads) {
        double v = l[i * n + k];
        for (long long j = 0; j < k; ++j) v -= l[i * n + j] * l[k * n + j];
        l[i * n + k] = v / root;
      }
    }
    __syncthreads();
    for (long long e = t; e < n * n; e += threads) {
      const long long i = e / n, j = e % n, row = wanted == UPPER ? j : i, column = wanted == UPPER ? i : j;
      const double v = column > row ? 0 : l[row * n + column];
      keep_real<double>(y, to, m * n * n + e, definite ? v : (double)NNRS_NAN);
    }
    __syncthreads();
  }
}
