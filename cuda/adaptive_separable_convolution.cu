// Convolutions with a kernel of its own at each place, the product of a column and a row: the result, and the gradient of each of the
// other three arrays from the others.
#include "common.cuh"

namespace nnrs {

struct Separable {
  long long channels, input[2], output[2], taps[2], columns[2], rows[2];

  // Element (i, j) of a plane of a size.
  __device__ static long long at(const long long *size, long long plane, long long i, long long j) {
    return (plane * size[0] + i) * size[1] + j;
  }
};

// Plane, row and column of element e.
__device__ inline long long place(long long e, const long long *size, long long *i, long long *j) {
  *j = e;
  *i = divide(*j, size[1]);
  return divide(*i, size[0]);
}

template <class R>
__device__ inline void separable_result(const void *x, int type, const void *v, const void *h, void *y, long long count,
                                        int add, const Separable &s) {
  for (long long e = first(); e < count; e += step()) {
    long long i, j;
    const long long c = place(e, s.output, &i, &j), b = c / s.channels;
    R sum = 0;
    for (long long k = 0; k < s.taps[0]; ++k) {
      R part = 0;
      for (long long l = 0; l < s.taps[1]; ++l)
        part += fetch_real<R>(x, type, s.at(s.input, c, i + k, j + l)) *
                fetch_real<R>(h, type, s.at(s.rows, b * s.taps[1] + l, i, j));
      sum += fetch_real<R>(v, type, s.at(s.columns, b * s.taps[0] + k, i, j)) * part;
    }
    if (add) sum += fetch_real<R>(y, type, e);
    keep_real<R>(y, type, e, sum);
  }
}

template <class R>
__device__ inline void separable_images(const void *v, int type, const void *h, const void *g, void *gx,
                                        long long count, int add, const Separable &s) {
  for (long long e = first(); e < count; e += step()) {
    long long i, j;
    const long long c = place(e, s.input, &i, &j), b = c / s.channels;
    R sum = 0;
    for (long long k = 0; k < s.taps[0]; ++k) {
      const long long row = i - k;
      if (row < 0 || row >= s.output[0]) continue;
      for (long long l = 0; l < s.taps[1]; ++l) {
        const long long column = j - l;
        if (column < 0 || column >= s.output[1]) continue;
        sum += fetch_real<R>(g, type, s.at(s.output, c, row, column)) *
               fetch_real<R>(v, type, s.at(s.columns, b * s.taps[0] + k, row, column)) *
               fetch_real<R>(h, type, s.at(s.rows, b * s.taps[1] + l, row, column));
      }
    }
    if (add) sum += fetch_real<R>(gx, type, e);
    keep_real<R>(gx, type, e, sum);
  }
}

// The gradient of the columns (axis 0) or of the rows (axis 1); `other` is the other of both.
template <class R>
__device__ inline void separable_kernels(const void *x, int type, const void *other, const void *g, void *gk,
                                         long long count, int add, const Separable &s, int axis) {
  const long long *own = axis ? s.rows : s.columns, *others = axis ? s.columns : s.rows;
  for (long long e = first(); e < count; e += step()) {
    long long i, j, k;
    k = place(e, own, &i, &j);
    const long long b = divide(k, s.taps[axis]);
    R sum = 0;
    for (long long c = b * s.channels; c < (b + 1) * s.channels && i < s.output[0] && j < s.output[1]; ++c) {
      R part = 0;
      for (long long l = 0; l < s.taps[1 - axis]; ++l)
        part += fetch_real<R>(x, type, s.at(s.input, c, i + (axis ? l : k), j + (axis ? k : l))) *
                fetch_real<R>(other, type, s.at(others, b * s.taps[1 - axis] + l, i, j));
      sum += fetch_real<R>(g, type, s.at(s.output, c, i, j)) * part;
    }
    if (add) sum += fetch_real<R>(gk, type, e);
    keep_real<R>(gk, type, e, sum);
  }
}

template <class R>
__device__ inline void separable_columns(const void *x, int type, const void *h, const void *g, void *gv,
                                         long long count, int add, const Separable &s) {
  separable_kernels<R>(x, type, h, g, gv, count, add, s, 0);
}

template <class R>
__device__ inline void separable_rows(const void *x, int type, const void *v, const void *g, void *gh, long long count,
                                      int add, const Separable &s) {
  separable_kernels<R>(x, type, v, g, gh, count, add, s, 1);
}

}  // namespace nnrs

#define NNRS_SEPARABLE(name, R, suffix)                                                                            \
  extern "C" __global__ void name##_##suffix(                                                                      \
      const void *a, int type, const void *b, const void *c, void *y, long long count, int add, long long channels, \
      long long input0, long long input1, long long output0, long long output1, long long taps0, long long taps1,  \
      long long columns0, long long columns1, long long rows0, long long rows1) {                                  \
    nnrs::name<R>(a, type, b, c, y, count, add,                                                                    \
                  nnrs::Separable{channels, {input0, input1}, {output0, output1}, {taps0, taps1},                  \
                                  {columns0, columns1}, {rows0, rows1}});                                          \
  }

#define NNRS_SEPARABLES(R, suffix)              \
  NNRS_SEPARABLE(separable_result, R, suffix)   \
  NNRS_SEPARABLE(separable_images, R, suffix)   \
  NNRS_SEPARABLE(separable_columns, R, suffix)  \
  NNRS_SEPARABLE(separable_rows, R, suffix)

NNRS_SEPARABLES(float, f32)
NNRS_SEPARABLES(double, f64)
