// What generated kernels stand on (kernels/src/expr/cuda/generated.rs): a thread's elements of an array as one pack, read
// and written by accesses as wide as they can be.
#ifndef NNRS_GENERATED
#define NNRS_GENERATED

#include "common.cuh"

namespace nnrs {

// Words that one access moves.
template <int BYTES> struct alignas(16) Chunk { u32 w[4]; };
template <> struct alignas(8) Chunk<8> { u32 w[2]; };
template <> struct alignas(4) Chunk<4> { u32 w; };
template <> struct alignas(2) Chunk<2> { u16 w; };
template <> struct Chunk<1> { unsigned char w; };

__device__ inline u64 least(u64 a, u64 b) { return a < b ? a : b; }

template <class T, int N>
struct Pack {
  enum { BYTES = N * sizeof(T), WIDE = BYTES < 16 ? BYTES : 16 };
  union {
    T v[N];
    Chunk<WIDE> chunk[BYTES / WIDE];
  };

  __device__ inline void wide(const T *x) {
#pragma unroll
    for (int k = 0; k < BYTES / WIDE; ++k) chunk[k] = ((const Chunk<WIDE> *)x)[k];
  }

  // From element i on, of n. `aligned`: the array is, as wide accesses need it.
  template <bool aligned>
  __device__ inline void load(const T *x, u64 i, u64 n) {
    if (aligned && i + N <= n) {
      wide(x + i);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] = x[least(i + k, n - 1)];
    }
  }

  template <bool aligned>
  __device__ inline void store(T *y, u64 i, u64 n) const {
    if (aligned && i + N <= n) {
#pragma unroll
      for (int k = 0; k < BYTES / WIDE; ++k) ((Chunk<WIDE> *)(y + i))[k] = chunk[k];
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (i + k < n) y[i + k] = v[k];
    }
  }

  // The next element to the front: a loop that is not unrolled keeps its values in registers so.
  __device__ inline void turn() {
#pragma unroll
    for (int k = 0; k + 1 < N; ++k) v[k] = v[k + 1];
  }
};

template <class R, class T> __device__ inline R real(T v) { return (R)v; }
template <class R> __device__ inline R real(half v) { return (R)to_float(v); }
template <class R> __device__ inline R real(bfloat16 v) { return (R)to_float(v); }

// i / d for i below 2^31; the host knows the magic number and the shift of each d.
__device__ inline u32 quotient(u32 i, u32 magic, u32 shift) { return (__umulhi(i, magic) + i) >> shift; }

// A record of a pass over many arrays: the last one whose chunks begin at or before this block's.
__device__ inline const u64 *record(const u64 *table, int words, int count) {
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (table[(long long)middle * words + 1] <= blockIdx.x) low = middle;
    else high = middle;
  }
  return table + (long long)low * words;
}

}  // namespace nnrs

#endif
