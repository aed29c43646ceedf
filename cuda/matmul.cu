// Matrix products where cuBLASLt is not: tiles of C in registers, tiles of A and B in shared memory. C is dense, A and B
// have any strides. The order of summation depends on sizes alone.
#include "common.cuh"

namespace nnrs {

// A block of SIDE x SIDE threads makes TILE x TILE elements of C. A thread's are SIDE apart, so that neighbours read and
// write side by side; rows of shared memory are one longer, so that columns lie in different banks too.
const int TILE = 64, DEEP = 16, EACH = 4, SIDE = TILE / EACH, ROW = TILE + 1;

struct Matrix {
  const void *at;
  long long type, row, column, step;  // strides in elements; `step` from one matrix of a batch to the next
};

template <class R>
__device__ inline void matmul(const Matrix *ab, void *c, int type, long long m, long long n, long long k, long long batch,
                              int add) {
  NNRS_SHARED(R, left, DEEP * ROW);
  NNRS_SHARED(R, right, DEEP * ROW);
  const Matrix a = ab[0], b = ab[1];
  const unsigned tiles = (unsigned)((n + TILE - 1) / TILE);
  long long row0 = blockIdx.x / tiles * (long long)TILE, column0 = blockIdx.x % tiles * (long long)TILE;
  const long long product = blockIdx.y + blockIdx.z * (long long)gridDim.y;
  if (product >= batch) return;  // the whole block
  long long a0 = product * a.step, b0 = product * b.step, c0 = product * m * n;
  int t = threadIdx.x, tx = t % SIDE, ty = t / SIDE;
  R sum[EACH][EACH];
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) sum[i][j] = 0;
  for (long long k0 = 0; k0 < k; k0 += DEEP) {
    for (int e = t; e < DEEP * TILE; e += 256) {
      // Neighbouring threads read neighbouring elements, whichever way the matrix lies.
      int ad = a.column == 1 ? e % DEEP : e / TILE, ar = a.column == 1 ? e / DEEP : e % TILE;
      int bd = b.column == 1 ? e / TILE : e % DEEP, bc = b.column == 1 ? e % TILE : e / DEEP;
      bool in_a = row0 + ar < m && k0 + ad < k, in_b = column0 + bc < n && k0 + bd < k;
      left[ad * ROW + ar] = in_a ? fetch_real<R>(a.at, (int)a.type, a0 + (row0 + ar) * a.row + (k0 + ad) * a.column) : (R)0;
      right[bd * ROW + bc] = in_b ? fetch_real<R>(b.at, (int)b.type, b0 + (k0 + bd) * b.row + (column0 + bc) * b.column) : (R)0;
    }
    __syncthreads();
    for (int d = 0; d < DEEP; ++d) {
      R x[EACH], y[EACH];
      for (int i = 0; i < EACH; ++i) x[i] = left[d * ROW + ty + i * SIDE];
      for (int j = 0; j < EACH; ++j) y[j] = right[d * ROW + tx + j * SIDE];
      for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) sum[i][j] = mad(x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }
#pragma unroll  // so that the sums are in registers
  for (int i = 0; i < EACH; ++i)
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
      long long row = row0 + ty + i * SIDE, column = column0 + tx + j * SIDE, at = c0 + row * n + column;
      if (row < m && column < n) keep_real<R>(c, type, at, add ? fetch_real<R>(c, type, at) + sum[i][j] : sum[i][j]);
    }
}

}  // namespace nnrs

extern "C" __global__ void __launch_bounds__(256) matmul_f32(const nnrs::Matrix *ab, void *c, int type, long long m,
                                                             long long n, long long k, long long batch, int add) {
  nnrs::matmul<float>(ab, c, type, m, n, k, batch, add);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f64(const nnrs::Matrix *ab, void *c, int type, long long m,
                                                             long long n, long long k, long long batch, int add) {
  nnrs::matmul<double>(ab, c, type, m, n, k, batch, add);
}
