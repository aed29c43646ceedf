// Channels of an array (outer, channels, inner) whose numbers are joined: tables of what is asked for, and what follows from
// the statistics and from the sums of a channel.
#ifndef NNRS_CHANNELS
#define NNRS_CHANNELS

#include "team.cuh"

namespace nnrs {

// blockIdx.x: channels; blockIdx.y: a part of their elements. What is found goes to found[part][channel].
struct Part {
  long long begin, end;

  __device__ inline Part(long long part, long long parts, long long count) {
    long long each = (count + parts - 1) / parts;
    begin = part * each < count ? part * each : count;
    end = begin + each < count ? begin + each : count;
  }
};

__device__ inline double at(const void *list, int type, long long i, double otherwise) {
  return list ? fetch_real<double>(list, type, i) : otherwise;
}

// For each channel: y = (a - minus) * times + plus, or with x: y = a * times + (x - minus) * by_x + plus.
template <class R>
struct Coefficients {
  R minus, times, by_x, plus;
};

// An array that may be missing.
struct List {
  void *at;
  long long type;
};

struct Forward {
  List gamma, beta, mean, variance;       // the last two: running statistics
  List batch_mean, batch_variance;        // outputs
  double eps, decay;
  long long channels, count, parts, update;
  long long each;  // neighbours of one channel that are taken at once
};

// Threads that join the parts of a channel.
const int JOINING = 32;

// What the parts have found of the team's channel.
__device__ inline Moments joined(const Forward *f, const Pair *found, const Team &team) {
  Moments whole = {0, 0, 0};
  for (long long p = team.rank; found && team.row < f->channels && p < f->parts; p += team.size) {
    Part part(p, f->parts, f->count / f->each);
    Pair one = found[p * f->channels + team.row];
    whole = Merge()(whole, Moments{(double)((part.end - part.begin) * f->each), one.a, one.b});
  }
  return all(whole, team, Merge());
}

// From mean and variance of channel c over `count` elements: what backward needs, the coefficients, and all that is asked for.
template <class R>
__device__ inline void settle(const Forward *f, long long c, double m, double v, double count, double *mean,
                              double *inverse, Coefficients<R> *by) {
  if (f->update) {
    double old_m = fetch_real<double>(f->mean.at, (int)f->mean.type, c);
    double old_v = fetch_real<double>(f->variance.at, (int)f->variance.type, c);
    double unbiased = v * (count / (count - 1));
    keep_real<double>(f->mean.at, (int)f->mean.type, c, f->decay * old_m + (1 - f->decay) * m);
    keep_real<double>(f->variance.at, (int)f->variance.type, c, f->decay * old_v + (1 - f->decay) * unbiased);
  }
  if (f->batch_mean.at) keep_real<double>(f->batch_mean.at, (int)f->batch_mean.type, c, m);
  if (f->batch_variance.at) keep_real<double>(f->batch_variance.at, (int)f->batch_variance.type, c, v);
  double inv = 1 / sqrt(v + f->eps), times = at(f->gamma.at, (int)f->gamma.type, c, 1) * inv;
  mean[c] = m, inverse[c] = inv;
  double rest = m - (double)(R)m;
  by[c] = {(R)m, (R)times, 0, (R)(at(f->beta.at, (int)f->beta.type, c, 0) - rest * times)};
}

struct Backward {
  List gamma, mean, variance;  // the last two: gradients of the statistics
  List to_beta, to_gamma;      // gradients to write or to add to
  long long add_beta, add_gamma, channels, count, parts, own;
};

template <class R>
__device__ inline void deliver(const List &to, long long add, long long c, double v) {
  if (!to.at) return;
  int type = (int)to.type;
  R r = (R)v;
  keep_real<R>(to.at, type, c, add ? fetch_real<R>(to.at, type, c) + r : r);
}

// The sums of the team's channel over all parts.
__device__ inline Pair joined(const Backward *b, const Pair *found, const Team &team) {
  Pair total = {0, 0};
  for (long long p = team.rank; team.row < b->channels && p < b->parts; p += team.size)
    total = total + found[p * b->channels + team.row];
  return all(total, team, Add());
}

// What gy is multiplied by.
__device__ inline double times_of(const Backward *b, const double *inverse, long long c) {
  return at(b->gamma.at, (int)b->gamma.type, c, 1) * inverse[c];
}

// What the statistics over n elements add to the gradient of x: a multiple of x - mean, and a number.
__device__ inline Pair slopes(const Backward *b, const double *inverse, Pair total, long long c, double n) {
  double inv = inverse[c], times = times_of(b, inverse, c);
  double by_x = 2 * at(b->variance.at, (int)b->variance.type, c, 0) / n - times * inv * inv * total.b / n;
  return {by_x, (at(b->mean.at, (int)b->mean.type, c, 0) - times * total.a) / n};
}

template <class R>
__device__ inline Coefficients<R> by_slopes(double mean, double times, Pair slopes) {
  double rest = mean - (double)(R)mean;
  return {(R)mean, (R)times, (R)slopes.a, (R)(slopes.b - slopes.a * rest)};
}

}  // namespace nnrs

#endif
