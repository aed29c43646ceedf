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

  // A gamma number with shape k, and the logarithm of what it is to be multiplied by.
  __device__ inline double gamma(double k, double &log_factor) {
    const double d = (k < 1 ? k + 1.0 : k) - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
      const Words w = philox(draw, (element & 0xffffffffffull) | turn++ << 40);
      double u[4];
      for (int i = 0; i < 4; ++i) u[i] = ((double)w.w[i] + 1.0) * (1.0 / 4294967296.0);
      const double z = sqrt(-2.0 * log(u[0])) * cos(6.283185307179586 * u[1]), root = 1.0 + c * z;
      if (root <= 0) continue;
      const double v = root * root * root, square = z * z;
      if (u[2] < 1.0 - 0.0331 * square * square || log(u[2]) < 0.5 * square + d - d * v + d * log(v)) {
        log_factor = k < 1 ? log(u[3]) / k : 0.0;
        return d * v;
      }
    }
  }

  // Through the probabilities of 0, of 1 and so on.
  __device__ inline double by_search(double n, double p, double start) {
    const double ratio = p / (1.0 - p), most = n < 110 ? n : 110;
    for (;;) {
      double numbers[2];
      pair(numbers[0], numbers[1]);
      for (int i = 0; i < 2; ++i) {
        double u = numbers[i], part = start, k = 0;
        while (u > part && k < most) {
          u -= part;
          k += 1.0;
          part *= (n + 1.0 - k) / k * ratio;
        }
        if (u <= part) return k;
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
    double log_factor;
    const double x = nnrs::ElementWords(draw, e).gamma(k, log_factor);
    nnrs::keep(y, type, e, theta * (k < 1 ? x * exp(log_factor) : x));
  }
}

extern "C" __global__ void beta_numbers(void *y, int type, long long n, NNRS_DRAW, double a, double b) {
  const nnrs::Draw draw(held, key, number);
  for (long long e = nnrs::first(); e < n; e += nnrs::step()) {
    nnrs::ElementWords words(draw, e);
    double log_x, log_y;
    const double x = words.gamma(a, log_x), z = words.gamma(b, log_y);
    nnrs::keep(y, type, e, 1.0 / (1.0 + z / x * exp(log_y - log_x)));
  }
}

extern "C" __global__ void binomial_numbers(void *y, int type, long long n, NNRS_DRAW, double trials, double p) {
  const nnrs::Draw draw(held, key, number);
  const double less = p < 1.0 - p ? p : 1.0 - p, start = exp(trials * log1p(-less));
  for (long long e = nnrs::first(); e < n; e += nnrs::step()) {
    nnrs::ElementWords words(draw, e);
    const double count = trials * less < 10 ? words.by_search(trials, less, start) : words.by_rejection(trials, less);
    nnrs::keep(y, type, e, p > 0.5 ? trials - count : count);
  }
}
