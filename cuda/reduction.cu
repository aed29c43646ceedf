// Sums, products and extremes over axes. The order of summation depends on sizes alone.
#include "axes.cuh"
#include "common.cuh"

namespace nnrs {

enum Reduction { SUM, PRODUCT, MAXIMUM, MINIMUM, SUM_ABS, SUM_SQUARES, COUNT_INF, COUNT_NAN, COUNT_ODD };

template <class R>
__device__ inline R none(int op) {
  switch (op) {
    case PRODUCT: return 1;
    case MAXIMUM: return -NNRS_INF;
    case MINIMUM: return NNRS_INF;
    default: return 0;
  }
}

// NaN wins over all numbers.
template <class R>
__device__ inline R join(int op, R a, R b) {
  switch (op) {
    case PRODUCT: return a * b;
    case MAXIMUM: return a > b || a != a ? a : b;
    case MINIMUM: return a < b || a != a ? a : b;
    default: return a + b;
  }
}

template <class R>
__device__ inline R term(int op, R x) {
  switch (op) {
    case SUM_ABS: return fabs(x);
    case SUM_SQUARES: return x * x;
    case COUNT_INF: return (R)(fabs(x) == NNRS_INF);
    case COUNT_NAN: return (R)(x != x);
    case COUNT_ODD: return (R)(x - x != 0);
    default: return x;
  }
}

// blockIdx.x: an output; blockIdx.y: a part of what it is reduced from. The parts go to `parts`, or, if there is one, to y.
template <class R>
__device__ inline void reduce(int op, const void *x, int from, const Axes *axes, long long n, void *y, int to, double scale,
                              int add) {
  NNRS_SHARED(R, sums, 256);
  long long base = offset(blockIdx.x, axes->kept_size, axes->kept_stride, axes->kept);
  long long part = (n + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * part;
  long long end = begin + part < n ? begin + part : n;
  R sum = none<R>(op);
  for (long long i = begin + threadIdx.x; i < end; i += blockDim.x)
    sum = join(op, sum, term(op, fetch<R>(x, from, base + offset(i, axes->size, axes->stride, axes->reduced))));
  sums[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] = join(op, (R)sums[threadIdx.x], (R)sums[threadIdx.x + half]);
  }
  if (threadIdx.x != 0) return;
  long long at = blockIdx.y * (long long)gridDim.x + blockIdx.x;
  R all = (R)sums[0] * (R)scale;
  keep(y, to, at, (double)(add ? fetch<R>(y, to, at) + all : all));
}

// A thread an output, where few elements go into each.
template <class R>
__device__ inline void reduce_short(int op, const void *x, int from, const Axes *axes, long long n, long long outputs,
                                    void *y, int to, double scale, int add) {
  for (long long o = first(); o < outputs; o += step()) {
    long long base = offset(o, axes->kept_size, axes->kept_stride, axes->kept);
    R sum = none<R>(op);
    for (long long i = 0; i < n; ++i)
      sum = join(op, sum, term(op, fetch<R>(x, from, base + offset(i, axes->size, axes->stride, axes->reduced))));
    sum *= (R)scale;
    keep(y, to, o, (double)(add ? fetch<R>(y, to, o) + sum : sum));
  }
}

}  // namespace nnrs

#define NNRS_REDUCE(R, suffix)                                                                                           \
  extern "C" __global__ void reduce_##suffix(int op, const void *x, int from, const nnrs::Axes *axes, long long n,      \
                                             void *y, int to, double scale, int add) {                                  \
    nnrs::reduce<R>(op, x, from, axes, n, y, to, scale, add);                                                           \
  }                                                                                                                      \
  extern "C" __global__ void reduce_short_##suffix(int op, const void *x, int from, const nnrs::Axes *axes, long long n, \
                                                   long long outputs, void *y, int to, double scale, int add) {          \
    nnrs::reduce_short<R>(op, x, from, axes, n, outputs, y, to, scale, add);                                             \
  }

NNRS_REDUCE(float, f32)
NNRS_REDUCE(double, f64)
