// Patches of images replaced by random numbers, as in kernels/src/kernel/random_erase/.
#include "common.cuh"

namespace nnrs {

// From where to where a side of this length lies among n places.
__device__ inline void side(double length, long long n, double u, long long *y) {
  const long long size = length >= (double)n ? n : length > 0 ? (long long)length : 0;
  const long long choices = n - size + 1;
  long long first = (long long)(u * (double)choices);
  if (first >= choices) first = choices - 1;
  y[0] = first;
  y[1] = first + size + 1 < n ? first + size + 1 : n;
}

template <class R>
__device__ inline void erase(const void *x, int from, void *y, int to, const R *values, long long size, long long channels,
                             long long h, long long w, int channel_last, const long long *patches, long long n, int share,
                             R low, R width) {
  for (long long e = first(); e < size; e += step()) {
    long long i = e, c = 0, row = 0;
    if (channel_last) {
      long long pixel = divide(i, channels);
      c = i, i = pixel;
      row = divide(i, w);
    } else {
      row = divide(i, w);
    }
    const long long column = i;
    long long rest = row;
    row = divide(rest, h);  // image, or channel
    const long long image = channel_last ? row : row / channels, line = rest;
    if (!channel_last) c = row - image * channels;
    const long long *p = patches + (share ? image : image * channels + c) * n * 4;
    bool erased = false;
    for (long long k = 0; k < n; ++k, p += 4) erased |= line >= p[0] && line < p[1] && column >= p[2] && column < p[3];
    R v = 0;
    if (!erased) v = fetch_real<R>(x, from, e);
    else if (values) v = low + width * values[e];
    keep_real<R>(y, to, e, v);
  }
}

}  // namespace nnrs

// Rows and columns of each patch.
extern "C" __global__ void erase_patches(const double *table, long long *y, long long n, long long h, long long w, double prob,
                                         double area0, double area1, double aspect0, double aspect1) {
  for (long long k = nnrs::first(); k < n; k += nnrs::step()) {
    const double *u = table + 5 * k;
    const double area = (area0 + u[1] * (area1 - area0)) * ((double)h * (double)w);
    const double aspect = aspect0 + u[2] * (aspect1 - aspect0);
    long long *p = y + 4 * k;
    p[0] = p[1] = p[2] = p[3] = 0;
    if (u[0] >= prob) continue;
    nnrs::side(sqrt(area * aspect), h, u[3], p);
    nnrs::side(sqrt(area / aspect), w, u[4], p + 2);
  }
}

#define NNRS_ERASE(R, suffix)                                                                                            \
  extern "C" __global__ void erase_##suffix(const void *x, int from, void *y, int to, const R *values, long long size,   \
                                            long long channels, long long h, long long w, int channel_last,              \
                                            const long long *patches, long long n, int share, R low, R width) {          \
    nnrs::erase<R>(x, from, y, to, values, size, channels, h, w, channel_last, patches, n, share, low, width);           \
  }

NNRS_ERASE(float, f32)
NNRS_ERASE(double, f64)
