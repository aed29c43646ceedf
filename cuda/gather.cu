// Rows of a table by their numbers, and sums of the rows that have the same number. The order of summation depends on
// sizes and numbers alone.
#include "words.cuh"

namespace nnrs {

// How rows lie: in batches of `outer` blocks, each of them with a row of an own for every number of the batch. For
// numbers of rows of one table there is one batch and one block.
struct Blocks {
  long long outer, rows, picks;  // blocks of a batch, rows of a block of the table, numbers of a batch
};

// Rows as `width` words; one whose number is none of the table's becomes NaN, or 0.
template <class W>
__device__ inline void copy_rows(const long long *x, const W *w, Blocks blocks, long long width, W *y, int nan,
                                 long long n) {
  const bool one = blocks.outer == 1 && blocks.picks * width == n;
  for (long long i = first(); i < n; i += step()) {
    long long column = i, pick = divide(column, width), block = 0, at = pick;
    if (!one) {
      block = divide(pick, blocks.picks);
      at = block / blocks.outer * blocks.picks + pick;
    }
    const long long row = x[at];
    W v = {};
    if (row >= 0 && row < blocks.rows) v = w[(block * blocks.rows + row) * width + column];
    else if (nan) absent(v);
    y[i] = v;
  }
}

// Rows of x to the rows of y at the given numbers, which are written; without x they become 0. Where several rows go to one,
// the last one alone does, as `last` says.
template <class W>
__device__ inline void put_rows(const long long *numbers, const u32 *last, const W *x, long long rows, long long width,
                                W *y, long long n) {
  for (long long i = first(); i < n; i += step()) {
    long long column = i;
    const long long pick = divide(column, width), row = numbers[pick];
    if (row < 0 || row >= rows || last[row] != pick + 1) continue;
    W v = {};
    if (x) v = x[i];
    y[row * width + column] = v;
  }
}

// Where column `column` of row `row` of all batches lies; `rows` of a block. Columns go over all blocks.
__device__ inline long long locate(long long row, long long column, long long rows, long long outer, long long width) {
  if (outer == 1) return row * width + column;
  width /= outer;
  const long long block = divide(column, width), batch = divide(row, rows);
  return ((batch * outer + block) * rows + row) * width + column;
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
                            const void *gy, int gy_type, Blocks blocks, long long width, R *parts, void *gw, int gw_type,
                            int add) {
  long long column = blockIdx.x;
  const long long number = divide(column, (width + wide - 1) / wide) * (blockDim.x / wide) + threadIdx.x / wide;
  column = column * wide + threadIdx.x % wide;
  if (number * length >= n || column >= width) return;
  const long long outer = blocks.outer;
  const Chunk c(keys, n, number, length);
  bool whole = c.starts();
  u32 key = keys[c.begin];
  R sum = 0;
  for (long long i = c.begin; i < c.end; ++i) {
    const u32 next = keys[i];
    if (next != key) {
      if (!whole) parts[number * 2 * width + column] = sum;
      else if (key < rows) put_row(gw, gw_type, locate(key, column, blocks.rows, outer, width), sum, add);
      key = next, sum = 0, whole = true;
    }
    if (key < rows) sum += fetch_real<R>(gy, gy_type, locate(order[i], column, blocks.picks, outer, width));
  }
  if (!whole || c.goes_on()) parts[(number * 2 + whole) * width + column] = sum;
  else if (key < rows) put_row(gw, gw_type, locate(key, column, blocks.rows, outer, width), sum, add);
}

// The runs that reach over chunks, each from the chunk in which it begins.
template <class R>
__device__ inline void joins(const u32 *keys, long long n, long long rows, long long length, int wide, Blocks blocks,
                             long long width, const R *parts, void *gw, int gw_type, int add) {
  long long column = blockIdx.x;
  long long number = divide(column, (width + wide - 1) / wide) * (blockDim.x / wide) + threadIdx.x / wide;
  column = column * wide + threadIdx.x % wide;
  if (number * length >= n || column >= width) return;
  const Chunk c(keys, n, number, length);
  const u32 key = keys[c.end - 1];
  if (key >= rows || !c.goes_on() || (keys[c.begin] == key && !c.starts())) return;
  R sum = parts[(number * 2 + 1) * width + column];
  do sum += parts[++number * 2 * width + column];
  while (Chunk(keys, n, number, length).end < n && keys[(number + 1) * length] == key);
  put_row(gw, gw_type, locate(key, column, blocks.rows, blocks.outer, width), sum, add);
}

}  // namespace nnrs

// Rows in words of `size` bytes.
extern "C" __global__ void gather(const long long *x, const void *w, long long outer, long long rows, long long picks,
                                  long long width, void *y, int size, int nan, long long n) {
  using namespace nnrs;
  const Blocks b = {outer, rows, picks};
  switch (size) {
    case 2: copy_rows(x, (const u16 *)w, b, width, (u16 *)y, nan, n); break;
    case 4: copy_rows(x, (const u32 *)w, b, width, (u32 *)y, nan, n); break;
    case 8: copy_rows(x, (const u64 *)w, b, width, (u64 *)y, nan, n); break;
    default: copy_rows(x, (const Wide *)w, b, width, (Wide *)y, nan, n);
  }
}

// For each row the greatest i + 1 of the numbers that name it; the order of the writes does not matter.
extern "C" __global__ void gather_last(const long long *numbers, long long rows, unsigned *last, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step())
    if (numbers[i] >= 0 && numbers[i] < rows) atomicMax(&last[numbers[i]], (u32)i + 1);
}

extern "C" __global__ void gather_put(const long long *numbers, const unsigned *last, const void *x, long long rows,
                                      long long width, void *y, int size, long long n) {
  using namespace nnrs;
  switch (size) {
    case 2: put_rows(numbers, last, (const u16 *)x, rows, width, (u16 *)y, n); break;
    case 4: put_rows(numbers, last, (const u32 *)x, rows, width, (u32 *)y, n); break;
    case 8: put_rows(numbers, last, (const u64 *)x, rows, width, (u64 *)y, n); break;
    default: put_rows(numbers, last, (const Wide *)x, rows, width, (Wide *)y, n);
  }
}

#define NNRS_GATHER(R, suffix)                                                                                          \
  extern "C" __global__ void gather_runs_##suffix(const unsigned *keys, const unsigned *order, long long n, long long rows, \
                                                  long long length, int wide, const void *gy, int gy_type,              \
                                                  long long outer, long long block, long long picks, long long width,   \
                                                  R *parts, void *gw, int gw_type, int add) {                           \
    nnrs::runs<R>(keys, order, n, rows, length, wide, gy, gy_type, {outer, block, picks}, width, parts, gw, gw_type,    \
                  add);                                                                                                 \
  }                                                                                                                     \
  extern "C" __global__ void gather_joins_##suffix(const unsigned *keys, long long n, long long rows, long long length, \
                                                   int wide, long long outer, long long block, long long picks,         \
                                                   long long width, const R *parts, void *gw, int gw_type, int add) {   \
    nnrs::joins<R>(keys, n, rows, length, wide, {outer, block, picks}, width, parts, gw, gw_type, add);                 \
  }

NNRS_GATHER(float, f32)
NNRS_GATHER(double, f64)
