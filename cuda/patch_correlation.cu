// Products of patches of two images, summed; and the images' gradients. Images are (height, width, channels).
#include "common.cuh"

namespace nnrs {

struct Correlation {
  long long channels, size[2], out[2], shifts[2], patch[2], shift[2], patch_step[2], shift_step[2], pad[2];

  __device__ long long shifted(int a, long long s) const { return s * shift_step[a] - shift[a]; }
  __device__ bool inside(int a, long long i) const { return i >= 0 && i < size[a]; }

  __device__ long long element(long long b, long long i, long long j) const {
    return ((b * size[0] + i) * size[1] + j) * channels;
  }

  // The places of patches along axis a whose patch has element i of the first image.
  __device__ long long first_over(int a, long long i) const {
    const long long p = i + pad[a];
    return p < patch[a] ? 0 : (p - patch[a]) / patch_step[a] + 1;
  }
  __device__ long long end_over(int a, long long i) const {
    const long long end = (i + pad[a]) / patch_step[a] + 1;
    return end < out[a] ? end : out[a];
  }
};

template <class R>
__device__ inline void correlate(const void *x, int type, const void *other, void *y, long long count,
                                 const Correlation &c) {
  for (long long e = first(); e < count; e += step()) {
    long long right = e;
    long long down = divide(right, c.shifts[1]);
    long long column = divide(down, c.shifts[0]);
    long long row = divide(column, c.out[1]);
    const long long b = divide(row, c.out[0]);
    down = c.shifted(0, down), right = c.shifted(1, right);
    R sum = 0;
    for (long long i = row * c.patch_step[0] - c.pad[0], p = 0; p < c.patch[0]; ++p, ++i) {
      if (!c.inside(0, i) || !c.inside(0, i + down)) continue;
      for (long long j = column * c.patch_step[1] - c.pad[1], q = 0; q < c.patch[1]; ++q, ++j) {
        if (!c.inside(1, j) || !c.inside(1, j + right)) continue;
        const long long at = c.element(b, i, j), there = c.element(b, i + down, j + right);
        for (long long k = 0; k < c.channels; ++k)
          sum += fetch_real<R>(x, type, at + k) * fetch_real<R>(other, type, there + k);
      }
    }
    keep_real<R>(y, type, e, sum);
  }
}

template <class R>
__device__ inline void correlation_gradient(const void *gy, int type, const void *other, void *gx, long long count,
                                            const Correlation &c, int second, int add) {
  for (long long e = first(); e < count; e += step()) {
    long long k = e;
    long long j = divide(k, c.channels);
    long long i = divide(j, c.size[1]);
    const long long b = divide(i, c.size[0]);
    R sum = 0;
    for (long long p = 0; p < c.shifts[0]; ++p)
      for (long long q = 0; q < c.shifts[1]; ++q) {
        const long long down = c.shifted(0, p), right = c.shifted(1, q);
        const long long row = second ? i - down : i + down, column = second ? j - right : j + right;
        if (!c.inside(0, row) || !c.inside(1, column)) continue;
        const long long y = second ? row : i, x = second ? column : j;
        R g = 0;
        for (long long u = c.first_over(0, y); u < c.end_over(0, y); ++u)
          for (long long v = c.first_over(1, x); v < c.end_over(1, x); ++v)
            g += fetch_real<R>(gy, type, (((b * c.out[0] + u) * c.out[1] + v) * c.shifts[0] + p) * c.shifts[1] + q);
        sum += g * fetch_real<R>(other, type, c.element(b, row, column) + k);
      }
    keep_real<R>(gx, type, e, add ? fetch_real<R>(gx, type, e) + sum : sum);
  }
}

}  // namespace nnrs

#define NNRS_SIZES                                                                                              \
  long long channels, long long height, long long width, long long out0, long long out1, long long shifts0,     \
      long long shifts1, long long patch0, long long patch1, long long shift0, long long shift1,                \
      long long patch_step0, long long patch_step1, long long shift_step0, long long shift_step1,               \
      long long pad0, long long pad1
#define NNRS_GIVEN                                                                                              \
  nnrs::Correlation{channels,         {height, width},            {out0, out1},                                 \
                    {shifts0, shifts1}, {patch0, patch1},           {shift0, shift1},                           \
                    {patch_step0, patch_step1}, {shift_step0, shift_step1}, {pad0, pad1}}

#define NNRS_CORRELATION(R, suffix)                                                                             \
  extern "C" __global__ void correlate_##suffix(const void *x, int type, const void *other, void *y,            \
                                                long long count, NNRS_SIZES) {                                  \
    nnrs::correlate<R>(x, type, other, y, count, NNRS_GIVEN);                                                   \
  }                                                                                                             \
  extern "C" __global__ void correlation_gradient_##suffix(const void *gy, int type, const void *other,         \
                                                           void *gx, long long count, NNRS_SIZES, int second,   \
                                                           int add) {                                           \
    nnrs::correlation_gradient<R>(gy, type, other, gx, count, NNRS_GIVEN, second, add);                         \
  }

NNRS_CORRELATION(float, f32)
NNRS_CORRELATION(double, f64)
