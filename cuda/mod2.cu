// The rest of a division, and shifted bits: pairs of numbers of arrays that broadcast. A table has the number of axes, and
// for each its size and the distances of neighbours in both arrays.
#include "common.cuh"

namespace nnrs {

struct Pair {
  long long a, b;
  __device__ inline Pair(const long long *table, long long i) : a(0), b(0) {
    for (int k = (int)table[0] - 1; k >= 0; --k) {
      const long long *axis = table + 1 + 3 * k;
      long long at = i, rest = divide(at, axis[0]);
      a += at * axis[1];
      b += at * axis[2];
      i = rest;
    }
  }
};

}  // namespace nnrs

extern "C" __global__ void mod2(const void *a, int a_type, const void *b, int b_type, void *y, int to,
                                const long long *table, long long size, int floor, int unused) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    const Pair at(table, i);
    const double d = fetch_real<double>(b, b_type, at.b), rest = fmod(fetch_real<double>(a, a_type, at.a), d);
    keep_real<double>(y, to, i, floor && rest != 0 && (rest < 0) != (d < 0) ? rest + d : rest);
  }
}

// Of whole numbers; 0 where the divisor is 0.
extern "C" __global__ void mod2_whole(const long long *a, int a_type, const long long *b, int b_type, long long *y, int to,
                                      const long long *table, long long size, int floor, int is_signed) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    const Pair at(table, i);
    const long long n = a[at.a], d = b[at.b];
    long long rest = 0;
    if (!is_signed) rest = d ? (long long)((u64)n % (u64)d) : 0;
    else if (d != 0 && d != -1) rest = n % d;
    y[i] = is_signed && floor && rest != 0 && (rest < 0) != (d < 0) ? rest + d : rest;
  }
}

// `type` is twice the number of bits, and one more for numbers with a sign.
extern "C" __global__ void bit_shift(const long long *a, int a_type, const long long *b, int b_type, long long *y, int to,
                                     const long long *table, long long size, int left, int type) {
  using namespace nnrs;
  for (long long i = first(); i < size; i += step()) {
    const Pair at(table, i);
    const long long x = a[at.a], by = b[at.b];
    const int unused = 64 - type / 2, is_signed = type & 1, moves = by >= 0 && by < 64;
    long long v;
    if (left) {
      const u64 high = (moves ? (u64)x << by : 0) << unused;
      v = is_signed ? (long long)high >> unused : (long long)(high >> unused);
    } else {
      v = is_signed ? x >> (moves ? by : 63) : moves ? (long long)(((u64)x & ~0ull >> unused) >> by) : 0;
    }
    y[i] = by < 0 ? 0 : v;
  }
}
