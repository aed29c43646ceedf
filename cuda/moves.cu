// Copies between strided boxes: transposes, slices, joins, repeats, flips, pads.
#include "words.cuh"

namespace nnrs {

struct MoveAxis {
  long long n, to, from;
};

struct Box {
  long long axes, to, from;
  MoveAxis axis[12];
};

// Element i of the first `axes` axes, on both sides.
__device__ inline void find(const Box *box, int axes, long long i, long long &to, long long &from) {
  to = box->to;
  from = box->from;
  for (int a = axes - 1; a >= 0; --a) {
    const MoveAxis axis = box->axis[a];
    long long at = i;
    i = a ? divide(at, axis.n) : 0;
    to += at * axis.to;
    from += at * axis.from;
  }
}

template <class W>
__device__ inline void move(W *y, const W *x, const Box *box, long long n) {
  const int axes = (int)box->axes;
  for (long long i = first(); i < n; i += step()) {
    long long to, from;
    find(box, axes, i, to, from);
    y[to] = x[from];
  }
}

const int MOVE_TILE = 32;

// The last two axes are the one whose elements are neighbours in x and the one whose are in y. A block of 32 x 8 threads
// takes a tile of both through shared memory, so that reads and writes are of whole lines.
template <class W>
__device__ inline void move_tile(W *y, const W *x, const Box *box, long long wide) {
  NNRS_SHARED(W, tile, MOVE_TILE * (MOVE_TILE + 1));
  const int axes = (int)box->axes, lane = threadIdx.x % MOVE_TILE, row = threadIdx.x / MOVE_TILE;
  const MoveAxis a = box->axis[axes - 2], b = box->axis[axes - 1];
  const long long high = (a.n + MOVE_TILE - 1) / MOVE_TILE;
  long long j = blockIdx.x, i = divide(j, wide), rest = divide(i, high), to, from;
  i *= MOVE_TILE;
  j *= MOVE_TILE;
  find(box, axes - 2, rest, to, from);
  for (int r = row; r < MOVE_TILE; r += 8)
    if (i + lane < a.n && j + r < b.n) tile[r * (MOVE_TILE + 1) + lane] = x[from + i + lane + (j + r) * b.from];
  __syncthreads();
  for (int r = row; r < MOVE_TILE; r += 8)
    if (i + r < a.n && j + lane < b.n) y[to + (i + r) * a.to + j + lane] = (W)tile[lane * (MOVE_TILE + 1) + r];
}

}  // namespace nnrs

// Elements of one type, whatever it is, by their size; or several neighbours at once.
extern "C" __global__ void move(void *y, const void *x, int size, const nnrs::Box *box, long long n) {
  using namespace nnrs;
  switch (size) {
    case 1: move((unsigned char *)y, (const unsigned char *)x, box, n); break;
    case 2: move((u16 *)y, (const u16 *)x, box, n); break;
    case 4: move((u32 *)y, (const u32 *)x, box, n); break;
    case 8: move((u64 *)y, (const u64 *)x, box, n); break;
    default: move((Wide *)y, (const Wide *)x, box, n);
  }
}

// The same where the two sides run along different axes, in `wide` tiles along the last one.
#define NNRS_TILES(W, size)                                                                                      \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      move_tiles_##size(void *y, const void *x, const nnrs::Box *box, long long wide) {                          \
    nnrs::move_tile((W *)y, (const W *)x, box, wide);                                                            \
  }

NNRS_TILES(unsigned char, 1)
NNRS_TILES(nnrs::u16, 2)
NNRS_TILES(nnrs::u32, 4)
NNRS_TILES(nnrs::u64, 8)

// Elements of floating-point types, which may differ, added to what is there or written.
extern "C" __global__ void move_add(void *y, int y_type, const void *x, int x_type, int add, const nnrs::Box *box,
                                    long long n) {
  using namespace nnrs;
  const int axes = (int)box->axes;
  for (long long i = first(); i < n; i += step()) {
    long long to, from;
    find(box, axes, i, to, from);
    double v = fetch<double>(x, x_type, from);
    keep(y, y_type, to, add ? fetch<double>(y, y_type, to) + v : v);
  }
}
