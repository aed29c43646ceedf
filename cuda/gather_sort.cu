// Sorts numbers by their bytes, the lowest first: equal ones stay in order, so the result does not depend on timing.
#include "common.cuh"

namespace nnrs {

const int SORT_THREADS = 256, SORT_TILE = 2048;

__device__ inline int digit_of(u32 key, int shift) { return (int)(key >> shift & 255); }

}  // namespace nnrs

// Keys of row numbers below `rows`, all others `rows`; and their places.
extern "C" __global__ void sort_keys(const long long *x, long long n, long long rows, unsigned *keys, unsigned *order) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    keys[i] = (u32)(x[i] >= 0 && x[i] < rows ? x[i] : rows);
    order[i] = (u32)i;
  }
}

// How often each digit occurs in each block's tile: digits as rows, blocks as columns.
extern "C" __global__ void __launch_bounds__(256) sort_count(const unsigned *keys, long long n, int shift, unsigned *counts) {
  using namespace nnrs;
  NNRS_SHARED(u32, count, 256);
  count[threadIdx.x] = 0;
  __syncthreads();
  const long long begin = blockIdx.x * (long long)SORT_TILE;
  for (int e = threadIdx.x; e < SORT_TILE && begin + e < n; e += SORT_THREADS)
    atomicAdd(&count[digit_of(keys[begin + e], shift)], 1u);
  __syncthreads();
  counts[threadIdx.x * (long long)gridDim.x + blockIdx.x] = count[threadIdx.x];
}

// Each count becomes the sum of those before it. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) sort_scan(unsigned *counts, long long n) {
  using namespace nnrs;
  NNRS_SHARED(u32, sums, 32);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  u32 carry = 0;
  for (long long begin = 0; begin < n; begin += 1024) {
    const long long i = begin + t;
    const u32 own = i < n ? counts[i] : 0;
    u32 sum = own;
    for (int d = 1; d < 32; d *= 2) {
      const u32 before = __shfl_up_sync(0xffffffffu, sum, d);
      if (lane >= d) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      u32 whole = sums[lane];
      for (int d = 1; d < 32; d *= 2) {
        const u32 before = __shfl_up_sync(0xffffffffu, whole, d);
        if (lane >= d) whole += before;
      }
      sums[lane] = whole;
    }
    __syncthreads();
    if (i < n) counts[i] = carry + (warp ? (u32)sums[warp - 1] : 0) + sum - own;
    carry += sums[31];
    __syncthreads();
  }
}

// Puts the keys of each block's tile where the counts say.
extern "C" __global__ void __launch_bounds__(256) sort_place(const unsigned *keys, const unsigned *order, long long n,
                                                             int shift, const unsigned *counts, unsigned *new_keys,
                                                             unsigned *new_order) {
  using namespace nnrs;
  NNRS_SHARED(u32, base, 256);
  NNRS_SHARED(u32, found, 8 * 256);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  base[t] = counts[t * (long long)gridDim.x + blockIdx.x];
  const long long begin = blockIdx.x * (long long)SORT_TILE;
  for (int e = t; e - t < SORT_TILE; e += SORT_THREADS) {
    const bool valid = begin + e < n;
    const u32 key = valid ? keys[begin + e] : 0;
    const int digit = digit_of(key, shift);
    // The lanes of this warp with the same digit; the first of them counts.
    u32 same = __ballot_sync(0xffffffffu, valid);
    for (int b = 0; b < 8; ++b) {
      const u32 ones = __ballot_sync(0xffffffffu, digit >> b & 1);
      same &= digit >> b & 1 ? ones : ~ones;
    }
    for (int d = lane; d < 256; d += 32) found[warp * 256 + d] = 0;
    __syncwarp();
    const u32 rank = (u32)__popc(same & ((1u << lane) - 1));
    if (valid && rank == 0) found[warp * 256 + digit] = (u32)__popc(same);
    __syncthreads();
    u32 sum = base[t];
    for (int w = 0; w < 8; ++w) {
      const u32 count = found[w * 256 + t];
      found[w * 256 + t] = sum;
      sum += count;
    }
    base[t] = sum;
    __syncthreads();
    if (valid) {
      const u32 at = (u32)found[warp * 256 + digit] + rank;
      new_keys[at] = key;
      new_order[at] = order[begin + e];
    }
    __syncthreads();
  }
}
