// The gates of a step of a recurrent layer, forward and backward, behind the matrix product with the state: a thread a hidden unit of
// a sample. What is kept of a step has a row for each sample, with the gates one after the other.
#include "common.cuh"

namespace nnrs {

// One unit: where it lies, and the gates there.
template <class R>
struct Unit {
  long long b, j, hidden;

  // Number `gate` of a row with `gates` of them.
  __device__ inline R &at(R *x, int gates, int gate) const { return x[b * gates * hidden + gate * hidden + j]; }
  __device__ inline R at(const R *x, int gates, int gate) const { return x[b * gates * hidden + gate * hidden + j]; }
  __device__ inline R &in(R *x, long long stride) const { return x[b * stride + j]; }
  __device__ inline R in(const R *x, long long stride) const { return x[b * stride + j]; }
};

// What a forward step reads and writes: see `forward` in kernels/src/kernel/recurrent/cuda.rs.
template <class R>
struct Forward {
  R *gates;
  const R *products;
  R *extra;
  const R *h;
  long long h_stride;
  const R *c;
  const R *state_bias;
  R *out;
  long long out_stride;
};

template <class R>
struct Backward {
  const R *gates;
  const R *extra;
  const R *h;
  long long h_stride;
  const R *c;
  const R *g_out;
  long long out_stride;
  R *gh;
  R *gc;
  R *sums;

  __device__ inline R gradient(const Unit<R> &u) const {
    R g = u.in((const R *)gh, u.hidden);
    return g_out ? g + u.in(g_out, out_stride) : g;
  }
};

struct Tanh {
  template <class R>
  __device__ static inline void forward(const Unit<R> &u, const Forward<R> &f) {
    R h = tanh(u.at((const R *)f.gates, 1, 0) + u.at(f.products, 1, 0));
    u.at(f.gates, 1, 0) = h;
    u.in(f.out, f.out_stride) = h;
  }

  template <class R>
  __device__ static inline void backward(const Unit<R> &u, const Backward<R> &f) {
    R h = u.at(f.gates, 1, 0);
    u.at(f.sums, 1, 0) = f.gradient(u) * ((R)1 - h * h);
    u.in(f.gh, u.hidden) = 0;
  }
};

struct Relu {
  template <class R>
  __device__ static inline void forward(const Unit<R> &u, const Forward<R> &f) {
    R a = u.at((const R *)f.gates, 1, 0) + u.at(f.products, 1, 0);
    R h = a > 0 ? a : (R)0;
    u.at(f.gates, 1, 0) = h;
    u.in(f.out, f.out_stride) = h;
  }

  template <class R>
  __device__ static inline void backward(const Unit<R> &u, const Backward<R> &f) {
    u.at(f.sums, 1, 0) = u.at(f.gates, 1, 0) > 0 ? f.gradient(u) : (R)0 * f.gradient(u);
    u.in(f.gh, u.hidden) = 0;
  }
};

struct Lstm {
  template <class R>
  __device__ static inline void forward(const Unit<R> &u, const Forward<R> &f) {
    R a[4];
    for (int k = 0; k < 4; ++k) a[k] = u.at((const R *)f.gates, 4, k) + u.at(f.products, 4, k);
    for (int k = 0; k < 4; ++k) a[k] = k == 2 ? tanh(a[k]) : sigmoid(a[k]);
    R c = a[1] * u.in(f.c, u.hidden) + a[0] * a[2];
    for (int k = 0; k < 4; ++k) u.at(f.gates, 4, k) = a[k];
    u.in(f.extra, u.hidden) = c;
    u.in(f.out, f.out_stride) = a[3] * tanh(c);
  }

  template <class R>
  __device__ static inline void backward(const Unit<R> &u, const Backward<R> &f) {
    R i = u.at(f.gates, 4, 0), forget = u.at(f.gates, 4, 1), n = u.at(f.gates, 4, 2), o = u.at(f.gates, 4, 3);
    R t = tanh(u.in(f.extra, u.hidden)), gh = f.gradient(u);
    R g = u.in((const R *)f.gc, u.hidden) + gh * o * ((R)1 - t * t);
    u.at(f.sums, 4, 0) = g * n * i * ((R)1 - i);
    u.at(f.sums, 4, 1) = g * u.in(f.c, u.hidden) * forget * ((R)1 - forget);
    u.at(f.sums, 4, 2) = g * i * ((R)1 - n * n);
    u.at(f.sums, 4, 3) = gh * t * o * ((R)1 - o);
    u.in(f.gc, u.hidden) = g * forget;
    u.in(f.gh, u.hidden) = 0;
  }
};

struct Gru {
  template <class R>
  __device__ static inline void forward(const Unit<R> &u, const Forward<R> &f) {
    R r = sigmoid(u.at((const R *)f.gates, 3, 0) + u.at(f.products, 3, 0));
    R z = sigmoid(u.at((const R *)f.gates, 3, 1) + u.at(f.products, 3, 1));
    R of_state = u.at(f.products, 3, 2) + (f.state_bias ? f.state_bias[u.j] : (R)0);
    R n = tanh(u.at((const R *)f.gates, 3, 2) + r * of_state);
    u.in(f.extra, u.hidden) = of_state;
    u.at(f.gates, 3, 0) = r;
    u.at(f.gates, 3, 1) = z;
    u.at(f.gates, 3, 2) = n;
    u.in(f.out, f.out_stride) = ((R)1 - z) * n + z * u.in(f.h, f.h_stride);
  }

  template <class R>
  __device__ static inline void backward(const Unit<R> &u, const Backward<R> &f) {
    R r = u.at(f.gates, 3, 0), z = u.at(f.gates, 3, 1), n = u.at(f.gates, 3, 2), gh = f.gradient(u);
    R g = gh * ((R)1 - z) * ((R)1 - n * n);
    u.at(f.sums, 4, 0) = g * u.in(f.extra, u.hidden) * r * ((R)1 - r);
    u.at(f.sums, 4, 1) = gh * (u.in(f.h, f.h_stride) - n) * z * ((R)1 - z);
    u.at(f.sums, 4, 2) = g;
    u.at(f.sums, 4, 3) = g * r;
    u.in(f.gh, u.hidden) = gh * z;
  }
};

template <class Cell, class R>
__device__ inline void forward(const Forward<R> &f, long long batch, long long hidden) {
  for (long long i = first(); i < batch * hidden; i += step()) {
    long long j = i, b = divide(j, hidden);
    Cell::forward(Unit<R>{b, j, hidden}, f);
  }
}

template <class Cell, class R>
__device__ inline void backward(const Backward<R> &f, long long batch, long long hidden) {
  for (long long i = first(); i < batch * hidden; i += step()) {
    long long j = i, b = divide(j, hidden);
    Cell::backward(Unit<R>{b, j, hidden}, f);
  }
}

}  // namespace nnrs

#define NNRS_CELL(stem, Cell, R, suffix)                                                                                      \
  extern "C" __global__ void stem##_forward_##suffix(R *gates, const R *products, R *extra, const R *h, long long h_stride,   \
                                                     const R *c, const R *state_bias, R *out, long long out_stride,           \
                                                     long long batch, long long hidden) {                                     \
    nnrs::forward<nnrs::Cell, R>({gates, products, extra, h, h_stride, c, state_bias, out, out_stride}, batch, hidden);       \
  }                                                                                                                           \
  extern "C" __global__ void stem##_backward_##suffix(const R *gates, const R *extra, const R *h, long long h_stride,         \
                                                      const R *c, const R *g_out, long long out_stride, R *gh, R *gc,         \
                                                      R *sums, long long batch, long long hidden) {                           \
    nnrs::backward<nnrs::Cell, R>({gates, extra, h, h_stride, c, g_out, out_stride, gh, gc, sums}, batch, hidden);            \
  }
#define NNRS_RECURRENT(R, suffix)   \
  NNRS_CELL(tanh, Tanh, R, suffix)  \
  NNRS_CELL(relu, Relu, R, suffix)  \
  NNRS_CELL(lstm, Lstm, R, suffix)  \
  NNRS_CELL(gru, Gru, R, suffix)

NNRS_RECURRENT(float, f32)
NNRS_RECURRENT(double, f64)
