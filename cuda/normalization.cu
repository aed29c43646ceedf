// Normalization. Statistics of channels of an array (outer, channels, inner), and of rows that have a scale and a shift for
// each element. Sums are of short runs in the elements' type, joined in double; their order depends on sizes alone.
#include "channels.cuh"

namespace nnrs {

// How kernels take numbers: one by one, four neighbours of one channel at once, or those of four channels that lie side by
// side. Fours want arrays that begin at a multiple of them.
enum Taking { SINGLE, ALONG, ACROSS };

template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T at[4];
};

// The numbers at place i, in fours of them number i.
template <class R>
__device__ inline void fetch_at(const void *x, int type, long long i, R (&v)[1]) {
  v[0] = fetch_real<R>(x, type, i);
}

template <class R>
__device__ inline void fetch_at(const void *x, int type, long long i, R (&v)[4]) {
  if (type == F32) {
    Four<float> four = ((const Four<float> *)x)[i];
    for (int k = 0; k < 4; ++k) v[k] = (R)four.at[k];
  } else if (type == F64) {
    Four<double> four = ((const Four<double> *)x)[i];
    for (int k = 0; k < 4; ++k) v[k] = (R)four.at[k];
  } else {
    Four<u16> four = ((const Four<u16> *)x)[i];
    for (int k = 0; k < 4; ++k) v[k] = type == F16 ? (R)to_float(half{four.at[k]}) : (R)to_float(bfloat16{four.at[k]});
  }
}

template <class R>
__device__ inline void keep_at(void *y, int type, long long i, const R (&v)[1]) {
  keep_real<R>(y, type, i, v[0]);
}

template <class R>
__device__ inline void keep_at(void *y, int type, long long i, const R (&v)[4]) {
  if (type == F32) {
    Four<float> four;
    for (int k = 0; k < 4; ++k) four.at[k] = (float)v[k];
    ((Four<float> *)y)[i] = four;
  } else if (type == F64) {
    Four<double> four;
    for (int k = 0; k < 4; ++k) four.at[k] = (double)v[k];
    ((Four<double> *)y)[i] = four;
  } else {
    Four<u16> four;
    for (int k = 0; k < 4; ++k) four.at[k] = type == F16 ? to_half(narrow(v[k])).bits : to_bfloat16(narrow(v[k])).bits;
    ((Four<u16> *)y)[i] = four;
  }
}

// The places of a channel in their order, from one that is `from` on by `size`.
struct Channel {
  long long index, at, step, stride, leap, inner;

  __device__ inline Channel(long long channel, long long channels, long long inner, long long from, int size)
      : at(from), inner(inner) {
    const long long outer = divide(at, inner);
    step = size;
    const long long outer_step = divide(step, inner);
    index = (outer * channels + channel) * inner + at;
    stride = outer_step * channels * inner + step;
    leap = (channels - 1) * inner;
  }

  __device__ inline void next() {
    index += stride, at += step;
    if (at >= inner) at -= inner, index += leap;
  }
};

// Places that a thread asks for before it waits for any.
__device__ constexpr int batch(Taking taking) { return taking == SINGLE ? BATCH : 2; }
// Numbers of a place, channels of a thread, and numbers of one channel.
__device__ constexpr int numbers(Taking taking) { return taking == SINGLE ? 1 : 4; }
__device__ constexpr int channels_of(Taking taking) { return taking == ACROSS ? 4 : 1; }
__device__ constexpr int each_of(Taking taking) { return taking == ALONG ? 4 : 1; }

// Whether squares were too large for their type, so that they are to be summed up in double.
template <class R>
__device__ inline bool overflowed(const Moments &m) {
  return sizeof(R) < sizeof(double) && !(fabs(m.squares) < __longlong_as_double(0x7ff0000000000000ll));
}

// The moments of number k of each place, or of all numbers of each place, in double.
template <Taking T>
__device__ inline Moments wide_moments(const void *x, int type, Channel c, long long j, long long end, int size, int k) {
  const int N = numbers(T);
  Moments m = {0, 0, 0};
  for (; j < end; c.next(), j += size) {
    double v[N];
    fetch_at(x, type, c.index, v);
    for (int i = 0; i < N; ++i)
      if (T != ACROSS || i == k) m = Merge()(m, Moments{1, v[i], 0});
  }
  return m;
}

// `channels`, `inner` and `count` in places.
template <class R, Taking T>
__device__ inline void moments(const void *x, int type, long long channels, long long inner, long long count, int size,
                               Pair *found) {
  const int N = numbers(T), C = channels_of(T), B = batch(T);
  Team team(blockIdx.x, size, size == THREADS);
  Part part(blockIdx.y, gridDim.y, count);
  Moments m[C];
  for (int k = 0; k < C; ++k) m[k] = {0, 0, 0};
  const long long begin = team.row < channels ? part.begin + team.rank : part.end;
  long long j = begin;
  Channel c(team.row, channels, inner, j, team.size);
  while (j < part.end) {
    Shifted<R> run[C];
    R shift[N];
    fetch_at(x, type, c.index, shift);
    for (int k = 0; k < C; ++k) run[k].start(shift[k]);
    for (int done = 0; done < RUN && j < part.end; done += B * each_of(T)) {
      R v[B][N];
      bool there[B];
#pragma unroll
      for (int u = 0; u < B; ++u, c.next(), j += team.size) {
        there[u] = j < part.end;
        for (int k = 0; k < N; ++k) v[u][k] = 0;
        if (there[u]) fetch_at(x, type, c.index, v[u]);
      }
#pragma unroll
      for (int u = 0; u < B; ++u)
        for (int k = 0; k < N; ++k) run[T == ACROSS ? k : 0].add(v[u][k], there[u]);
    }
    for (int k = 0; k < C; ++k) m[k] = Merge()(m[k], run[k].moments());
  }
  for (int k = 0; k < C; ++k) {
    if (!overflowed<R>(m[k])) continue;
    m[k] = wide_moments<T>(x, type, Channel(team.row, channels, inner, begin, team.size), begin, part.end, team.size, k);
  }
  for (int k = 0; k < C; ++k) {
    Moments whole = all(m[k], team, Merge());
    if (team.row < channels && team.rank == 0)
      found[(blockIdx.y * channels + team.row) * C + k] = {whole.mean, whole.squares};
  }
}

// Sums of gy and of gy * (x - mean); without x the second one is 0. `width` neighbouring channels share a mean.
template <class R, Taking T>
__device__ inline void sums(const void *gy, int gy_type, const void *x, int type, const double *mean, long long width,
                            long long channels, long long inner, long long count, int size, Pair *found) {
  const int N = numbers(T), C = channels_of(T), B = batch(T);
  Team team(blockIdx.x, size, size == THREADS);
  Part part(blockIdx.y, gridDim.y, count);
  bool live = team.row < channels;
  Pair total[C];
  double centre[C];
  R minus[C];
  for (int k = 0; k < C; ++k) {
    total[k] = {0, 0}, centre[k] = live ? mean[(team.row * C + k) / width] : 0, minus[k] = (R)centre[k];
  }
  long long j = live ? part.begin + team.rank : part.end;
  Channel c(team.row, channels, inner, j, team.size);
  while (j < part.end) {
    R sum[C], product[C];
    for (int k = 0; k < C; ++k) sum[k] = 0, product[k] = 0;
    for (int done = 0; done < RUN && j < part.end; done += B * each_of(T)) {
      R g[B][N], v[B][N];
#pragma unroll
      for (int u = 0; u < B; ++u, c.next(), j += team.size) {
        for (int k = 0; k < N; ++k) g[u][k] = 0, v[u][k] = minus[T == ACROSS ? k : 0];
        if (j < part.end) fetch_at(gy, gy_type, c.index, g[u]);
        if (j < part.end && x) fetch_at(x, type, c.index, v[u]);
      }
#pragma unroll
      for (int u = 0; u < B; ++u) {
        for (int k = 0; k < N; ++k) {
          const int to = T == ACROSS ? k : 0;
          sum[to] += g[u][k], product[to] += g[u][k] * (v[u][k] - minus[to]);
        }
      }
    }
    for (int k = 0; k < C; ++k) total[k] = total[k] + Pair{(double)sum[k], (double)product[k]};
  }
  for (int k = 0; k < C; ++k) {
    total[k].b -= (centre[k] - (double)minus[k]) * total[k].a;  // what the rounding of the mean has left out
    Pair whole = all(total[k], team, Add());
    if (live && team.rank == 0) found[(blockIdx.y * channels + team.row) * C + k] = whole;
  }
}

// From what the parts have found, or from the running statistics: what backward needs, and the coefficients. A team a
// channel.
template <class R>
__device__ inline void forward(const Forward *f, const Pair *found, double *mean, double *inverse, Coefficients<R> *by) {
  Team team(blockIdx.x, JOINING, true);
  const long long c = team.row;
  Moments whole = joined(f, found, team);
  if (c >= f->channels || team.rank != 0) return;
  double m = whole.mean, v = whole.squares / (double)f->count;
  if (!found) {
    m = fetch_real<double>(f->mean.at, (int)f->mean.type, c);
    v = fetch_real<double>(f->variance.at, (int)f->variance.type, c);
  }
  settle<R>(f, c, m, v, (double)f->count, mean, inverse, by);
}

template <class R>
__device__ inline void backward(const Backward *b, const Pair *found, const double *mean, const double *inverse,
                                Coefficients<R> *by) {
  Team team(blockIdx.x, JOINING, true);
  const long long c = team.row;
  Pair total = joined(b, found, team);
  if (c >= b->channels || team.rank != 0) return;
  deliver<R>(b->to_beta, b->add_beta, c, total.a);
  deliver<R>(b->to_gamma, b->add_gamma, c, total.b * inverse[c]);
  double times = times_of(b, inverse, c);
  if (b->own)
    by[c] = by_slopes<R>(mean[c], times, slopes(b, inverse, total, c, (double)b->count));
  else
    by[c] = {0, (R)times, 0, 0};
}

// The channel of place `first()`, and of the ones after it, each `step()` on.
struct Cycle {
  long long c, at, c_step, at_step, channels, inner;

  __device__ inline Cycle(long long channels, long long inner)
      : c(0), at(first()), c_step(0), at_step(step()), channels(channels), inner(inner) {
    c = divide(at, inner), c_step = divide(at_step, inner);
    divide(c, channels), divide(c_step, channels);
  }

  __device__ inline void next() {
    c += c_step, at += at_step;
    if (at >= inner) at -= inner, ++c;
    if (c >= channels) c -= channels;
  }
};

// y may lie over a. n, `channels` and `inner` in places.
template <class R, Taking T>
__device__ inline void map(const void *a, int a_type, const void *x, int x_type, void *y, int to, long long n,
                           long long channels, long long inner, const Coefficients<R> *by, int add) {
  const int N = numbers(T), C = channels_of(T), B = T == SINGLE ? 1 : 2;
  Cycle cycle(channels, inner);
  Coefficients<R> k[C];
  long long has = -1;
  for (long long i = first(); i < n; i += B * step()) {
    R v[B][N], w[B][N], before[B][N];
#pragma unroll
    for (int u = 0; u < B; ++u) {
      const long long at = i + u * step();
      if (at >= n) continue;
      fetch_at(a, a_type, at, v[u]);
      if (x) fetch_at(x, x_type, at, w[u]);
      if (add) fetch_at(y, to, at, before[u]);
    }
#pragma unroll
    for (int u = 0; u < B; ++u, cycle.next()) {
      const long long at = i + u * step();
      if (at >= n) continue;
      if (cycle.c != has) {
        for (int q = 0; q < C; ++q) k[q] = by[cycle.c * C + q];
        has = cycle.c;
      }
      for (int q = 0; q < N; ++q) {
        const Coefficients<R> &c = k[T == ACROSS ? q : 0];
        R r = x ? v[u][q] * c.times + ((w[u][q] - c.minus) * c.by_x + c.plus) : (v[u][q] - c.minus) * c.times + c.plus;
        v[u][q] = add ? before[u][q] + r : r;
      }
      keep_at(y, to, at, v[u]);
    }
  }
}

// ---- Groups: rows whose channels have a scale and a shift each.

// A channel of a row, the channels of all samples counted on: which row it belongs to, and which scale it has.
struct GroupPlace {
  long long row, scale;

  __device__ inline GroupPlace(long long channel, long long width, long long groups, long long after, int by_sample)
      : row(channel / width), scale((by_sample ? row : row / after % groups) * width + channel % width) {}
};

template <class R>
__device__ inline void groups_scale(const double *mean, const double *inverse, const void *gamma, int gamma_type,
                                    const void *beta, int beta_type, Coefficients<R> *by, long long channels,
                                    long long width, long long groups, long long after, int by_sample) {
  for (long long c = first(); c < channels; c += step()) {
    GroupPlace p(c, width, groups, after, by_sample);
    double m = mean[p.row], times = at(gamma, gamma_type, p.scale, 1) * inverse[p.row], rest = m - (double)(R)m;
    by[c] = {(R)m, (R)times, 0, (R)(at(beta, beta_type, p.scale, 0) - rest * times)};
  }
}

struct GroupBackward {
  List gamma, mean, variance;  // the last two: gradients of the statistics
  long long rows, length, parts, width, groups, after, by_sample;
};

// The sums of a channel over the parts.
__device__ inline Pair whole(const Pair *found, long long parts, long long channels, long long c) {
  Pair total = {0, 0};
  for (long long p = 0; p < parts; ++p) total = total + found[p * channels + c];
  return total;
}

// A team a row.
template <class R>
__device__ inline void groups_backward(const GroupBackward *b, const Pair *found, const double *mean,
                                       const double *inverse, Coefficients<R> *by, int size) {
  Team team(blockIdx.x, size, true);
  bool live = team.row < b->rows;
  long long base = team.row * b->width, channels = b->rows * b->width, end = live ? b->width : 0;
  Pair total = {0, 0};
  for (long long j = team.rank; j < end; j += team.size) {
    GroupPlace p(base + j, b->width, b->groups, b->after, (int)b->by_sample);
    Pair one = whole(found, b->parts, channels, base + j);
    double gamma = at(b->gamma.at, (int)b->gamma.type, p.scale, 1);
    total = total + Pair{gamma * one.a, gamma * one.b};
  }
  total = all(total, team, Add());
  double n = (double)b->length, m = live ? mean[team.row] : 0, inv = live ? inverse[team.row] : 0;
  double by_x = -inv * inv * inv * total.b / n, plus = -inv * total.a / n;
  if (live) {
    by_x += 2 * at(b->variance.at, (int)b->variance.type, team.row, 0) / n;
    plus += at(b->mean.at, (int)b->mean.type, team.row, 0) / n;
  }
  plus -= by_x * (m - (double)(R)m);
  for (long long j = team.rank; j < end; j += team.size) {
    GroupPlace p(base + j, b->width, b->groups, b->after, (int)b->by_sample);
    double times = at(b->gamma.at, (int)b->gamma.type, p.scale, 1) * inv;
    by[base + j] = {(R)m, (R)times, (R)by_x, (R)plus};
  }
}

// The gradients of scales and shifts: over all channels that share one.
template <class R>
__device__ inline void groups_deliver(const Pair *found, const double *inverse, void *beta, int beta_type,
                                      long long add_beta, void *gamma, int gamma_type, long long add_gamma,
                                      long long scales, long long parts, long long channels, long long width,
                                      long long groups, long long after, int by_sample) {
  long long samples = channels / scales;
  for (long long s = first(); s < scales; s += step()) {
    double shift = 0, scale = 0;
    for (long long k = 0; k < samples; ++k) {
      long long row = by_sample ? s / width : (k / after * groups + s / width) * after + k % after;
      Pair one = whole(found, parts, channels, row * width + s % width);
      shift += one.a, scale += one.b * inverse[row];
    }
    deliver<R>(List{beta, beta_type}, add_beta, s, shift);
    deliver<R>(List{gamma, gamma_type}, add_gamma, s, scale);
  }
}

// ---- Rows.

template <class R>
__device__ inline void rows_forward(const void *x, int from, void *y, int to, const void *gamma, int gamma_type,
                                    const void *beta, int beta_type, double *mean, double *inverse, void *out_mean,
                                    void *out_variance, int out_type, long long rows, long long n, double eps, int size) {
  Team team(blockIdx.x, size, true);
  bool live = team.row < rows;
  long long base = team.row * n, end = live ? n : 0;
  Moments m = {0, 0, 0};
  for (long long j = team.rank; j < end;) {
    Shifted<R> run;
    run.start(fetch_real<R>(x, from, base + j));
    for (int done = 0; done < RUN && j < end; done += BATCH, j += BATCH * team.size) {
      R v[BATCH];
      load<R>(v, x, from, base, 1, j, end, team.size, 0);
      for (int u = 0; u < BATCH; ++u) run.add(v[u], j + u * team.size < end);
    }
    m = Merge()(m, run.moments());
  }
  if (overflowed<R>(m)) {
    m = {0, 0, 0};
    for (long long j = team.rank; j < end; j += team.size)
      m = Merge()(m, Moments{1, fetch_real<double>(x, from, base + j), 0});
  }
  m = all(m, team, Merge());
  double variance = m.squares / (double)n, inv = 1 / sqrt(variance + eps);
  if (live && team.rank == 0) {
    mean[team.row] = m.mean, inverse[team.row] = inv;
    if (out_mean) keep_real<double>(out_mean, out_type, team.row, m.mean);
    if (out_variance) keep_real<double>(out_variance, out_type, team.row, variance);
  }
  R minus = (R)m.mean, times = (R)inv, rest = (R)(((double)minus - m.mean) * inv);
  for (long long j = team.rank; j < end; j += BATCH * team.size) {
    R v[BATCH], scale[BATCH], shift[BATCH];
    load<R>(v, x, from, base, 1, j, end, team.size, 0);
    load<R>(scale, gamma, gamma_type, 0, 1, j, gamma ? end : 0, team.size, 1);
    load<R>(shift, beta, beta_type, 0, 1, j, beta ? end : 0, team.size, (R)-0.0);
    for (int u = 0; u < BATCH; ++u) {
      long long at = j + u * team.size;
      if (at < end) keep_real<R>(y, to, base + at, ((v[u] - minus) * times + rest) * scale[u] + shift[u]);
    }
  }
}

// gx may lie over gy.
template <class R>
__device__ inline void rows_backward(const void *gy, int gy_type, const void *x, int from, const void *gamma,
                                     int gamma_type, const double *mean, const double *inverse, const void *gmean,
                                     int gmean_type, const void *gvariance, int gvariance_type, void *gx, int to,
                                     long long rows, long long n, int size, int add) {
  Team team(blockIdx.x, size, true);
  bool live = team.row < rows;
  long long base = team.row * n, end = live ? n : 0;
  double m = live ? mean[team.row] : 0, inv = live ? inverse[team.row] : 0;
  R minus = (R)m;
  Pair total = {0, 0};
  for (long long j = team.rank; j < end;) {
    R sum = 0, product = 0;
    for (int done = 0; done < RUN && j < end; done += BATCH, j += BATCH * team.size) {
      R g[BATCH], v[BATCH], scale[BATCH];
      load<R>(g, gy, gy_type, base, 1, j, end, team.size, 0);
      load<R>(v, x, from, base, 1, j, end, team.size, minus);
      load<R>(scale, gamma, gamma_type, 0, 1, j, gamma ? end : 0, team.size, 1);
      for (int u = 0; u < BATCH; ++u) sum += g[u] * scale[u], product += g[u] * scale[u] * (v[u] - minus);
    }
    total = total + Pair{(double)sum, (double)product};
  }
  total = all(total, team, Add());
  double rest = m - (double)minus, count = (double)n;
  total.b -= rest * total.a;
  double by = -inv * inv * inv * total.b / count, plus = -inv * total.a / count;
  if (live && gvariance) by += 2 * fetch_real<double>(gvariance, gvariance_type, team.row) / count;
  if (live && gmean) plus += fetch_real<double>(gmean, gmean_type, team.row) / count;
  R times = (R)inv, by_x = (R)by, shift = (R)(plus - by * rest);
  for (long long j = team.rank; j < end; j += BATCH * team.size) {
    R g[BATCH], v[BATCH], scale[BATCH];
    load<R>(g, gy, gy_type, base, 1, j, end, team.size, 0);
    load<R>(v, x, from, base, 1, j, end, team.size, minus);
    load<R>(scale, gamma, gamma_type, 0, 1, j, gamma ? end : 0, team.size, 1);
    for (int u = 0; u < BATCH; ++u) {
      long long at = j + u * team.size, i = base + at;
      R r = g[u] * scale[u] * times + ((v[u] - minus) * by_x + shift);
      if (at < end) keep_real<R>(gx, to, i, add ? fetch_real<R>(gx, to, i) + r : r);
    }
  }
}

// Sums over rows: of gy, and of gy times the normalized numbers. blockIdx.y: a part of the rows.
template <class R>
__device__ inline void rows_sums(const void *gy, int gy_type, const void *x, int from, const double *mean,
                                 const double *inverse, long long rows, long long n, int size, Pair *found) {
  Team team(blockIdx.x, size, false);
  Part part(blockIdx.y, gridDim.y, rows);
  bool live = team.row < n;
  Pair total = {0, 0};
  for (long long r = part.begin + team.rank; live && r < part.end;) {
    R sum = 0, product = 0;
    for (int k = 0; r < part.end && k < RUN; ++k, r += team.size) {
      R g = fetch_real<R>(gy, gy_type, r * n + team.row), minus = (R)mean[r];
      R rest = (R)(((double)minus - mean[r]) * inverse[r]);
      sum += g;
      if (x) product += g * ((fetch_real<R>(x, from, r * n + team.row) - minus) * (R)inverse[r] + rest);
    }
    total = total + Pair{(double)sum, (double)product};
  }
  total = all(total, team, Add());
  if (live && team.rank == 0) found[blockIdx.y * n + team.row] = total;
}

template <class R>
__device__ inline void rows_deliver(const Pair *found, long long parts, long long n, void *beta, int beta_type,
                                    int add_beta, void *gamma, int gamma_type, int add_gamma) {
  for (long long j = first(); j < n; j += step()) {
    Pair total = {0, 0};
    for (long long p = 0; p < parts; ++p) total = total + found[p * n + j];
    deliver<R>(List{beta, beta_type}, add_beta, j, total.a);
    deliver<R>(List{gamma, gamma_type}, add_gamma, j, total.b);
  }
}

}  // namespace nnrs

#define NNRS_CHANNELS(R, suffix, taking)                                                                                 \
  extern "C" __global__ void moments_##suffix(const void *x, int type, long long channels, long long inner,              \
                                              long long count, int size, nnrs::Pair *found) {                           \
    nnrs::moments<R, nnrs::taking>(x, type, channels, inner, count, size, found);                                        \
  }                                                                                                                      \
  extern "C" __global__ void sums_##suffix(const void *gy, int gy_type, const void *x, int type, const double *mean,     \
                                           long long width, long long channels, long long inner, long long count,       \
                                           int size, nnrs::Pair *found) {                                                \
    nnrs::sums<R, nnrs::taking>(gy, gy_type, x, type, mean, width, channels, inner, count, size, found);                 \
  }                                                                                                                      \
  extern "C" __global__ void map_##suffix(const void *a, int a_type, const void *x, int x_type, void *y, int to,         \
                                          long long n, long long channels, long long inner,                             \
                                          const nnrs::Coefficients<R> *by, int add) {                                    \
    nnrs::map<R, nnrs::taking>(a, a_type, x, x_type, y, to, n, channels, inner, by, add);                                \
  }

#define NNRS_NORMALIZE(R, suffix)                                                                                        \
  extern "C" __global__ void forward_##suffix(const nnrs::Forward *f, const nnrs::Pair *found, double *mean,             \
                                              double *inverse, nnrs::Coefficients<R> *by) {                              \
    nnrs::forward<R>(f, found, mean, inverse, by);                                                                       \
  }                                                                                                                      \
  extern "C" __global__ void backward_##suffix(const nnrs::Backward *b, const nnrs::Pair *found, const double *mean,     \
                                               const double *inverse, nnrs::Coefficients<R> *by) {                       \
    nnrs::backward<R>(b, found, mean, inverse, by);                                                                      \
  }                                                                                                                      \
  extern "C" __global__ void groups_scale_##suffix(                                                                      \
      const double *mean, const double *inverse, const void *gamma, int gamma_type, const void *beta, int beta_type,     \
      nnrs::Coefficients<R> *by, long long channels, long long width, long long groups, long long after,                 \
      int by_sample) {                                                                                                   \
    nnrs::groups_scale<R>(mean, inverse, gamma, gamma_type, beta, beta_type, by, channels, width, groups, after,         \
                          by_sample);                                                                                    \
  }                                                                                                                      \
  extern "C" __global__ void groups_backward_##suffix(const nnrs::GroupBackward *b, const nnrs::Pair *found,             \
                                                      const double *mean, const double *inverse,                        \
                                                      nnrs::Coefficients<R> *by, int size) {                             \
    nnrs::groups_backward<R>(b, found, mean, inverse, by, size);                                                         \
  }                                                                                                                      \
  extern "C" __global__ void groups_deliver_##suffix(                                                                    \
      const nnrs::Pair *found, const double *inverse, void *beta, int beta_type, long long add_beta, void *gamma,        \
      int gamma_type, long long add_gamma, long long scales, long long parts, long long channels, long long width,       \
      long long groups, long long after, int by_sample) {                                                                \
    nnrs::groups_deliver<R>(found, inverse, beta, beta_type, add_beta, gamma, gamma_type, add_gamma, scales, parts,      \
                            channels, width, groups, after, by_sample);                                                  \
  }                                                                                                                      \
  extern "C" __global__ void rows_forward_##suffix(                                                                      \
      const void *x, int from, void *y, int to, const void *gamma, int gamma_type, const void *beta, int beta_type,      \
      double *mean, double *inverse, void *out_mean, void *out_variance, int out_type, long long rows, long long n,      \
      double eps, int size) {                                                                                            \
    nnrs::rows_forward<R>(x, from, y, to, gamma, gamma_type, beta, beta_type, mean, inverse, out_mean, out_variance,     \
                          out_type, rows, n, eps, size);                                                                 \
  }                                                                                                                      \
  extern "C" __global__ void rows_backward_##suffix(                                                                     \
      const void *gy, int gy_type, const void *x, int from, const void *gamma, int gamma_type, const double *mean,       \
      const double *inverse, const void *gmean, int gmean_type, const void *gvariance, int gvariance_type, void *gx,     \
      int to, long long rows, long long n, int size, int add) {                                                          \
    nnrs::rows_backward<R>(gy, gy_type, x, from, gamma, gamma_type, mean, inverse, gmean, gmean_type, gvariance,         \
                           gvariance_type, gx, to, rows, n, size, add);                                                  \
  }                                                                                                                      \
  extern "C" __global__ void rows_sums_##suffix(const void *gy, int gy_type, const void *x, int from,                    \
                                                const double *mean, const double *inverse, long long rows, long long n, \
                                                int size, nnrs::Pair *found) {                                           \
    nnrs::rows_sums<R>(gy, gy_type, x, from, mean, inverse, rows, n, size, found);                                       \
  }                                                                                                                      \
  extern "C" __global__ void rows_deliver_##suffix(const nnrs::Pair *found, long long parts, long long n, void *beta,    \
                                                   int beta_type, int add_beta, void *gamma, int gamma_type,             \
                                                   int add_gamma) {                                                      \
    nnrs::rows_deliver<R>(found, parts, n, beta, beta_type, add_beta, gamma, gamma_type, add_gamma);                     \
  }

NNRS_CHANNELS(float, f32, SINGLE)
NNRS_CHANNELS(float, along_f32, ALONG)
NNRS_CHANNELS(float, across_f32, ACROSS)
NNRS_CHANNELS(double, f64, SINGLE)
NNRS_NORMALIZE(float, f32)
NNRS_NORMALIZE(double, f64)
