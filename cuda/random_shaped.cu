// Numbers of other distributions, by rejection, as in kernels/src/random/philox/shaped.rs: all in double. A thread an element.
#include "philox.cuh"

namespace nnrs {

// The words of one element.
struct ElementWords {
  Draw draw;
  u64 element, turn;

  __device__ inline ElementWords(const Draw &d, long long e) : draw(d), element((u64)e), turn(0) {}

  // Two numbers above 0 and at most 1.
  __device__ inline void pair(double &a, double &b) {
    const Words w = philox(draw, (element & 0xffffffffffull) | turn++ << 40);
    a = ((double)(w.pair(0) >> 11) + 1.0) * (1.0 / 9007199254740992.0);
    b = ((double)(w.pair(1) >> 11) + 1.0) * (1.0 / 9007199254740992.0);
  }

  // The logarithm of a gamma number with shape k.
  __device__ inline double log_gamma(double k) {
    const double d = (k < 1 ? k + 1.0 : k) - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
      double u, turn_, accept, less;
      pair(u, turn_);
      pair(accept, less);
      const double z = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * turn_), root = 1.0 + c * z;
      if (root <= 0) continue;
      const double v = root * root * root;
      if (log(accept) < 0.5 * z * z + d - d * v + d * log(v)) return log(d * v) + (k < 1 ? log(less) / k : 0.0);
    }
  }

  __device__ inline double by_distances(double n, double p) {
    const double logarithm = log1p(-p);
    double at = 0, count = 0;
    for (;;) {
      double u[2];
      pair(u[0], u[1]);
      for (int k = 0; k < 2; ++k) {
        at += floor(log(u[k]) / logarithm) + 1.0;
        if (at > n) return count;
        count += 1.0;
      }
    }
  }

  __device__ inline double by_rejection(double n, double p);
};

// What Stirling's formula for ln k! leaves out.
__device__ inline double stirling(double k) {
  const double first[10] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
                            0.01664469118982119, 0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
                            0.009255462182712733, 0.00833056343336287};
  if (k < 10) return first[(int)k];
  k += 1.0;
  return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / (k * k)) / (k * k)) / k;
}

__device__ inline double ElementWords::by_rejection(double n, double p) {
  const double spread = sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, inside = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread, ratio = p / (1.0 - p);
  const double mode = floor((n + 1.0) * p);
  for (;;) {
    double u, v;
    pair(u, v);
    u -= 0.5;
    const double near = 0.5 - fabs(u), k = floor((2.0 * a / near + b) * u + c);
    if (near >= 0.07 && v <= inside) return k;
    if (!(k >= 0 && k <= n)) continue;
    const double bound = (mode + 0.5) * log((mode + 1.0) / (ratio * (n - mode + 1.0))) +
                         (n + 1.0) * log((n - mode + 1.0) / (n - k + 1.0)) +
                         (k + 0.5) * log(ratio * (n - k + 1.0) / (k + 1.0)) +
                         (stirling(mode) + stirling(n - mode) - stirling(k) - stirling(n - k));
    if (log(v * alpha / (a / (near * near) + b)) <= bound) return k;
  }
}

}  // namespace nnrs

extern "C" __global__ void gamma_numbers(void *y, int type, long long n, NNRS_DRAW, double k, double theta) {
  const nnrs::Draw draw(held, key, number);
  for (long long e = nnrs::first(); e < n; e += nnrs::step()) {
    nnrs::keep(y, type, e, exp(nnrs::ElementWords(draw, e).log_gamma(k)) * theta);
  }
}

extern "C" __global__ void beta_numbers(void *y, int type, long long n, NNRS_DRAW, double a, double b) {
  const nnrs::Draw draw(held, key, number);
  for (long long e = nnrs::first(); e < n; e += nnrs::step()) {
    nnrs::ElementWords words(draw, e);
    const double x = words.log_gamma(a);
    nnrs::keep(y, type, e, 1.0 / (1.0 + exp(words.log_gamma(b) - x)));
  }
}

extern "C" __global__ void binomial_numbers(void *y, int type, long long n, NNRS_DRAW, double trials, double p) {
  const nnrs::Draw draw(held, key, number);
  for (long long e = nnrs::first(); e < n; e += nnrs::step()) {
    nnrs::ElementWords words(draw, e);
    const double less = p < 1.0 - p ? p : 1.0 - p;
    const double count = trials * less < 10 ? words.by_distances(trials, less) : words.by_rejection(trials, less);
    nnrs::keep(y, type, e, p > 0.5 ? trials - count : count);
  }
}
