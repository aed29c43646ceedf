// Largest and smallest elements over axes and where they are, and the gradient of products: what needs more of an output's
// elements than their sum.
#include "axes.cuh"
#include "team.cuh"

namespace nnrs {

template <class R>
struct Best {
  R v;
  long long k;
};

// The first of equal elements; NaN loses to all numbers. An index below 0 is no element at all.
template <class R>
struct Better {
  int smallest;
  __device__ inline bool beats(R v, R best) const { return v == v && !(smallest ? best <= v : best >= v); }
  __device__ inline Best<R> operator()(const Best<R> &a, const Best<R> &b) const {
    if (a.k < 0 || b.k < 0) return a.k < 0 ? b : a;
    if (beats(b.v, a.v)) return b;
    return beats(a.v, b.v) || a.k < b.k ? a : b;
  }
};

__device__ inline void keep_index(void *y, int type, long long i, long long k) {
  if (y) keep_whole(y, type, i, k);
}

// A team for each output (blocks in x) and part of its elements (blockIdx.y). Values and indices of part p of output o go
// to number p * outputs + o; either may be null.
template <class R>
__device__ inline void search(int smallest, const void *x, int from, const Axes *axes, long long n, long long outputs,
                              int size, int neighbours, void *value, int to, void *index, int index_type) {
  Team team(blockIdx.x, size, neighbours);
  Better<R> better = {smallest};
  long long part = (n + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * part;
  long long end = begin + part < n ? begin + part : n;
  bool live = team.row < outputs;
  long long base = base_of(axes, live ? team.row : 0);
  Best<R> best = {0, -1};
  for (long long k = begin + team.rank; live && k < end; k += team.size) {
    R v = fetch_real<R>(x, from, base + reduced_at(axes, k));
    if (best.k < 0 || better.beats(v, best.v)) best = {v, k};
  }
  best = all(best, team, better);
  if (!live || team.rank != 0) return;
  long long at = blockIdx.y * outputs + team.row;
  if (value) keep_real<R>(value, to, at, best.v);
  keep_index(index, index_type, at, best.k);
}

// The best of the parts.
template <class R>
__device__ inline void choose(int smallest, const R *values, const long long *indices, long long parts, long long outputs,
                              void *value, int to, void *index, int index_type) {
  Better<R> better = {smallest};
  for (long long o = first(); o < outputs; o += step()) {
    Best<R> best = {values[o], indices[o]};
    for (long long p = 1; p < parts; ++p) best = better(best, Best<R>{values[p * outputs + o], indices[p * outputs + o]});
    if (value) keep_real<R>(value, to, o, best.v);
    keep_index(index, index_type, o, best.k);
  }
}

// Adds gy, or 1, at the elements that won.
template <class R>
__device__ inline void spread(const long long *index, const Axes *axes, long long outputs, const void *gy, int gy_type,
                              void *gx, int to) {
  for (long long o = first(); o < outputs; o += step()) {
    long long i = base_of(axes, o) + reduced_at(axes, index[o]);
    keep_real<R>(gx, to, i, fetch_real<R>(gx, to, i) + (gy ? fetch_real<R>(gy, gy_type, o) : (R)1));
  }
}

// The product of all other elements times gy, without a division: each thread has a run of neighbours, knows the products
// of the runs before and after it, and goes over its own run in both directions. `left` has x's size.
template <class R>
__device__ inline void product_backward(const void *x, int from, const Axes *axes, long long n, long long outputs,
                                        int size, const void *gy, int gy_type, void *gx, int to, R *left, int add) {
  NNRS_SHARED(R, products, THREADS);
  Team team(blockIdx.x, size, true);
  bool live = team.row < outputs;
  long long run = (n + size - 1) / size, begin = team.rank * run, end = begin + run < n ? begin + run : n;
  if (!live) end = begin;
  long long base = base_of(axes, live ? team.row : 0);
  R product = 1;
  for (long long k = begin; k < end; ++k) product *= fetch_real<R>(x, from, base + reduced_at(axes, k));
  products[threadIdx.x] = product;
  __syncthreads();
  int mine = (int)threadIdx.x - team.rank;
  R before = live ? fetch_real<R>(gy, gy_type, team.row) : (R)0, after = 1;
  for (int t = 0; t < team.rank; ++t) before *= (R)products[mine + t];
  for (int t = size - 1; t > team.rank; --t) after *= (R)products[mine + t];
  for (long long k = begin; k < end; ++k) {
    long long i = base + reduced_at(axes, k);
    left[i] = before;
    before *= fetch_real<R>(x, from, i);
  }
  for (long long k = end - 1; k >= begin; --k) {
    long long i = base + reduced_at(axes, k);
    R v = left[i] * after;
    after *= fetch_real<R>(x, from, i);
    keep_real<R>(gx, to, i, add ? v + fetch_real<R>(gx, to, i) : v);
  }
}

}  // namespace nnrs

#define NNRS_EXTREME(R, suffix)                                                                                        \
  extern "C" __global__ void search_##suffix(int smallest, const void *x, int from, const nnrs::Axes *axes,            \
                                             long long n, long long outputs, int size, int neighbours, void *value,    \
                                             int to, void *index, int index_type) {                                    \
    nnrs::search<R>(smallest, x, from, axes, n, outputs, size, neighbours, value, to, index, index_type);              \
  }                                                                                                                    \
  extern "C" __global__ void choose_##suffix(int smallest, const R *values, const long long *indices, long long parts, \
                                             long long outputs, void *value, int to, void *index, int index_type) {    \
    nnrs::choose<R>(smallest, values, indices, parts, outputs, value, to, index, index_type);                          \
  }                                                                                                                    \
  extern "C" __global__ void spread_##suffix(const long long *index, const nnrs::Axes *axes, long long outputs,        \
                                             const void *gy, int gy_type, void *gx, int to) {                          \
    nnrs::spread<R>(index, axes, outputs, gy, gy_type, gx, to);                                                        \
  }                                                                                                                    \
  extern "C" __global__ void product_backward_##suffix(const void *x, int from, const nnrs::Axes *axes, long long n,   \
                                                       long long outputs, int size, const void *gy, int gy_type,       \
                                                       void *gx, int to, R *left, int add) {                           \
    nnrs::product_backward<R>(x, from, axes, n, outputs, size, gy, gy_type, gx, to, left, add);                        \
  }

NNRS_EXTREME(float, f32)
NNRS_EXTREME(double, f64)
