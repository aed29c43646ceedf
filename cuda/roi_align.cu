// Means of interpolated images over the bins of boxes; and the transpose, in which each element of an image looks for the bins
// that it is in, since sums in another order would differ.
#include "common.cuh"

namespace nnrs {

struct Span {
  long long n;
  double start, bin, count;

  __device__ Span(long long n, long long bins, double scale, long long samples, double first, double end)
      : n(n), start(first * scale), bin((end - first) * scale / (double)bins) {
    count = samples > 0 ? (double)samples : ceil(bin) > 0 ? ceil(bin) : 0;
  }

  __device__ bool unknown() const { return !(fabs(start) <= 1.7976931348623157e308 && fabs(bin) <= 1.7976931348623157e308); }

  __device__ double place(long long b, double i) const {
    return start + (double)b * bin + (i + 0.5) * (bin / count) - 0.5;
  }

  __device__ double limited(double i) const { return i > 0 ? (i < count ? i : count) : 0; }

  // The samples of a bin that are between two places, or a few more.
  __device__ void between(long long b, double low, double high, long long *from, long long *to) const {
    const double apart = bin / count, zero = place(b, 0);
    double first = 0, end = count;
    if (apart != 0) {
      const double p = (low - zero) / apart, q = (high - zero) / apart;
      first = floor(p < q ? p : q) - 1, end = ceil(p < q ? q : p) + 2;
    }
    *from = (long long)limited(first), *to = (long long)limited(end);
  }

  // The first of the two elements at a place, and the weight of the second; -1 beyond the image.
  __device__ long long tap(double p, double *t) const {
    if (!(p >= -1 && p <= (double)n)) return -1;
    const double last = (double)(n - 1);
    p = p > 0 ? (p < last ? p : last) : 0;
    *t = p - floor(p);
    return (long long)p;
  }

  // What element i counts in a bin.
  __device__ double weight(long long b, long long i) const {
    if (unknown()) return i == 0 ? start * 0 + bin * 0 : 0;
    long long from, to;
    between(b, i == 0 ? -1 : (double)(i - 1), i == n - 1 ? (double)n : (double)(i + 1), &from, &to);
    double sum = 0;
    for (long long k = from; k < to; ++k) {
      double t;
      const long long at = tap(place(b, (double)k), &t);
      if (at < 0) continue;
      if (at == i) sum += 1 - t;
      if ((at + 1 < n ? at + 1 : n - 1) == i) sum += t;
    }
    return count > 0 ? sum / count : 0;
  }

  // The bins that may have element i.
  __device__ void bins(long long i, long long most, long long *from, long long *to) const {
    *from = 0, *to = most;
    if (unknown() || bin == 0) return;
    const double low = (i == 0 ? -1 : (double)(i - 1)) + 0.5, high = (i == n - 1 ? (double)n : (double)(i + 1)) + 0.5;
    double first = (low - start) / bin, end = (high - start) / bin;
    if (first > end) {
      const double other = first;
      first = end, end = other;
    }
    first = floor(first) - 1, end = ceil(end) + 1;
    *from = first > 0 ? (first < (double)most ? (long long)first : most) : 0;
    *to = end > 0 ? (end < (double)most ? (long long)end : most) : 0;
  }
};

struct Roi {
  long long images, channels, height, width;
  int channel_last;
  long long boxes, rows, columns;
  double scale_y, scale_x;
  long long samples;

  // Which image or box, channel and element e of an array of `size` elements a channel is.
  __device__ void where(long long e, long long size, long long *b, long long *c, long long *p) const {
    long long last = e;
    long long first = divide(last, channel_last ? channels : size);
    *b = divide(first, channel_last ? size : channels);
    *c = channel_last ? last : first;
    *p = channel_last ? first : last;
  }

  __device__ long long element(long long b, long long c, long long at, long long size) const {
    return channel_last ? (b * size + at) * channels + c : (b * channels + c) * size + at;
  }

  // The image of a box; -1 if it is none.
  template <class R>
  __device__ long long image(const void *box, int type, long long k) const {
    const double v = (double)fetch_real<R>(box, type, 5 * k);
    return v > -1 && v < (double)images ? (long long)v : -1;
  }

  template <class R>
  __device__ Span vertical(const void *box, int type, long long k) const {
    return Span(height, rows, scale_y, samples, (double)fetch_real<R>(box, type, 5 * k + 2),
                (double)fetch_real<R>(box, type, 5 * k + 4));
  }

  template <class R>
  __device__ Span horizontal(const void *box, int type, long long k) const {
    return Span(width, columns, scale_x, samples, (double)fetch_real<R>(box, type, 5 * k + 1),
                (double)fetch_real<R>(box, type, 5 * k + 3));
  }
};

template <class R>
__device__ inline R line(const Roi &r, const Span &s, const void *x, int type, long long b, long long c, long long row,
                         long long bin) {
  long long from, to;
  R sum = 0;
  s.between(bin, -1, (double)s.n, &from, &to);
  for (long long k = from; k < to; ++k) {
    double t;
    const long long at = s.tap(s.place(bin, (double)k), &t);
    if (at < 0) continue;
    const long long next = at + 1 < s.n ? at + 1 : s.n - 1;
    sum += fetch_real<R>(x, type, r.element(b, c, row * r.width + at, r.height * r.width)) * (R)((1 - t) / s.count);
    if (t != 0)
      sum += fetch_real<R>(x, type, r.element(b, c, row * r.width + next, r.height * r.width)) * (R)(t / s.count);
  }
  return sum;
}

template <class R>
__device__ inline void roi_gather(const void *x, int type, const void *boxes, void *y, long long count, const Roi &r) {
  for (long long e = first(); e < count; e += step()) {
    long long k, c, column;
    r.where(e, r.rows * r.columns, &k, &c, &column);
    const long long row = divide(column, r.columns), b = r.image<R>(boxes, type, k);
    const Span v = r.vertical<R>(boxes, type, k), h = r.horizontal<R>(boxes, type, k);
    R sum = 0;
    if (b < 0 || v.unknown() || h.unknown()) {
      sum = (R)nan("");
    } else {
      long long from, to;
      v.between(row, -1, (double)v.n, &from, &to);
      for (long long i = from; i < to; ++i) {
        double t;
        const long long at = v.tap(v.place(row, (double)i), &t);
        if (at < 0) continue;
        const long long next = at + 1 < v.n ? at + 1 : v.n - 1;
        sum += line<R>(r, h, x, type, b, c, at, column) * (R)((1 - t) / v.count);
        if (t != 0) sum += line<R>(r, h, x, type, b, c, next, column) * (R)(t / v.count);
      }
    }
    keep_real<R>(y, type, e, sum);
  }
}

template <class R>
__device__ inline void roi_spread(const void *gy, int type, const void *boxes, void *gx, long long count, const Roi &r,
                                  int add) {
  for (long long e = first(); e < count; e += step()) {
    long long b, c, j;
    r.where(e, r.height * r.width, &b, &c, &j);
    const long long i = divide(j, r.width);
    R sum = 0;
    for (long long k = 0; k < r.boxes; ++k) {
      if (r.image<R>(boxes, type, k) != b) continue;
      const Span v = r.vertical<R>(boxes, type, k), h = r.horizontal<R>(boxes, type, k);
      long long top, bottom, left, right;
      v.bins(i, r.rows, &top, &bottom);
      h.bins(j, r.columns, &left, &right);
      for (long long row = top; row < bottom; ++row) {
        const double p = v.weight(row, i);
        if (p == 0) continue;
        for (long long column = left; column < right; ++column) {
          const double q = h.weight(column, j);
          const long long bin = row * r.columns + column;
          if (q != 0) sum += fetch_real<R>(gy, type, r.element(k, c, bin, r.rows * r.columns)) * (R)p * (R)q;
        }
      }
    }
    keep_real<R>(gx, type, e, add ? fetch_real<R>(gx, type, e) + sum : sum);
  }
}

}  // namespace nnrs

#define NNRS_SIZES                                                                                                \
  long long count, long long images, long long channels, long long height, long long width, int channel_last,     \
      long long boxes, long long rows, long long columns, double scale_y, double scale_x, long long samples
#define NNRS_GIVEN \
  nnrs::Roi{images, channels, height, width, channel_last, boxes, rows, columns, scale_y, scale_x, samples}

#define NNRS_ROI(R, suffix)                                                                                        \
  extern "C" __global__ void roi_gather_##suffix(const void *x, int type, const void *box, void *y, NNRS_SIZES) {  \
    nnrs::roi_gather<R>(x, type, box, y, count, NNRS_GIVEN);                                                       \
  }                                                                                                                \
  extern "C" __global__ void roi_spread_##suffix(const void *gy, int type, const void *box, void *gx, NNRS_SIZES,  \
                                                 int add) {                                                        \
    nnrs::roi_spread<R>(gy, type, box, gx, count, NNRS_GIVEN, add);                                                \
  }

NNRS_ROI(float, f32)
NNRS_ROI(double, f64)
