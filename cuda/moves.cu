// Copies between strided boxes: transposes, slices, joins, repeats, flips, pads.
#include "common.cuh"

namespace nnrs {

struct MoveAxis {
  long long n, to, from;
};

struct Box {
  long long axes, to, from;
  MoveAxis axis[12];
};

template <class W>
__device__ inline void move(W *y, const W *x, const Box *box, long long n) {
  for (long long i = first(); i < n; i += step()) {
    long long to = box->to, from = box->from, rest = i;
    for (int a = (int)box->axes - 1; a >= 0; --a) {
      const MoveAxis axis = box->axis[a];
      long long next = rest / axis.n, at = rest - next * axis.n;
      to += at * axis.to;
      from += at * axis.from;
      rest = next;
    }
    y[to] = x[from];
  }
}

}  // namespace nnrs

// Elements of one type, whatever it is, by their size.
extern "C" __global__ void move(void *y, const void *x, int size, const nnrs::Box *box, long long n) {
  using namespace nnrs;
  switch (size) {
    case 1: move((unsigned char *)y, (const unsigned char *)x, box, n); break;
    case 2: move((u16 *)y, (const u16 *)x, box, n); break;
    case 4: move((u32 *)y, (const u32 *)x, box, n); break;
    default: move((u64 *)y, (const u64 *)x, box, n);
  }
}

// Elements of floating-point types, which may differ, added to what is there or written.
extern "C" __global__ void move_add(void *y, int y_type, const void *x, int x_type, int add, const nnrs::Box *box,
                                    long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    long long to = box->to, from = box->from, rest = i;
    for (int a = (int)box->axes - 1; a >= 0; --a) {
      const MoveAxis axis = box->axis[a];
      long long next = rest / axis.n, at = rest - next * axis.n;
      to += at * axis.to;
      from += at * axis.from;
      rest = next;
    }
    double v = fetch<double>(x, x_type, from);
    keep(y, y_type, to, add ? fetch<double>(y, y_type, to) + v : v);
  }
}
