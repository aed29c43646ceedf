// Matrix products where cuBLASLt is not: tiles of C in registers, tiles of A and B in shared memory. C is dense, A and B
// have any strides. The order of summation depends on sizes alone.
#include "common.cuh"

namespace nnrs {

const int TILE = 64, DEEP = 16, EACH = 4;  // a block of 16 x 16 threads makes TILE x TILE elements of C

struct Matrix {
  const void *at;
  long long type, row, column, step;  // strides in elements; `step` from one matrix of a batch to the next
};

template <class R>
__device__ inline void matmul(const Matrix *ab, void *c, int type, long long m, long long n, long long k, int add) {
  NNRS_SHARED(R, left, DEEP * TILE);
  NNRS_SHARED(R, right, DEEP * TILE);
  const Matrix a = ab[0], b = ab[1];
  long long row0 = blockIdx.y * (long long)TILE, column0 = blockIdx.x * (long long)TILE;
  long long a0 = blockIdx.z * a.step, b0 = blockIdx.z * b.step, c0 = blockIdx.z * m * n;
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  R sum[EACH][EACH];
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) sum[i][j] = 0;
  for (long long k0 = 0; k0 < k; k0 += DEEP) {
    for (int e = t; e < DEEP * TILE; e += 256) {
      // Neighbouring threads read neighbouring elements, whichever way the matrix lies.
      int ad = a.column == 1 ? e % DEEP : e / TILE, ar = a.column == 1 ? e / DEEP : e % TILE;
      int bd = b.column == 1 ? e / TILE : e % DEEP, bc = b.column == 1 ? e % TILE : e / DEEP;
      bool in_a = row0 + ar < m && k0 + ad < k, in_b = column0 + bc < n && k0 + bd < k;
      left[ad * TILE + ar] = in_a ? fetch<R>(a.at, (int)a.type, a0 + (row0 + ar) * a.row + (k0 + ad) * a.column) : (R)0;
      right[bd * TILE + bc] = in_b ? fetch<R>(b.at, (int)b.type, b0 + (k0 + bd) * b.row + (column0 + bc) * b.column) : (R)0;
    }
    __syncthreads();
    for (int d = 0; d < DEEP; ++d) {
      R x[EACH], y[EACH];
      for (int i = 0; i < EACH; ++i) x[i] = left[d * TILE + ty * EACH + i];
      for (int j = 0; j < EACH; ++j) y[j] = right[d * TILE + tx * EACH + j];
      for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) sum[i][j] = mad(x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i)
    for (int j = 0; j < EACH; ++j) {
      long long row = row0 + ty * EACH + i, column = column0 + tx * EACH + j, at = c0 + row * n + column;
      if (row < m && column < n) keep(c, type, at, (double)(add ? fetch<R>(c, type, at) + sum[i][j] : sum[i][j]));
    }
}

}  // namespace nnrs

extern "C" __global__ void __launch_bounds__(256) matmul_f32(const nnrs::Matrix *ab, void *c, int type, long long m,
                                                             long long n, long long k, int add) {
  nnrs::matmul<float>(ab, c, type, m, n, k, add);
}
extern "C" __global__ void __launch_bounds__(256) matmul_f64(const nnrs::Matrix *ab, void *c, int type, long long m,
                                                             long long n, long long k, int add) {
  nnrs::matmul<double>(ab, c, type, m, n, k, add);
}
