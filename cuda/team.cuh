// Threads of a block that work on one row together: which row, and how what they find is joined.
#ifndef NNRS_TEAM
#define NNRS_TEAM

#include "common.cuh"

namespace nnrs {

const int THREADS = 256;

// A negative label is to be left out; the smallest number stands for what is no number.
__device__ inline bool is_left_out(long long label) { return label < 0 && label != -9223372036854775807LL - 1; }

// Rows of n elements that lie `inner` apart: element k of row r is number (r / inner * n + k) * inner + r % inner. A block
// has THREADS threads, `size` (a power of two) for each row. The threads of a row are neighbours where its elements are;
// otherwise neighbouring threads have neighbouring rows.
struct Team {
  long long row;
  int rank, size, gap;  // this thread's number in its team; how far apart the members are in the block

  __device__ inline Team(long long block, int size, bool neighbours) : size(size) {
    int teams = THREADS / size, t = (int)threadIdx.x;
    gap = neighbours ? 1 : teams;
    rank = neighbours ? t & (size - 1) : t / teams;
    row = block * teams + (neighbours ? t / size : t & (teams - 1));
  }
};

// What another lane of the warp has; all lanes come here.
template <class V>
__device__ inline V of_lane(V v, int lane) {
  union Words {
    V v;
    u32 words[sizeof(V) / 4];
  } all;
  all.v = v;
  for (int i = 0; i < (int)(sizeof(V) / 4); ++i) all.words[i] = __shfl_sync(0xffffffffu, all.words[i], lane & 31);
  return all.v;
}

// The values of a team's threads joined, for all of them; the order depends on sizes alone. All threads of the block come
// here.
template <class V, class Join>
__device__ inline V all(V v, const Team &team, Join join) {
  NNRS_SHARED(V, parts, THREADS);
  int me = (int)threadIdx.x, lane = me & 31;
  if (team.size == 1) return v;
  if (team.gap == 1) {
    int width = team.size < 32 ? team.size : 32;
    for (int half = width / 2; half > 0; half /= 2) v = join(v, of_lane(v, lane + half));
    if (team.size <= 32) return of_lane(v, lane & ~(team.size - 1));
    __syncthreads();  // until all have read the last result
    if (lane == 0) parts[me / 32] = v;
    __syncthreads();
    int warp = (me - team.rank) / 32;
    v = parts[warp];
    for (int w = 1; w < team.size / 32; ++w) v = join(v, (V)parts[warp + w]);
    return v;
  }
  __syncthreads();
  parts[me] = v;
  for (int half = team.size / 2; half > 0; half /= 2) {
    __syncthreads();
    if (team.rank < half) parts[me] = join((V)parts[me], (V)parts[me + half * team.gap]);
  }
  __syncthreads();
  return parts[me - team.rank * team.gap];
}

// Elements that a thread asks for before it waits for any.
const int BATCH = 4;

// Elements k, k + step, .. below `end` of a row that begins at `base`, `inner` apart; `none` for those beyond.
template <class R>
__device__ inline void load(R (&v)[BATCH], const void *x, int type, long long base, long long inner, long long k,
                            long long end, int step, R none) {
#pragma unroll
  for (int u = 0; u < BATCH; ++u) {
    long long at = k + u * step;
    v[u] = at < end ? fetch_real<R>(x, type, base + at * inner) : none;
  }
}

struct Add {
  template <class V>
  __device__ inline V operator()(V a, V b) const {
    return a + b;
  }
};

struct Pair {
  double a, b;
  __device__ inline Pair operator+(const Pair &o) const { return {a + o.a, b + o.b}; }
};

// Number, mean and squared deviation of some elements.
struct Moments {
  double n, mean, squares;
};

struct Merge {
  __device__ inline Moments operator()(const Moments &a, const Moments &b) const {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    double n = a.n + b.n, delta = b.mean - a.mean, part = b.n / n;
    return {n, a.mean + delta * part, a.squares + b.squares + delta * delta * a.n * part};
  }
};

// Elements that a thread sums up in their own type before it goes on in double.
const int RUN = 32;

// A run's moments: sums of the differences from its first element, which is near enough to the others.
template <class R>
struct Shifted {
  R shift, sum, squares;
  int n;

  __device__ inline void start(R x) { shift = x, sum = 0, squares = 0, n = 0; }
  __device__ inline void add(R x, bool there) {
    R d = there ? x - shift : (R)0;
    sum += d;
    squares += d * d;
    n += there;
  }
  __device__ inline Moments moments() const {
    double each = 1.0 / n, rest = (double)squares - (double)sum * sum * each;
    return {(double)n, shift + sum * each, rest < 0 ? 0 : rest};
  }
};

}  // namespace nnrs

#endif
