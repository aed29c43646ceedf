// A pass of a discrete Fourier transform for one factor of its size, over an axis of complex numbers.
#include "common.cuh"

namespace nnrs {

__device__ inline void both(float angle, float *sine, float *cosine) { sincosf(angle, sine, cosine); }
__device__ inline void both(double angle, double *sine, double *cosine) { sincos(angle, sine, cosine); }

// Cosine and sine of 2 pi k / n, 0 <= k < n, of an angle below pi / 4.
template <class R>
__device__ inline void root(long long k, long long n, R *cosine, R *sine) {
  const long long eighths = 8 * k;  // in eighths of 1 / n
  const int quarter = (int)((eighths + n) / (2 * n));
  const double rest = (double)(eighths - 2 * n * quarter) / (double)n;  // from -1 to 1 eighth
  R s, c;
  both((R)(rest * 0.78539816339744830962), &s, &c);
  switch (quarter & 3) {
    case 0: *cosine = c, *sine = s; break;
    case 1: *cosine = -s, *sine = c; break;
    case 2: *cosine = -c, *sine = -s; break;
    default: *cosine = s, *sine = -c;
  }
}

// Transforms of `done` numbers become such of `done` times `radix`: number `rest` of one is the sum over q of number
// rest % done of the q-th times the root q rest of the new size.
template <class R>
__device__ inline void fft(const void *x, int from, void *y, int to, long long count, long long n, long long inner,
                           long long done, long long radix, int inverse, double factor, int add) {
  const long long size = done * radix;
  for (long long e = first(); e < count; e += step()) {
    long long behind = e;
    long long line = divide(behind, inner);
    long long o = line;
    line = divide(o, n);
    long long rest = o;
    const long long block = divide(rest, size);
    long long k = rest;
    divide(k, done);
    const long long base = block * done + k, apart = n / radix;
    R re = 0, im = 0;
    long long turn = 0;
    for (long long q = 0; q < radix; ++q) {
      const long long at = 2 * ((line * n + base + q * apart) * inner + behind);
      const R a = fetch_real<R>(x, from, at), b = fetch_real<R>(x, from, at + 1);
      R c, s;
      root<R>(turn, size, &c, &s);
      if (!inverse) s = -s;
      re += a * c - b * s;
      im += a * s + b * c;
      turn += rest;
      if (turn >= size) turn -= size;
    }
    re *= (R)factor, im *= (R)factor;
    const long long at = 2 * e;
    keep_real<R>(y, to, at, add ? fetch_real<R>(y, to, at) + re : re);
    keep_real<R>(y, to, at + 1, add ? fetch_real<R>(y, to, at + 1) + im : im);
  }
}

}  // namespace nnrs

#define NNRS_FFT(R, suffix)                                                                                           \
  extern "C" __global__ void fft_##suffix(const void *x, int from, void *y, int to, long long count, long long n,     \
                                          long long inner, long long done, long long radix, int inverse,              \
                                          double factor, int add) {                                                   \
    nnrs::fft<R>(x, from, y, to, count, n, inner, done, radix, inverse, factor, add);                                 \
  }

NNRS_FFT(float, f32)
NNRS_FFT(double, f64)
