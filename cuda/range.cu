// Numbers at equal distances.
#include "common.cuh"

// y = start + i step, by way of float if y is not double; the last one is `last`.
extern "C" __global__ void range(void *y, int type, long long n, double start, double step, double last) {
  for (long long i = nnrs::first(); i < n; i += nnrs::step()) {
    double v = i > 0 && i == n - 1 ? last : start + (double)i * step;
    nnrs::keep(y, type, i, type == nnrs::F64 ? v : (double)(float)v);
  }
}

// Each number is the sum of the one before and step, in float; `starts` has the first one of each run.
extern "C" __global__ void counted(void *y, int type, long long n, const float *starts, int run, float step) {
  long long runs = (n + run - 1) / run;
  for (long long r = nnrs::first(); r < runs; r += nnrs::step()) {
    float v = starts[r];
    for (long long i = r * run; i < n && i < (r + 1) * run; ++i, v += step) nnrs::keep(y, type, i, (double)v);
  }
}
