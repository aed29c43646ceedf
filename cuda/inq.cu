// Incremental network quantization: which weights are fixed, and what they become. `kept` has the values of those that are fixed,
// NaN for others.
#include "common.cuh"

namespace nnrs {

// What is known of all weights.
struct InqSizes {
  double free, largest;  // how many are not fixed; the largest finite magnitude
  long long at;          // the first of the largest magnitude, of which NaN is one
};

__device__ inline bool is_given(const void *given, int type, long long i) { return fabs(fetch_real<double>(given, type, i)) >= 1; }

// 2^e
__device__ inline double power(int e) {
  if (e > 1023) return __longlong_as_double(0x7ff0000000000000ll);
  if (e >= -1022) return __longlong_as_double((long long)(e + 1023) << 52);
  return e >= -1074 ? __longlong_as_double(1ll << (e + 1074)) : 0;
}

// The exponent of the power of two that is 2/3 to 4/3 of a positive number, by its logarithm in single precision, as on the
// host; log2(3/2) itself counts as above with `up`.
__device__ inline int exponent(double size, bool up) {
  const float log = (float)log2(size), whole = floorf(log), part = log - whole, halfway = 0.5849625f;
  return (int)whole + (part > halfway || (up && part == halfway));
}

// The power of two for a weight, from 3/4 of it to below 3/2, of `count` up to the one for `largest`; or 0. NaN stays.
__device__ inline double level(double w, double largest, int count) {
  if (!(largest > 0)) return 0;
  const double size = fabs(w);
  if (size != size) return w;
  const int most = exponent(largest, false), least = most + 1 - count;
  if (size < power(least - 1)) return 0;
  int e = exponent(size < power(most) ? size : power(most), true);
  e = e < least ? least : e > most ? most : e;
  return w < 0 ? -power(e) : power(e);
}

}  // namespace nnrs

// For each weight 1 where it is free, its magnitude, and what the free ones are sorted by.
extern "C" __global__ void inq_weights(const void *w, int wtype, const void *given, int gtype, const double *kept, long long n,
                                       unsigned char *is_free, double *magnitudes, double *keys) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    const bool fixed = kept[i] == kept[i];
    const double magnitude = fabs(fixed ? kept[i] : fetch_real<double>(w, wtype, i));
    is_free[i] = !fixed && !is_given(given, gtype, i);
    magnitudes[i] = magnitude;
    keys[i] = is_free[i] ? magnitude : -1;
  }
}

// By one block.
extern "C" __global__ void __launch_bounds__(256) inq_sizes(const unsigned char *is_free, const double *magnitudes, long long n,
                                                            nnrs::InqSizes *sizes) {
  using namespace nnrs;
  NNRS_SHARED(double, free, 256);
  NNRS_SHARED(double, largest, 256);
  NNRS_SHARED(u64, most, 256);
  NNRS_SHARED(long long, place, 256);
  const int t = (int)threadIdx.x;
  double count = 0, finite = 0;
  u64 best = 0;
  long long at = n;
  for (long long i = t; i < n; i += 256) {
    const double v = magnitudes[i];
    // In the order of magnitudes, NaN the largest.
    const u64 bits = v != v ? ~0ull : (u64)__double_as_longlong(v);
    count += is_free[i];
    if (v > finite && v < __longlong_as_double(0x7ff0000000000000ll)) finite = v;
    if (at == n || bits > best) best = bits, at = i;
  }
  free[t] = count, largest[t] = finite, most[t] = best, place[t] = at;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) {
      const double my_largest = largest[t], other_largest = largest[t + half];
      free[t] = (double)free[t] + (double)free[t + half];
      largest[t] = other_largest > my_largest ? other_largest : my_largest;
      const u64 mine = most[t], other = most[t + half];
      const long long my_place = place[t], other_place = place[t + half];
      const bool is_better = other_place < n && (my_place >= n || other > mine || (other == mine && other_place < my_place));
      if (is_better) most[t] = other, place[t] = other_place;
    }
  }
  if (t != 0) return;
  sizes->free = free[0];
  sizes->largest = largest[0];
  sizes->at = place[0];
}

// Marks the half of the free weights that come first in an order. Of one weight half is none, but the largest of all is marked.
extern "C" __global__ void inq_largest(const unsigned *places, const nnrs::InqSizes *sizes, long long n, unsigned char *chosen) {
  using namespace nnrs;
  const long long free = (long long)sizes->free;
  const long long half = free == 1 && sizes->at == places[0] ? 1 : free / 2;
  for (long long k = first(); k < n; k += step()) chosen[places[k]] = k < half;
}

// Marks each free weight with probability 1/2; `places` are theirs, then -1.
extern "C" __global__ void inq_random(const long long *places, const double *numbers, long long n, unsigned char *chosen) {
  using namespace nnrs;
  for (long long k = first(); k < n; k += step()) {
    if (places[k] >= 0) chosen[places[k]] = numbers[k] < 0.5;
  }
}

// Fixes what is given as fixed or chosen (`all`: everything), and gives weights and indicators as they are then.
extern "C" __global__ void inq_fix(const void *w, int wtype, const void *given, int gtype, double *kept,
                                   const unsigned char *chosen, int all, const nnrs::InqSizes *sizes, int count, long long n,
                                   void *weights, void *indicators) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    const double own = fetch_real<double>(w, wtype, i);
    double v = kept[i];
    if (v != v && (all || (chosen && chosen[i]) || is_given(given, gtype, i))) kept[i] = v = level(own, sizes->largest, count);
    keep_real<double>(weights, wtype, i, v == v ? v : own);
    keep_real<double>(indicators, gtype, i, v == v ? 1 : fetch_real<double>(given, gtype, i));
  }
}
