// Lines of an array (outer, n, inner) sorted by keys, equal keys by their places.
#include "common.cuh"

namespace nnrs {

// Elements that a block sorts in shared memory.
const int SORT_TILE = 1024;

// Whole numbers in the order of the numbers; NaN, whatever its sign, has the largest.
__device__ inline u64 sort_key(double v, int magnitudes, int reverse) {
  u64 bits = (u64)__double_as_longlong(magnitudes ? fabs(v) : v + 0.0);
  u64 key = v != v ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
  return reverse ? ~key : key;
}

__device__ inline bool comes_after(u64 key, u32 place, u64 other_key, u32 other_place) {
  return key > other_key || (key == other_key && place > other_place);
}

}  // namespace nnrs

// Keys and places of all lines; what pads a line comes last.
extern "C" __global__ void line_keys(const void *x, int from, long long lines, long long n, long long inner, long long width,
                                     int magnitudes, int reverse, unsigned long long *keys, unsigned *places,
                                     long long total) {
  using namespace nnrs;
  for (long long e = first(); e < total; e += step()) {
    long long k = e, line = divide(k, width);
    bool there = line < lines && k < n;
    if (there) {
      long long column = line, outer = divide(column, inner);
      keys[e] = sort_key(fetch_real<double>(x, from, (outer * n + k) * inner + column), magnitudes, reverse);
    } else {
      keys[e] = ~0ull;
    }
    places[e] = (u32)k;
  }
}

// One step of the bitonic network: pairs that are `gap` apart, in blocks of `size`.
extern "C" __global__ void line_step(unsigned long long *keys, unsigned *places, long long width, long long size,
                                     long long gap, long long pairs) {
  using namespace nnrs;
  for (long long p = first(); p < pairs; p += step()) {
    long long i = (p & ~(gap - 1)) * 2 + (p & (gap - 1)), j = i + gap;
    bool up = ((i & (width - 1)) & size) == 0;
    u64 a = keys[i], b = keys[j];
    u32 pa = places[i], pb = places[j];
    if (comes_after(a, pa, b, pb) == up) {
      keys[i] = b, keys[j] = a;
      places[i] = pb, places[j] = pa;
    }
  }
}

// The steps within a tile: all of blocks up to the tile if `size` is 2, else the last ones of blocks of `size`.
extern "C" __global__ void __launch_bounds__(512) line_tiles(unsigned long long *keys, unsigned *places, long long width,
                                                             long long size, long long unused) {
  using namespace nnrs;
  NNRS_SHARED(u64, key, 1024);
  NNRS_SHARED(u32, place, 1024);
  const int t = (int)threadIdx.x;
  const long long begin = blockIdx.x * (long long)SORT_TILE;
  for (int e = t; e < SORT_TILE; e += SORT_TILE / 2) {
    key[e] = keys[begin + e];
    place[e] = places[begin + e];
  }
  const long long most = size > 2 ? size : width < SORT_TILE ? width : SORT_TILE;
  for (long long s = size; s <= most; s *= 2) {
    for (int gap = (int)((s < SORT_TILE ? s : SORT_TILE) / 2); gap > 0; gap /= 2) {
      __syncthreads();
      const int i = (t & ~(gap - 1)) * 2 + (t & (gap - 1)), j = i + gap;
      const bool up = (((begin + i) & (width - 1)) & s) == 0;
      const u64 a = key[i], b = key[j];
      const u32 pa = place[i], pb = place[j];
      if (comes_after(a, pa, b, pb) == up) {
        key[i] = b, key[j] = a;
        place[i] = pb, place[j] = pa;
      }
    }
  }
  __syncthreads();
  for (int e = t; e < SORT_TILE; e += SORT_TILE / 2) {
    keys[begin + e] = key[e];
    places[begin + e] = place[e];
  }
}

// What lies where in sorted lines: elements, and where they were; each may be missing.
extern "C" __global__ void line_values(const unsigned *places, long long width, const void *x, int from, void *y, int to,
                                       unsigned long long *indices, long long size, long long n, long long inner) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    long long column = i, k = divide(column, inner), outer = divide(k, n);
    u32 place = places[(outer * inner + column) * width + k];
    if (y) keep_real<double>(y, to, i, fetch_real<double>(x, from, (outer * n + place) * inner + column));
    if (indices) indices[i] = place;
  }
}

// The first k elements of sorted rows: one after the other, or where they were.
extern "C" __global__ void top_values(const unsigned *places, long long width, const void *x, int from, void *y, int to,
                                      unsigned long long *indices, long long count, long long n, long long k, int reduce) {
  using namespace nnrs;
  for (long long i = first(); i < count; i += step()) {
    long long rank = i, row = divide(rank, k);
    u32 place = places[row * width + rank];
    keep_real<double>(y, to, reduce ? i : row * n + place, fetch_real<double>(x, from, row * n + place));
    if (indices) indices[i] = place;
  }
}

// Zeros in place of the elements whose magnitude is less than that of the sorted element number `rank`.
extern "C" __global__ void prune(const unsigned long long *keys, const unsigned *places, long long rank, const void *x,
                                 int from, void *y, int to, long long size) {
  using namespace nnrs;
  const double limit = fabs(fetch_real<double>(x, from, places[rank]));
  for (long long i = first(); i < size; i += step()) {
    double v = fetch_real<double>(x, from, i);
    keep_real<double>(y, to, i, fabs(v) < limit ? 0.0 : v);
  }
}
