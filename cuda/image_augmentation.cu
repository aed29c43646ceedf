// Images altered at random, as in kernels/src/kernel/image_augmentation/.
#include "common.cuh"

namespace nnrs {

const int NUMBERS = 9, PARAMETERS = 10;

template <class R>
__device__ inline void augment(const void *x, int from, void *y, int to, const R *noise, long long size,
                               const double *parameters, long long channels, long long h, long long w, long long to_h,
                               long long to_w, R center) {
  for (long long e = first(); e < size; e += step()) {
    long long column = e, row = divide(column, to_w), c = divide(row, to_h), image = divide(c, channels);
    const double *p = parameters + image * (PARAMETERS + 2 * channels);
    double ay = (double)(p[8] != 0 ? to_h - 1 - row : row), ax = (double)(p[7] != 0 ? to_w - 1 - column : column);
    if (p[6] != 0) {
      const double hy = (double)to_h * 0.5, hx = (double)to_w * 0.5, py = (ay - hy) / hy, px = (ax - hx) / hx;
      const double factor = (1.0 + p[6] * (py * py + px * px)) / (1.0 + p[6]);
      ay = hy + py * factor * hy;
      ax = hx + px * factor * hx;
    }
    const double dy = ay - ((double)to_h - 1.0) * 0.5, dx = ax - ((double)to_w - 1.0) * 0.5;
    double sy = p[4] + (p[2] * dx + p[3] * dy), sx = p[5] + (p[0] * dx + p[1] * dy);
    sy = sy < 0 ? 0 : sy > (double)(h - 1) ? (double)(h - 1) : sy;
    sx = sx < 0 ? 0 : sx > (double)(w - 1) ? (double)(w - 1) : sx;
    const long long y0 = (long long)sy, x0 = (long long)sx;
    const long long at = ((image * channels + c) * h + y0) * w + x0;
    const long long right = x0 + 1 < w ? 1 : 0, below = y0 + 1 < h ? w : 0;
    const R fy = (R)(sy - (double)y0), fx = (R)(sx - (double)x0);
    const R a = fetch_real<R>(x, from, at), b = fetch_real<R>(x, from, at + right);
    const R d = fetch_real<R>(x, from, at + below), f = fetch_real<R>(x, from, at + below + right);
    const R upper = a + fx * (b - a), lower = d + fx * (f - d);
    const double *v = p + PARAMETERS;
    R value = (upper + fy * (lower - upper) + (R)v[c] - center) * (R)v[channels + c] + center;
    if (noise) value += (R)p[9] * noise[e];
    keep_real<R>(y, to, e, value);
  }
}

}  // namespace nnrs

// Of each image: the turn (4), the middle (y, x), distortion, flips (left to right, upside down), noise; then what
// is added to each channel, and what it is multiplied by.
extern "C" __global__ void augment_parameters(const double *table, double *y, long long samples, long long channels,
                                              long long h, long long w, long long to_h, long long to_w, long long pad_y,
                                              long long pad_x, double min_scale, double max_scale, double angle,
                                              double aspect, double distortion, int flip_lr, int flip_ud, double brightness,
                                              int brightness_each, double contrast, int contrast_each, double noise) {
  for (long long s = nnrs::first(); s < samples; s += nnrs::step()) {
    const double *u = table + s * (nnrs::NUMBERS + 2 * channels), *each = u + nnrs::NUMBERS;
    double *p = y + s * (nnrs::PARAMETERS + 2 * channels);
    const double scale = min_scale * exp(log(max_scale / min_scale) * u[0]), stretch = exp(log(aspect) * (u[1] - 0.5));
    const double scale_y = scale / stretch, scale_x = scale * stretch, turn = angle * (2.0 * u[2] - 1.0);
    p[0] = cos(turn) / scale_x;
    p[1] = -sin(turn) / scale_y;
    p[2] = sin(turn) / scale_x;
    p[3] = cos(turn) / scale_y;
    p[4] = (((double)to_h - 1.0) * 0.5 + ((double)h * scale_y + 2.0 * (double)pad_y - (double)to_h) * u[4] - (double)pad_y) / scale_y;
    p[5] = (((double)to_w - 1.0) * 0.5 + ((double)w * scale_x + 2.0 * (double)pad_x - (double)to_w) * u[3] - (double)pad_x) / scale_x;
    p[6] = exp(distortion * (2.0 * u[5] - 1.0)) - 1.0;
    p[7] = flip_lr && u[6] < 0.5;
    p[8] = flip_ud && u[7] < 0.5;
    p[9] = noise * u[8];
    for (long long c = 0; c < channels; ++c) {
      p[nnrs::PARAMETERS + c] = brightness * (2.0 * each[brightness_each ? c : 0] - 1.0);
      p[nnrs::PARAMETERS + channels + c] = exp(log(contrast) * (2.0 * each[channels + (contrast_each ? c : 0)] - 1.0));
    }
  }
}

#define NNRS_AUGMENT(R, suffix)                                                                                         \
  extern "C" __global__ void augment_##suffix(const void *x, int from, void *y, int to, const R *noise, long long size, \
                                              const double *parameters, long long channels, long long h, long long w,   \
                                              long long to_h, long long to_w, R center) {                               \
    nnrs::augment<R>(x, from, y, to, noise, size, parameters, channels, h, w, to_h, to_w, center);                      \
  }

NNRS_AUGMENT(float, f32)
NNRS_AUGMENT(double, f64)
