// Rows of a table by their numbers, and sums of the rows that have the same number. The order of summation depends on
// sizes and numbers alone.
#include "common.cuh"

namespace nnrs {

struct alignas(16) Wide {
  u64 a, b;
};

__device__ inline void absent(unsigned short &w) { w = 0xffff; }
__device__ inline void absent(unsigned int &w) { w = 0xffffffffu; }
__device__ inline void absent(unsigned long long &w) { w = ~0ull; }
__device__ inline void absent(Wide &w) { w.a = w.b = ~0ull; }

// Rows as `width` words; one whose number is none of the table's becomes NaN.
template <class W>
__device__ inline void copy_rows(const long long *x, const W *w, long long rows, long long width, W *y, long long n) {
  for (long long i = first(); i < n; i += step()) {
    long long column = i;
    const long long row = x[divide(column, width)];
    W v;
    absent(v);
    if (row >= 0 && row < rows) v = w[row * width + column];
    y[i] = v;
  }
}

// A chunk of the sorted numbers, and what it needs to know of its neighbours.
struct Chunk {
  const u32 *keys;
  long long n, begin, end;

  __device__ Chunk(const u32 *keys, long long n, long long number, long long length)
      : keys(keys), n(n), begin(number * length), end((number + 1) * length < n ? (number + 1) * length : n) {}
  __device__ bool starts() const { return begin == 0 || keys[begin - 1] != keys[begin]; }
  __device__ bool goes_on() const { return end < n && keys[end] == keys[end - 1]; }
};

template <class R>
__device__ inline void put_row(void *y, int type, long long at, R v, int add) {
  keep_real<R>(y, type, at, add ? fetch_real<R>(y, type, at) + v : v);
}

// Each thread sums a column of a chunk's runs of equal numbers. Of runs that reach over its ends it keeps the sum: row 0
// of its parts for one from before, row 1 for one that goes on.
template <class R>
__device__ inline void runs(const u32 *keys, const u32 *order, long long n, long long rows, long long length, int wide,
                            const void *gy, int gy_type, long long width, R *parts, void *gw, int gw_type, int add) {
  const long long number = blockIdx.x * (long long)(blockDim.x / wide) + threadIdx.x / wide;
  const long long column = blockIdx.y * (long long)wide + threadIdx.x % wide;
  if (number * length >= n || column >= width) return;
  const Chunk c(keys, n, number, length);
  bool whole = c.starts();
  u32 key = keys[c.begin];
  R sum = 0;
  for (long long i = c.begin; i < c.end; ++i) {
    const u32 next = keys[i];
    if (next != key) {
      if (!whole) parts[number * 2 * width + column] = sum;
      else if (key < rows) put_row(gw, gw_type, key * width + column, sum, add);
      key = next, sum = 0, whole = true;
    }
    if (key < rows) sum += fetch_real<R>(gy, gy_type, order[i] * width + column);
  }
  if (!whole || c.goes_on()) parts[(number * 2 + whole) * width + column] = sum;
  else if (key < rows) put_row(gw, gw_type, key * width + column, sum, add);
}

// The runs that reach over chunks, each from the chunk in which it begins.
template <class R>
__device__ inline void joins(const u32 *keys, long long n, long long rows, long long length, int wide, long long width,
                             const R *parts, void *gw, int gw_type, int add) {
  long long number = blockIdx.x * (long long)(blockDim.x / wide) + threadIdx.x / wide;
  const long long column = blockIdx.y * (long long)wide + threadIdx.x % wide;
  if (number * length >= n || column >= width) return;
  const Chunk c(keys, n, number, length);
  const u32 key = keys[c.end - 1];
  if (key >= rows || !c.goes_on() || (keys[c.begin] == key && !c.starts())) return;
  R sum = parts[(number * 2 + 1) * width + column];
  do sum += parts[++number * 2 * width + column];
  while (Chunk(keys, n, number, length).end < n && keys[(number + 1) * length] == key);
  put_row(gw, gw_type, key * width + column, sum, add);
}

}  // namespace nnrs

// Rows in words of `size` bytes.
extern "C" __global__ void embed(const long long *x, const void *w, long long rows, long long width, void *y, int size,
                                 long long n) {
  using namespace nnrs;
  switch (size) {
    case 2: copy_rows(x, (const u16 *)w, rows, width, (u16 *)y, n); break;
    case 4: copy_rows(x, (const u32 *)w, rows, width, (u32 *)y, n); break;
    case 8: copy_rows(x, (const u64 *)w, rows, width, (u64 *)y, n); break;
    default: copy_rows(x, (const Wide *)w, rows, width, (Wide *)y, n);
  }
}

#define NNRS_EMBED(R, suffix)                                                                                           \
  extern "C" __global__ void embed_runs_##suffix(const unsigned *keys, const unsigned *order, long long n, long long rows, \
                                                 long long length, int wide, const void *gy, int gy_type,               \
                                                 long long width, R *parts, void *gw, int gw_type, int add) {           \
    nnrs::runs<R>(keys, order, n, rows, length, wide, gy, gy_type, width, parts, gw, gw_type, add);                     \
  }                                                                                                                     \
  extern "C" __global__ void embed_joins_##suffix(const unsigned *keys, long long n, long long rows, long long length,  \
                                                  int wide, long long width, const R *parts, void *gw, int gw_type,     \
                                                  int add) {                                                            \
    nnrs::joins<R>(keys, n, rows, length, wide, width, parts, gw, gw_type, add);                                        \
  }

NNRS_EMBED(float, f32)
NNRS_EMBED(double, f64)
