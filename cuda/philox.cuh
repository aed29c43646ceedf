// Philox4x32-10, the same words in the same places as kernels/src/random/philox/ makes them.
#ifndef NNRS_PHILOX
#define NNRS_PHILOX

#include "common.cuh"

namespace nnrs {

struct Words {
  u32 w[4];

  // Two words as one.
  __device__ inline u64 pair(int k) const { return (u64)w[2 * k] << 32 | w[2 * k + 1]; }
};

// Which numbers a launch makes. A captured run has key and number in device memory, other ones in each replay.
struct Draw {
  u64 key, number;

  __device__ inline Draw(const u64 *held, u64 k, u64 n) : key(held ? held[0] : k), number(held ? held[1] : n) {}
};

__device__ inline Words philox(const Draw &draw, u64 counter) {
  u32 a = (u32)counter, b = (u32)(counter >> 32), c = (u32)draw.number, d = (u32)(draw.number >> 32);
  u32 k0 = (u32)draw.key, k1 = (u32)(draw.key >> 32);
  for (int round = 0; round < 10; ++round) {
    u64 p = (u64)a * 0xD2511F53u, q = (u64)c * 0xCD9E8D57u;
    a = (u32)(q >> 32) ^ b ^ k0;
    b = (u32)q;
    c = (u32)(p >> 32) ^ d ^ k1;
    d = (u32)p;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

}  // namespace nnrs

// What each kernel is told of its draw.
#define NNRS_DRAW const unsigned long long *held, unsigned long long key, unsigned long long number

#endif
