// The different slices of an array (outer, n, inner) by the order of all, where equal ones are neighbours, in the order of their
// places. A slice has `width` elements, outer * inner. Numbers of groups and places are -1 where there is none.
#include "common.cuh"

namespace nnrs {

// An element of a slice.
__device__ inline double slice_element(const void *x, int from, long long n, long long inner, long long slice, long long e) {
  const long long outer = divide(e, inner);
  return fetch_real<double>(x, from, (outer * n + slice) * inner + e);
}

// Below 0, 0 or above 0, as slice a comes before b, is equal or comes after it. NaN is the largest number, and equal to itself.
__device__ inline int compared(const void *x, int from, long long n, long long inner, long long width, long long a, long long b) {
  for (long long e = 0; e < width; ++e) {
    const double u = slice_element(x, from, n, inner, a, e), v = slice_element(x, from, n, inner, b, e);
    if (u < v) return -1;
    if (u > v) return 1;
    const int by_nan = (int)(u != u) - (int)(v != v);
    if (by_nan != 0) return by_nan;
  }
  return 0;
}

// How many of the first `count` numbers, which ascend and end with those that are missing, are at most v.
__device__ inline long long how_many_up_to(const long long *numbers, long long count, long long v) {
  long long low = 0, high = count;
  while (low < high) {
    const long long middle = (low + high) / 2;
    if (numbers[middle] >= 0 && numbers[middle] <= v) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The number of a group that begins with slice `place`, among the different ones: `group` where they are sorted.
__device__ inline long long number_of(const long long *firsts, long long count, int sorted, long long group, long long place) {
  return sorted || place < 0 ? group : how_many_up_to(firsts, count, place) - 1;
}

}  // namespace nnrs

// The places themselves; those from n on fill up to a power of two.
extern "C" __global__ void slice_places(unsigned *places, long long total) {
  using namespace nnrs;
  for (long long i = first(); i < total; i += step()) places[i] = (u32)i;
}

// One step of the bitonic network: pairs that are `gap` apart, in blocks of `size`.
extern "C" __global__ void slice_step(unsigned *places, long long size, long long gap, long long pairs, const void *x, int from,
                                      long long n, long long inner, long long width) {
  using namespace nnrs;
  for (long long p = first(); p < pairs; p += step()) {
    const long long i = (p & ~(gap - 1)) * 2 + (p & (gap - 1)), j = i + gap;
    const u32 a = places[i], b = places[j];
    int order = 0;
    if (a < n && b < n) order = compared(x, from, n, inner, width, a, b);
    const bool after = order > 0 || (order == 0 && a > b);
    if (after == ((i & size) == 0)) places[i] = b, places[j] = a;
  }
}

// 1 where a slice differs from the one before it in their order.
extern "C" __global__ void slice_heads(const unsigned *places, const void *x, int from, long long n, long long inner,
                                       long long width, unsigned char *heads) {
  using namespace nnrs;
  for (long long k = first(); k < n; k += step()) {
    heads[k] = k == 0 || compared(x, from, n, inner, width, places[k - 1], places[k]) != 0;
  }
}

// The first slices of the groups that begin at `starts` of the order; marks there, if they are wanted.
extern "C" __global__ void slice_firsts(const unsigned *places, const long long *starts, long long count, long long *firsts,
                                        unsigned char *marks) {
  using namespace nnrs;
  for (long long g = first(); g < count; g += step()) {
    const long long place = starts[g] < 0 ? -1 : (long long)places[starts[g]];
    firsts[g] = place;
    if (marks && place >= 0) marks[place] = 1;
  }
}

// The different slices, `size` elements in all.
extern "C" __global__ void slice_values(const long long *firsts, long long count, const void *x, int from, void *y, int to,
                                        long long size, long long n, long long inner) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    long long column = i, k = divide(column, inner);
    const long long outer = divide(k, count), place = firsts[k];
    const double none = __longlong_as_double(0x7ff8000000000000ll);
    keep_real<double>(y, to, i, place < 0 ? none : fetch_real<double>(x, from, (outer * n + place) * inner + column));
  }
}

// Where the different slices occur first, and how often each occurs. `begins`: the first slices of the groups in the order;
// `starts` has one more than there are groups.
extern "C" __global__ void slice_counts(const long long *starts, const long long *begins, const long long *firsts, long long count,
                                        long long n, int sorted, int *index, int *counts) {
  using namespace nnrs;
  for (long long g = first(); g < count; g += step()) {
    if (index) index[g] = (int)firsts[g];
    if (!counts) continue;
    const long long begin = starts[g], end = starts[g + 1] < 0 ? n : starts[g + 1];
    counts[number_of(firsts, count, sorted, g, begins[g])] = begin < 0 ? 0 : (int)(end - begin);
  }
}

// For each slice the number of the one that it is equal to.
extern "C" __global__ void slice_numbers(const unsigned *places, const long long *starts, const long long *begins,
                                         const long long *firsts, long long count, long long n, int sorted, int *inverse) {
  using namespace nnrs;
  for (long long k = first(); k < n; k += step()) {
    const long long group = how_many_up_to(starts, count, k) - 1;
    const bool is_counted = group >= 0 && (starts[count] < 0 || k < starts[count]);
    inverse[places[k]] = is_counted ? (int)number_of(firsts, count, sorted, group, begins[group]) : -1;
  }
}
