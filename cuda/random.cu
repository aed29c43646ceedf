// Random numbers, the same ones as kernels/src/random/philox/ makes. A thread makes a block of four words; the 32 blocks of a group are
// a warp's, which writes neighbours together.
#include "philox.cuh"

namespace nnrs {

// How words become numbers: at least 0 and less than 1; 1 less that, more than 0 and exact near it.
__device__ inline float unit(const Words &w, int k, float) { return (float)(int)(w.w[k] >> 8) * (1.0f / (1 << 24)); }
__device__ inline float positive(const Words &w, int k, float) { return ((float)w.w[k] + 1.0f) * (1.0f / 4294967296.0f); }
__device__ inline double unit(const Words &w, int k, double) {
  return (double)(w.pair(k) >> 11) * (1.0 / 9007199254740992.0);
}
__device__ inline double positive(const Words &w, int k, double) {
  return ((double)(w.pair(k) >> 11) + 1.0) * (1.0 / 9007199254740992.0);
}

__device__ inline void both(float angle, float *sine, float *cosine) { sincosf(angle, sine, cosine); }
__device__ inline void both(double angle, double *sine, double *cosine) { sincos(angle, sine, cosine); }

// Numbers that a thread makes of its words, and the place of number k of block b.
template <class R>
__device__ inline int made() {
  return 16 / (int)sizeof(R);
}

__device__ inline long long place(long long block, int k, int made) {
  return block / 32 * 32 * made + 32 * k + block % 32;
}

// Blocks for n numbers.
__device__ inline long long blocks(long long n, int made) {
  long long per = 32 * made;
  return (n + per - 1) / per * 32;
}

template <class R>
__device__ inline void uniform(void *y, int type, long long n, Draw draw, R low, R width, R top) {
  const int m = made<R>();
  for (long long b = first(); b < blocks(n, m); b += step()) {
    Words w = philox(draw, (u64)b);
    for (int k = 0; k < m; ++k) {
      R v = low + width * unit(w, k, (R)0);
      if (place(b, k, m) < n) keep_real<R>(y, type, place(b, k, m), v > top ? top : v);
    }
  }
}

// By Box and Muller: radii from the first half of the words, angles from the second; cosines before sines.
template <class R>
__device__ inline void normal(void *y, int type, long long n, Draw draw, R mu, R sigma) {
  const int m = made<R>(), h = m / 2;
  for (long long b = first(); b < blocks(n, m); b += step()) {
    Words w = philox(draw, (u64)b);
    for (int k = 0; k < h; ++k) {
      R radius = sqrt((R)-2 * log(positive(w, k, (R)0)));
      R angle = (R)6.283185307179586 * unit(w, h + k, (R)0);
      R sine, cosine;
      both(angle, &sine, &cosine);
      if (place(b, k, m) < n) keep_real<R>(y, type, place(b, k, m), mu + sigma * (cosine * radius));
      if (place(b, h + k, m) < n) keep_real<R>(y, type, place(b, h + k, m), mu + sigma * (sine * radius));
    }
  }
}

// y = x * scale where the word is at least the threshold, x * 0 elsewhere.
template <class R>
__device__ inline void dropout(void *y, int to, const void *x, int from, long long n, Draw draw, u32 threshold,
                               R scale, int add) {
  for (long long b = first(); b < blocks(n, 4); b += step()) {
    Words w = philox(draw, (u64)b);
    for (int k = 0; k < 4; ++k) {
      long long i = place(b, k, 4);
      if (i >= n) continue;
      R v = fetch_real<R>(x, from, i) * (w.w[k] >= threshold ? scale : (R)0);
      keep_real<R>(y, to, i, add ? fetch_real<R>(y, to, i) + v : v);
    }
  }
}

}  // namespace nnrs

// At least low, and `range` of them.
extern "C" __global__ void integers(void *y, int type, long long n, NNRS_DRAW, long long low, unsigned long long range) {
  const nnrs::Draw draw(held, key, number);
  for (long long b = nnrs::first(); b < nnrs::blocks(n, 2); b += nnrs::step()) {
    nnrs::Words w = nnrs::philox(draw, (nnrs::u64)b);
    for (int k = 0; k < 2; ++k) {
      long long i = nnrs::place(b, k, 2);
      nnrs::u64 v = (nnrs::u64)low + __umul64hi(w.pair(k), range);
      if (i < n) nnrs::keep(y, type, i, (double)(long long)v);
    }
  }
}

#define NNRS_RANDOM(R, suffix)                                                                                        \
  extern "C" __global__ void uniform_##suffix(void *y, int type, long long n, NNRS_DRAW, R low, R width, R top) {      \
    nnrs::uniform<R>(y, type, n, nnrs::Draw(held, key, number), low, width, top);                                     \
  }                                                                                                                   \
  extern "C" __global__ void normal_##suffix(void *y, int type, long long n, NNRS_DRAW, R mu, R sigma) {               \
    nnrs::normal<R>(y, type, n, nnrs::Draw(held, key, number), mu, sigma);                                            \
  }                                                                                                                   \
  extern "C" __global__ void dropout_##suffix(void *y, int to, const void *x, int from, long long n, NNRS_DRAW,        \
                                              unsigned threshold, R scale, int add) {                                 \
    nnrs::dropout<R>(y, to, x, from, n, nnrs::Draw(held, key, number), threshold, scale, add);                        \
  }

NNRS_RANDOM(float, f32)
NNRS_RANDOM(double, f64)
