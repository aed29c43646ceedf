// Boxes that overlap better ones suppressed, as in kernels/src/kernel/nms/. Scores are rows: of a class of a sample, of a sample's boxes.
#include "common.cuh"

namespace nnrs {

struct Rectangle {
  double low[2], high[2];

  __device__ inline double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }

  __device__ inline double side(const Rectangle &o, int k) const {
    const double from = low[k] < o.low[k] ? o.low[k] : low[k], to = high[k] < o.high[k] ? high[k] : o.high[k];
    return to > from ? to - from : 0.0;
  }

  __device__ inline double overlap(const Rectangle &o) const {
    const double common = side(o, 0) * side(o, 1);
    return common / (area() + o.area() - common);
  }
};

// Forms of boxes: of YOLO's detector and ONNX's center_point_box=1; ONNX's corners.
__device__ inline Rectangle rectangle(const void *x, int type, long long at, int corners) {
  double b[4];
  for (int k = 0; k < 4; ++k) b[k] = fetch_real<double>(x, type, at + k);
  Rectangle r;
  for (int k = 0; k < 2; ++k) {
    const double from = corners ? b[1 - k] : b[k] - 0.5 * b[k + 2], to = corners ? b[3 - k] : b[k] + 0.5 * b[k + 2];
    r.low[k] = corners && to < from ? to : from;
    r.high[k] = corners && to < from ? from : to;
  }
  return r;
}

// Objectness of a detector's box.
template <class R>
__device__ inline R objectness(const void *x, int type, long long row, R thresh) {
  const R v = fetch_real<R>(x, type, row + 4);
  return v < thresh ? (R)0 : v;
}

// Score of a class of a detector's box.
template <class R>
__device__ inline R detected(const void *x, int type, long long row, long long k, R thresh) {
  const R score = objectness<R>(x, type, row, thresh) * fetch_real<R>(x, type, row + 5 + k);
  return score < thresh ? (R)0 : score;
}

// Rows of scores: by class, or of the objectness.
template <class R>
__device__ inline void detection_scores(const void *x, int type, R *scores, long long size, long long n, long long classes,
                                        int per_class, R thresh) {
  const long long columns = per_class ? classes : 1;
  for (long long e = first(); e < size; e += step()) {
    long long box = e, k = divide(box, n), sample = divide(k, columns);
    const long long row = (sample * n + box) * (5 + classes);
    scores[e] = per_class ? detected<R>(x, type, row, k, thresh) : objectness<R>(x, type, row, thresh);
  }
}

// The places of a row's scores in their order, from the highest on; NaN last.
template <class R>
__device__ inline void order(const R *scores, long long *y, long long size, long long n) {
  for (long long e = first(); e < size; e += step()) {
    const long long row = e / n * n, own = e - row;
    const R lowest = -(R)NNRS_INF, v = scores[e] == scores[e] ? scores[e] : lowest;
    long long rank = 0;
    for (long long i = 0; i < n; ++i) {
      const R o = scores[row + i] == scores[row + i] ? scores[row + i] : lowest;
      rank += o > v || (o == v && i < own);
    }
    y[row + rank] = own;
  }
}

// A thread a class of a sample.
template <class R>
__device__ inline void suppress(const void *x, int type, R *scores, const long long *order, long long rows, long long n,
                                long long classes, double nms) {
  for (long long r = first(); r < rows; r += step()) {
    const long long base = r / classes * n, width = 5 + classes;
    R *s = scores + r * n;
    const long long *o = order + r * n;
    for (long long k = 0; k < n; ++k) {
      if (s[o[k]] == 0) continue;
      const Rectangle a = rectangle(x, type, (base + o[k]) * width, 0);
      for (long long l = k + 1; l < n; ++l) {
        if (s[o[l]] != 0 && a.overlap(rectangle(x, type, (base + o[l]) * width, 0)) > nms) s[o[l]] = 0;
      }
    }
  }
}

// A thread a box: 1 where one of more objectness overlaps it, 0 elsewhere.
template <class R>
__device__ inline void suppress_all(const void *x, int type, R *marks, const long long *order, long long size, long long n,
                                    long long width, double nms) {
  for (long long e = first(); e < size; e += step()) {
    const long long row = e / n * n, k = e - row, own = order[e];
    const Rectangle b = rectangle(x, type, (row + own) * width, 0);
    bool marked = false;
    for (long long l = 0; l < k && !marked; ++l) marked = rectangle(x, type, (row + order[row + l]) * width, 0).overlap(b) > nms;
    marks[row + own] = marked;
  }
}

template <class R>
__device__ inline void detections(const void *x, int from, void *y, int to, const R *scores, long long size, long long n,
                                  long long classes, int per_class, R thresh) {
  for (long long e = first(); e < size; e += step()) {
    long long field = e, box = divide(field, 5 + classes), sample = divide(box, n);
    R v = fetch_real<R>(x, from, e);
    if (field == 4) v = objectness<R>(x, from, e - field, thresh);
    if (field > 4) v = per_class ? scores[(sample * classes + field - 5) * n + box] : detected<R>(x, from, e - field, field - 5, thresh);
    if (!per_class && field > 3 && scores[sample * n + box] != 0) v = 0;
    keep_real<R>(y, to, e, v);
  }
}

// The boxes that are left of a class of a sample, in places from row * most on, and how many.
template <class R>
__device__ inline void select(const void *boxes, int type, const R *scores, const long long *order, long long *kept,
                              long long *counts, long long rows, long long n, long long classes, long long most, int corners,
                              double iou, R least) {
  for (long long r = first(); r < rows; r += step()) {
    const long long base = r / classes * n;
    long long count = 0, *mine = kept + r * most;
    for (long long k = 0; k < n && count < most; ++k) {
      const long long i = order[r * n + k];
      if (!(scores[r * n + i] >= least)) continue;
      const Rectangle b = rectangle(boxes, type, (base + i) * 4, corners);
      bool near = false;
      for (long long l = 0; l < count && !near; ++l) near = rectangle(boxes, type, (base + mine[l]) * 4, corners).overlap(b) > iou;
      if (!near) mine[count++] = i;
    }
    counts[r] = count;
  }
}

}  // namespace nnrs

// Batch, class and box for `size` boxes, as many as there are; the largest number for the others. A thread a class of a sample.
extern "C" __global__ void selected(const long long *kept, const long long *counts, unsigned long long *y, long long size,
                                    long long rows, long long classes, long long most) {
  for (long long r = nnrs::first(); r < rows; r += nnrs::step()) {
    long long at = 0;
    for (long long before = 0; before < r; ++before) at += counts[before];
    for (long long k = 0; k < counts[r] && at < size; ++k, ++at) {
      y[3 * at] = (nnrs::u64)(r / classes);
      y[3 * at + 1] = (nnrs::u64)(r % classes);
      y[3 * at + 2] = (nnrs::u64)kept[r * most + k];
    }
    for (; r == rows - 1 && at < size; ++at) y[3 * at] = y[3 * at + 1] = y[3 * at + 2] = ~0ull;
  }
}

#define NNRS_NMS(R, suffix)                                                                                              \
  extern "C" __global__ void detection_scores_##suffix(const void *x, int type, R *scores, long long size, long long n,  \
                                                       long long classes, int per_class, R thresh) {                     \
    nnrs::detection_scores<R>(x, type, scores, size, n, classes, per_class, thresh);                                     \
  }                                                                                                                      \
  extern "C" __global__ void order_##suffix(const R *scores, long long *y, long long size, long long n) {                \
    nnrs::order<R>(scores, y, size, n);                                                                                  \
  }                                                                                                                      \
  extern "C" __global__ void suppress_##suffix(const void *x, int type, R *scores, const long long *order,               \
                                               long long rows, long long n, long long classes, double nms) {             \
    nnrs::suppress<R>(x, type, scores, order, rows, n, classes, nms);                                                    \
  }                                                                                                                      \
  extern "C" __global__ void suppress_all_##suffix(const void *x, int type, R *marks, const long long *order,            \
                                                   long long size, long long n, long long width, double nms) {           \
    nnrs::suppress_all<R>(x, type, marks, order, size, n, width, nms);                                                   \
  }                                                                                                                      \
  extern "C" __global__ void detections_##suffix(const void *x, int from, void *y, int to, const R *scores,              \
                                                 long long size, long long n, long long classes, int per_class,          \
                                                 R thresh) {                                                             \
    nnrs::detections<R>(x, from, y, to, scores, size, n, classes, per_class, thresh);                                    \
  }                                                                                                                      \
  extern "C" __global__ void select_##suffix(const void *boxes, int type, const R *scores, const long long *order,       \
                                             long long *kept, long long *counts, long long rows, long long n,            \
                                             long long classes, long long most, int corners, double iou, R least) {      \
    nnrs::select<R>(boxes, type, scores, order, kept, counts, rows, n, classes, most, corners, iou, least);              \
  }

NNRS_NMS(float, f32)
NNRS_NMS(double, f64)
