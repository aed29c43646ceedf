// Numbers of rows or elements from indices, coordinates and masks; -1 for what lies outside. And ones at such places.
#include "common.cuh"

namespace nnrs {

struct Axis {
  long long n, stride;
};

struct Axes {
  long long axes, axis, limit;  // which axis the index stands for, and how far it may go
  Axis of[12];
};

// The place with coordinates x[0], x[pitch], ... of m axes, which may count from the end; -1 if that is outside.
__device__ inline long long place_of(const long long *x, long long pitch, int m, const Axis *axes) {
  long long at = 0;
  bool inside = true;
  for (int a = 0; a < m; ++a) {
    const Axis axis = axes[a];
    const long long i = x[a * pitch], p = i < 0 ? i + axis.n : i;
    inside = inside && p >= 0 && p < axis.n;
    at += p * axis.stride;
  }
  return inside ? at : -1;
}

}  // namespace nnrs

// Places in an array: those of the indices themselves, but along one axis what the index says.
extern "C" __global__ void places_along(const long long *x, const nnrs::Axes *axes, long long *y, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    long long rest = i, at = 0;
    const long long index = x[i];
    for (int a = (int)axes->axes - 1; a >= 0; --a) {
      const Axis axis = axes->of[a];
      long long p = rest;
      rest = divide(p, axis.n);
      at += (a == axes->axis ? index : p) * axis.stride;
    }
    y[i] = index >= 0 && index < axes->limit ? at : -1;
  }
}

// Places by m coordinates each, of axes of these sizes.
extern "C" __global__ void places_nd(const long long *x, int m, const nnrs::Axis *axes, long long *y, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) y[i] = place_of(x + i, n, m, axes);
}

// 0 where a mask is not zero, else 1: in order, the places that are asked for come first.
extern "C" __global__ void places_mask(const void *mask, int type, long long *y, long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) y[i] = fetch<double>(mask, type, i) != 0 ? 0 : 1;
}

// The first n of them; there are `found` elements in all.
extern "C" __global__ void places_chosen(const unsigned *keys, const unsigned *order, long long found, long long *y,
                                         long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) y[i] = i < found && keys[i] == 0 ? (long long)order[i] : -1;
}

// Arrays of `size` elements, each with a 1 where its m coordinates say.
extern "C" __global__ void one_hot(const long long *x, int m, const nnrs::Axis *axes, long long size, void *y, int type,
                                   long long n) {
  using namespace nnrs;
  for (long long i = first(); i < n; i += step()) {
    long long at = i;
    const long long row = divide(at, size);
    keep_real<float>(y, type, i, place_of(x + row * m, 1, m, axes) == at);
  }
}
