// Normalization by statistics that several devices share: what each adds to the sums, and what follows from those of all.
// The sums themselves are NCCL's.
#include "channels.cuh"

namespace nnrs {

// Each channel's statistics from what all devices have found; totals[channels] is how many elements they are of.
template <class R>
__device__ inline void shared_statistics(const Forward *f, const double *totals, const double *squares, double *mean,
                                         double *inverse, Coefficients<R> *by) {
  const double n = totals[f->channels];
  for (long long c = first(); c < f->channels; c += step())
    settle<R>(f, c, totals[c] / n, squares[c] / n, n, mean, inverse, by);
}

// The gradients of beta and gamma, and what this device adds to the slopes.
template <class R>
__device__ inline void own_slopes(const Backward *b, const Pair *found, const double *totals, const double *inverse,
                                  Pair *to) {
  Team team(blockIdx.x, JOINING, true);
  const long long c = team.row;
  Pair total = joined(b, found, team);
  if (c >= b->channels || team.rank != 0) return;
  deliver<R>(b->to_beta, b->add_beta, c, total.a);
  deliver<R>(b->to_gamma, b->add_gamma, c, total.b * inverse[c]);
  to[c] = slopes(b, inverse, total, c, totals[b->channels]);
}

}  // namespace nnrs

// Sums of the channels, and last how many elements each has.
extern "C" __global__ void own_totals(const nnrs::Forward *f, const nnrs::Pair *found, double *totals) {
  nnrs::Team team(blockIdx.x, nnrs::JOINING, true);
  nnrs::Moments m = nnrs::joined(f, found, team);
  if (team.rank != 0) return;
  if (team.row < f->channels) totals[team.row] = m.mean * (double)f->count;
  if (team.row == 0) totals[f->channels] = (double)f->count;
}

// Squared deviations from the means of all.
extern "C" __global__ void own_squares(const nnrs::Forward *f, const nnrs::Pair *found, const double *totals,
                                       double *squares) {
  nnrs::Team team(blockIdx.x, nnrs::JOINING, true);
  nnrs::Moments m = nnrs::joined(f, found, team);
  if (team.row >= f->channels || team.rank != 0) return;
  double away = m.mean - totals[team.row] / totals[f->channels];
  squares[team.row] = m.squares + (double)f->count * away * away;
}

// Numbers and how many elements they are of, to be summed; and the numbers by how many there are.
extern "C" __global__ void share(const void *x, int type, long long n, double count, double *to) {
  for (long long i = nnrs::first(); i <= n; i += nnrs::step()) to[i] = i < n ? nnrs::fetch_real<double>(x, type, i) : count;
}

extern "C" __global__ void shared_mean(const double *sums, void *y, int type, long long n) {
  for (long long i = nnrs::first(); i < n; i += nnrs::step()) nnrs::keep_real<double>(y, type, i, sums[i] / sums[n]);
}

#define NNRS_SHARED_STATISTICS(R, suffix)                                                                               \
  extern "C" __global__ void shared_statistics_##suffix(const nnrs::Forward *f, const double *totals,                   \
                                                        const double *squares, double *mean, double *inverse,           \
                                                        nnrs::Coefficients<R> *by) {                                    \
    nnrs::shared_statistics<R>(f, totals, squares, mean, inverse, by);                                                  \
  }                                                                                                                     \
  extern "C" __global__ void own_slopes_##suffix(const nnrs::Backward *b, const nnrs::Pair *found, const double *totals, \
                                                 const double *inverse, nnrs::Pair *to) {                               \
    nnrs::own_slopes<R>(b, found, totals, inverse, to);                                                                 \
  }                                                                                                                     \
  extern "C" __global__ void by_slopes_##suffix(const void *gamma, int type, const double *mean, const double *inverse, \
                                                const nnrs::Pair *slopes, nnrs::Coefficients<R> *by,                    \
                                                long long channels) {                                                   \
    for (long long c = nnrs::first(); c < channels; c += nnrs::step())                                                  \
      by[c] = nnrs::by_slopes<R>(mean[c], nnrs::at(gamma, type, c, 1) * inverse[c], slopes[c]);                         \
  }

NNRS_SHARED_STATISTICS(float, f32)
NNRS_SHARED_STATISTICS(double, f64)
