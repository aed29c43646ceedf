// Elements of any type, copied as words.
#ifndef NNRS_WORDS
#define NNRS_WORDS

#include "common.cuh"

namespace nnrs {

struct alignas(16) Wide {
  u64 a, b;
};

// NaN of every floating-point type.
__device__ inline void absent(u16 &w) { w = 0xffff; }
__device__ inline void absent(u32 &w) { w = 0xffffffffu; }
__device__ inline void absent(u64 &w) { w = ~0ull; }
__device__ inline void absent(Wide &w) { w.a = w.b = ~0ull; }

}  // namespace nnrs

#endif
