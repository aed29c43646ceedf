// Formulas without a compiler: a straight-line program over the elements of arrays, read step by step. A thread's values
// live in its local memory, which stays in the first cache; all threads of a warp are at the same step.
#include "common.cuh"

namespace nnrs {

// As kernels/src/cuda/program.rs lays them out.
struct Step {
  u16 op, y, a, b;
  union {
    double number;
    u16 c;
  };
};

struct Axis {
  long long size, stride;
};

// `axes`: how many of `axis` count; 0 for one value that all read, or one of:
enum Walk { DENSE = -1, CONSTANT = -2 };

struct Source {
  const void *at;
  double number;
  int type, axes;
  Axis axis[12];
};

struct Sink {
  void *at;
  long long type;
};

enum Op { INPUT, SCALAR, NUMBER, SELECT, STORE, UNARY = 8, BINARY = 64 };

template <class R>
__device__ inline R input(const Source &s, long long i) {
  if (s.axes == DENSE) return fetch<R>(s.at, s.type, i);
  if (s.axes == CONSTANT) return (R)s.number;
  long long offset = 0;
  for (int a = s.axes - 1; a >= 0; --a) {
    long long next = i / s.axis[a].size;
    offset += (i - next * s.axis[a].size) * s.axis[a].stride;
    i = next;
  }
  return fetch<R>(s.at, s.type, offset);
}

// Dear operations are functions of their own: each is there once, not once for every number of registers. The numbers
// are those of Unary and Binary in kernels/src/expr/op.rs.
template <class R>
__device__ NNRS_NOINLINE R dear(int op, R x) {
  switch (op) {
    case 7: return exp(x);
    case 8: return expm1(x);
    case 9: return log(x);
    case 10: return log1p(x);
    case 11: return sin(x);
    case 12: return cos(x);
    case 13: return tan(x);
    case 14: return sinh(x);
    case 15: return cosh(x);
    case 16: return tanh(x);
    case 17: return asin(x);
    case 18: return acos(x);
    case 19: return atan(x);
    case 20: return asinh(x);
    case 21: return acosh(x);
    case 22: return atanh(x);
    case 23: return sigmoid(x);
    default: return erf(x);
  }
}

template <class R>
__device__ NNRS_NOINLINE R dear(int op, R a, R b) {
  return op == 4 ? pow(a, b) : atan2(a, b);
}

template <class R>
__device__ inline R unary(int op, R x) {
  switch (op) {
    case 0: return -x;
    case 1: return fabs(x);
    case 2: return sign(x);
    case 3: return floor(x);
    case 4: return ceil(x);
    case 5: return round(x);
    case 6: return sqrt(x);
    case 25: return (R)(x != x);
    case 26: return (R)(fabs(x) == NNRS_INF);
    case 27: return (R)(x == 0);
    case 28: return round_f16(x);
    case 29: return round_bf16(x);
    default: return dear(op, x);
  }
}

template <class R>
__device__ inline R binary(int op, R a, R b) {
  switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 5: return a > b ? a : b;
    case 6: return a < b ? a : b;
    case 8: return (R)(a < b);
    case 9: return (R)(a <= b);
    case 10: return (R)(a > b);
    case 11: return (R)(a >= b);
    case 12: return (R)(a == b);
    case 13: return (R)(a != b);
    case 14: return (R)(a != 0 && b != 0);
    case 15: return (R)(a != 0 || b != 0);
    case 16: return (R)((a != 0) != (b != 0));
    default: return dear(op, a, b);
  }
}

template <class R, int REGISTERS>
__device__ inline void element(const Step *code, int steps, const Source *x, const Sink *y, const double *scalars,
                               long long i) {
  R v[REGISTERS];
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    const Step s = code[k];
    if (s.op >= BINARY) v[s.y] = binary(s.op - BINARY, v[s.a], v[s.b]);
    else if (s.op >= UNARY) v[s.y] = unary(s.op - UNARY, v[s.a]);
    else if (s.op == INPUT) v[s.y] = input<R>(x[s.a], i);
    else if (s.op == SCALAR) v[s.y] = (R)scalars[s.a];
    else if (s.op == NUMBER) v[s.y] = (R)s.number;
    else if (s.op == SELECT) v[s.y] = v[s.a] != 0 ? v[s.b] : v[s.c];
    else keep(y[s.b].at, (int)y[s.b].type, i, (double)v[s.a]);
  }
}

// One array's part of a pass over many, as a solver makes it; chunks are counted over all of them. Its numbers, which change
// from step to step, lie apart.
struct Job {
  long long n, chunk;
  const Source *x;
  const Sink *y;
  long long scalars;
};

}  // namespace nnrs

#define NNRS_PROGRAM(R, name, REGISTERS)                                                                              \
  extern "C" __global__ void name(const nnrs::Step *code, int steps, const nnrs::Source *x, const nnrs::Sink *y,      \
                                  const double *scalars, long long n) {                                               \
    for (long long i = nnrs::first(); i < n; i += nnrs::step())                                                       \
      nnrs::element<R, REGISTERS>(code, steps, x, y, scalars, i);                                                     \
  }                                                                                                                   \
  extern "C" __global__ void name##_jobs(const nnrs::Step *code, int steps, const nnrs::Job *jobs, int count,         \
                                         long long chunk, const double *scalars) {                                    \
    int low = 0, high = count; /* the last job that begins at or before this block's chunk */                         \
    while (high - low > 1) {                                                                                          \
      int middle = (low + high) / 2;                                                                                  \
      if (jobs[middle].chunk <= blockIdx.x) low = middle;                                                             \
      else high = middle;                                                                                             \
    }                                                                                                                 \
    const nnrs::Job job = jobs[low];                                                                                  \
    long long from = (blockIdx.x - job.chunk) * chunk, to = from + chunk < job.n ? from + chunk : job.n;              \
    for (long long i = from + threadIdx.x; i < to; i += blockDim.x)                                                   \
      nnrs::element<R, REGISTERS>(code, steps, job.x, job.y, scalars + job.scalars, i);                               \
  }

NNRS_PROGRAM(float, program_f32_16, 16)
NNRS_PROGRAM(float, program_f32_64, 64)
NNRS_PROGRAM(float, program_f32_512, 512)
NNRS_PROGRAM(double, program_f64_16, 16)
NNRS_PROGRAM(double, program_f64_64, 64)
NNRS_PROGRAM(double, program_f64_512, 512)
