// Axes merged by the host (kernels/src/kernel/reduction/cuda/mod.rs): those that stay, and those that are reduced.
#ifndef NNRS_AXES
#define NNRS_AXES

#include "common.cuh"

namespace nnrs {

struct Axes {
  long long kept, reduced;
  long long kept_size[8], kept_stride[8], size[8], stride[8];
};

__device__ inline long long offset(long long i, const long long *size, const long long *stride, long long axes) {
  long long at = 0;
#pragma unroll 1
  for (int a = (int)axes - 1; a > 0; --a) {
    long long rest = i;
    i = divide(rest, size[a]);
    at += rest * stride[a];
  }
  return axes ? at + i * stride[0] : at;
}

// The first element of output o, and how far from it element i is.
__device__ inline long long base_of(const Axes *axes, long long o) {
  return offset(o, axes->kept_size, axes->kept_stride, axes->kept);
}

__device__ inline long long reduced_at(const Axes *axes, long long i) {
  return offset(i, axes->size, axes->stride, axes->reduced);
}

}  // namespace nnrs

#endif
