// CUDA C as C++, for tests where there is no GPU: one fiber a thread, blocks one after the other. What a GPU would leave
// undefined is an error here: a barrier that some threads never reach, shared memory read before it is written, beyond its
// end or while another thread writes it, and (by pages without access around each block of memory, see
// kernels/src/emulate/mod.rs) accesses beyond an array.
#ifndef NNRS_EMULATE
#define NNRS_EMULATE

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define NNRS_NOINLINE __attribute__((noinline))

struct uint3 { unsigned x, y, z; };
static uint3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace emulate {

const int THREADS = 1024;
const size_t STACK = 128 << 10;

enum State { READY, AT_BARRIER, AT_WARP, DONE };

struct Fiber {
  void *sp;
  State state;
  uint3 index;
  unsigned barriers;  // how often this thread has met those of its warp, by __syncwarp()
};

static Fiber fibers[THREADS];
static int count, now;
static char *stacks;
static void *home;               // the scheduler's stack pointer
static jmp_buf failure;
static char message[512];
static unsigned launches;
static uint64_t phase, block;    // barriers and blocks so far; the phase in which this block began
static bool running;

[[noreturn]] static void fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  int n = vsnprintf(message, sizeof message, format, list);
  va_end(list);
  snprintf(message + n, sizeof message - n, " (thread %u %u %u of block %u %u %u)", threadIdx.x, threadIdx.y, threadIdx.z,
           blockIdx.x, blockIdx.y, blockIdx.z);
  longjmp(failure, 1);
}

// ---- Fibers: what a function call keeps goes onto the stack, and the stack changes.

#ifdef __x86_64__
extern "C" void nnrs_switch(void **from, void *to);
__asm__(
    ".text\n.local nnrs_switch\n.type nnrs_switch,@function\nnnrs_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");

static void *prepare(char *top, void (*entry)()) {
  void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15);
  *--sp = nullptr;         // as if called: the stack is 8 off a multiple of 16
  *--sp = (void *)entry;   // where the first switch returns to
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  return sp;
}
#else
#include <ucontext.h>
struct Context { ucontext_t c; };
static void nnrs_switch(void **from, void *to) {
  Context here;
  *from = &here;
  swapcontext(&here.c, &((Context *)to)->c);
}
static void *prepare(char *top, void (*entry)()) {
  Context *c = (Context *)((uintptr_t)(top - sizeof(Context)) & ~(uintptr_t)63);
  getcontext(&c->c);
  c->c.uc_stack.ss_sp = top - STACK;
  c->c.uc_stack.ss_size = (char *)c - (top - STACK);
  c->c.uc_link = nullptr;
  makecontext(&c->c, entry, 0);
  return c;
}
#endif

// Stops this thread until the scheduler goes on with it.
static void wait(State state) {
  Fiber &f = fibers[now];
  f.state = state;
  nnrs_switch(&f.sp, home);
}

static int lane() { return now % warpSize; }
static int warp_begin() { return now - lane(); }
static int warp_end() { int e = warp_begin() + warpSize; return e < count ? e : count; }

// ---- Shared memory, which knows who has used it, and when.

const int WARP = -1, BLOCK = -2;

// Who has used an element in one way: a thread, several of a warp, several of the block; and when the last time.
struct Use {
  int who, warp;
  unsigned barriers;
  uint64_t phase;

  // Whether it is over for all threads before this thread goes on: a barrier lies between.
  bool is_over() const {
    if (who == now || phase != emulate::phase) return true;
    return who != BLOCK && warp == now / warpSize && barriers != fibers[now].barriers;
  }
  void add() {
    int me = now;
    if (!is_over()) me = who == BLOCK || warp != now / warpSize ? BLOCK : WARP;
    *this = {me, now / warpSize, fibers[now].barriers, emulate::phase};
  }
};

#ifdef __SANITIZE_THREAD__
// Built with -fsanitize=thread, the compiler tells of each access to memory. Two threads may not use a byte of an array, one
// of them writing, unless they are of one block and a barrier lies between. A launch's first BYTES / 2 bytes are watched.
struct Byte {
  uintptr_t at;
  uint64_t launch;
  Use written, read, counted;
};
static const size_t BYTES = (size_t)1 << 21;
static Byte *used;
static size_t filled;
static uint64_t began;           // the phase before the first block's
static bool inside;              // a hook is at work
static volatile bool atomic;     // the accesses are those of an atomic operation
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start, _end;

#define NNRS_PLAIN __attribute__((no_sanitize("thread")))
NNRS_PLAIN static void access(void *p, size_t n, bool write) {
  if (inside || !running || now < 0) return;
  char *c = (char *)p;
  if ((c >= stacks && c < stacks + THREADS * STACK) || (c >= &__ehdr_start && c < &_end)) return;
  inside = true;
  for (size_t i = 0; i < n; ++i) {
    uintptr_t at = (uintptr_t)c + i;
    size_t k = at * 0x9E3779B97F4A7C15ull >> 43;
    while (used[k].launch == launches && used[k].at != at) k = (k + 1) % BYTES;
    Byte &b = used[k];
    if (b.launch != launches) {
      if (filled == BYTES / 2) continue;
      ++filled, memset(&b, 0, sizeof b), b.at = at, b.launch = launches;
    }
    auto apart = [&](const Use &u, const char *what) NNRS_PLAIN {
      if (u.phase > began && (u.phase < block || !u.is_over()))
        fail("memory at %p %s by another thread, and no barrier lies between", (void *)at, what);
    };
    if (atomic) {
      apart(b.written, "is counted up after it was written");
      apart(b.read, "is counted up after it was read");
      b.counted.add();
      continue;
    }
    apart(b.counted, "is used after it was counted up");
    apart(b.written, "is used after it was written");
    if (write) apart(b.read, "is written after it was read");
    (write ? b.written : b.read).add();
  }
  inside = false;
}

struct Atomic {
  Atomic() { atomic = true; }
  ~Atomic() { atomic = false; }
};
#else
struct Atomic {};
#endif

template <class T, int N>
struct Shared {
  T values[N];
  Use written[N], read[N], counted[N];  // counted: by atomic operations

  struct Element {
    Shared &of;
    long long i;

    void apart(const Use &u, const char *what) const {
      if (!u.is_over()) fail("index %lld of shared memory %s by another thread, and no barrier lies between", i, what);
    }
    void see() const {
      if (of.written[i].phase < block) fail("shared memory is read before it is written, at index %lld", i);
      apart(of.written[i], "is read after it was written");
    }
    operator T() const {
      see();
      apart(of.counted[i], "is read after it was counted up");
      of.read[i].add();
      return of.values[i];
    }
    T operator=(T v) const {
      apart(of.written[i], "is written after it was written");
      apart(of.read[i], "is written after it was read");
      apart(of.counted[i], "is written after it was counted up");
      of.written[i].add();
      return of.values[i] = v;
    }
    T operator=(const Element &other) const { return *this = (T)other; }
    T operator+=(T v) const { return *this = (T)*this + v; }
    // For an atomic operation.
    T *operator&() const {
      see();
      apart(of.read[i], "is counted up after it was read");
      of.counted[i].add();
      return &of.values[i];
    }
  };

  Element operator[](long long i) {
    if (i < 0 || i >= N) fail("index %lld of shared memory of %d elements", i, N);
    return {*this, i};
  }
};

// ---- Launches.

static void (*call)(void **);
static void **arguments;

static void enter() {
  call(arguments);
  wait(DONE);
}

static void run_block() {
  block = ++phase;
  for (int t = 0; t < count; ++t) {
    unsigned x = t % blockDim.x, y = t / blockDim.x % blockDim.y, z = t / (blockDim.x * blockDim.y);
    fibers[t] = {prepare(stacks + (t + 1) * STACK, enter), READY, {x, y, z}, 0};
  }
  // In turn upwards and downwards: who relies on an order is found out.
  bool down = launches & 1;
  for (int done = 0; done < count;) {
    bool moved = false;
    for (int k = 0; k < count; ++k) {
      now = down ? count - 1 - k : k;
      Fiber &f = fibers[now];
      if (f.state != READY) continue;
      threadIdx = f.index;
      nnrs_switch(&home, f.sp);
      moved = true;
      done += f.state == DONE;
    }
    for (int w = 0; w < count; w += warpSize) {  // warps whose threads have all come
      int end = w + warpSize < count ? w + warpSize : count, waiting = 0;
      for (int t = w; t < end; ++t) waiting += fibers[t].state == AT_WARP;
      if (waiting < end - w) continue;
      for (int t = w; t < end; ++t) fibers[t].state = READY;
      moved = true;
    }
    int waiting = 0;
    for (int t = 0; t < count; ++t) waiting += fibers[t].state == AT_BARRIER;
    if (waiting == count) {
      for (int t = 0; t < count; ++t) fibers[t].state = READY;
      ++phase;
      moved = true;
    }
    if (!moved) fail("%d of %d threads wait at a barrier that the others do not reach", count - done, count);
  }
}

static void segfault(int, siginfo_t *info, void *) {
  if (!running) abort();
  fail("access to memory of no array, at address %p", info->si_addr);
}

// Runs a kernel; gives what went wrong, or null.
static const char *launch(void (*kernel)(void **), const unsigned *grid, void **args) {
  if (!stacks) {
    void *p = mmap(nullptr, THREADS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return "no memory for stacks";
    stacks = (char *)p;
  }
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {grid[3], grid[4], grid[5]};
  count = blockDim.x * blockDim.y * blockDim.z;
  if (count < 1 || count > THREADS) return "a block has 1 to 1024 threads";
  if (gridDim.x < 1 || gridDim.y < 1 || gridDim.z < 1 || gridDim.y > 65535 || gridDim.z > 65535) return "no such grid";
  struct sigaction action, old[2];
  memset(&action, 0, sizeof action);
  action.sa_sigaction = segfault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &old[0]);
  sigaction(SIGBUS, &action, &old[1]);
  call = kernel, arguments = args, running = true, ++launches;
#ifdef __SANITIZE_THREAD__
  if (!used) used = (Byte *)calloc(BYTES, sizeof(Byte));
  began = phase, filled = 0, inside = atomic = false;
#endif
  const char *wrong = nullptr;
  if (setjmp(failure)) {
    wrong = message;
  } else {
    // In turn from the first to the last and back, as above.
    uint64_t all = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    for (uint64_t k = 0; k < all; ++k) {
      uint64_t b = launches & 2 ? all - 1 - k : k;
      blockIdx = {(unsigned)(b % gridDim.x), (unsigned)(b / gridDim.x % gridDim.y), (unsigned)(b / gridDim.x / gridDim.y)};
      run_block();
    }
  }
  running = false;
  sigaction(SIGSEGV, &old[0], nullptr);
  sigaction(SIGBUS, &old[1], nullptr);
  return wrong;
}

// The values that the engine's pointers point to, as the kernel's arguments.
template <class... A, size_t... I>
static void unpack(void (*kernel)(A...), void **args, std::index_sequence<I...>) {
  kernel(*(A *)args[I]...);
}
template <class... A>
static void unpack(void (*kernel)(A...), void **args) {
  unpack(kernel, args, std::index_sequence_for<A...>());
}

}  // namespace emulate

#define NNRS_SHARED(T, name, n) static emulate::Shared<T, (n)> name

// One for each kernel, written by kernels/src/emulate/mod.rs.
#define NNRS_ENTRY(name)                                                                        \
  extern "C" __attribute__((visibility("default"))) const char *launch_##name(const unsigned *grid, void **args) { \
    return emulate::launch([](void **a) { emulate::unpack(name, a); }, grid, args);             \
  }

#ifdef __SANITIZE_THREAD__
extern "C" {
#define NNRS_HOOK(n)                                                                        \
  NNRS_PLAIN void __tsan_read##n(void *p) { emulate::access(p, n, false); }                 \
  NNRS_PLAIN void __tsan_write##n(void *p) { emulate::access(p, n, true); }                 \
  NNRS_PLAIN void __tsan_unaligned_read##n(void *p) { emulate::access(p, n, false); }       \
  NNRS_PLAIN void __tsan_unaligned_write##n(void *p) { emulate::access(p, n, true); }
NNRS_HOOK(1) NNRS_HOOK(2) NNRS_HOOK(4) NNRS_HOOK(8) NNRS_HOOK(16)
NNRS_PLAIN void __tsan_read_range(void *p, size_t n) { emulate::access(p, n, false); }
NNRS_PLAIN void __tsan_write_range(void *p, size_t n) { emulate::access(p, n, true); }
NNRS_PLAIN void __tsan_init() {}
NNRS_PLAIN void __tsan_func_entry(void *) {}
NNRS_PLAIN void __tsan_func_exit() {}
}
#endif

// ---- What CUDA C has built in.

inline void __syncthreads() { emulate::wait(emulate::AT_BARRIER); }
inline void __syncwarp(unsigned = 0xffffffffu) {
  emulate::wait(emulate::AT_WARP);
  ++emulate::fibers[emulate::now].barriers;
}

namespace emulate {
static uint64_t words[THREADS];

// Each lane's value where all of the warp can read it; reading must be over before the next exchange. The lanes wait for
// each other, which makes what one has written to shared memory no more visible to the others than on a GPU.
template <class T>
static void show(T v) {
  static_assert(sizeof v <= 8, "a word");
  memcpy(&words[now], &v, sizeof v);
  wait(AT_WARP);
}
template <class T>
static T seen(int lane_) {
  int t = warp_begin() + lane_;
  if (lane_ < 0 || t >= warp_end()) t = now;
  T v;
  memcpy(&v, &words[t], sizeof v);
  wait(AT_WARP);
  return v;
}
}  // namespace emulate

template <class T> inline T __shfl_sync(unsigned, T v, int from, int = 32) { emulate::show(v); return emulate::seen<T>(from & 31); }
template <class T> inline T __shfl_xor_sync(unsigned, T v, int mask, int = 32) { emulate::show(v); return emulate::seen<T>(emulate::lane() ^ mask); }
template <class T> inline T __shfl_down_sync(unsigned, T v, unsigned by, int = 32) { emulate::show(v); return emulate::seen<T>(emulate::lane() + (int)by); }
template <class T> inline T __shfl_up_sync(unsigned, T v, unsigned by, int = 32) { emulate::show(v); return emulate::seen<T>(emulate::lane() - (int)by); }
inline unsigned __ballot_sync(unsigned, int p) {
  emulate::show(p != 0);
  unsigned bits = 0;
  for (int t = emulate::warp_begin(); t < emulate::warp_end(); ++t) {
    bool b;
    memcpy(&b, &emulate::words[t], 1);
    bits |= (unsigned)b << (t - emulate::warp_begin());
  }
  emulate::wait(emulate::AT_WARP);
  return bits;
}
inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }

template <class T> inline T atomicAdd(T *at, T v) { emulate::Atomic a; T old = *at; *at = old + v; return old; }
template <class T> inline T atomicMax(T *at, T v) { emulate::Atomic a; T old = *at; *at = old > v ? old : v; return old; }
template <class T> inline T atomicMin(T *at, T v) { emulate::Atomic a; T old = *at; *at = old < v ? old : v; return old; }
template <class T> inline T atomicExch(T *at, T v) { emulate::Atomic a; T old = *at; *at = v; return old; }
template <class T> inline T atomicCAS(T *at, T was, T v) { emulate::Atomic a; T old = *at; if (old == was) *at = v; return old; }
template <class T> inline T atomicOr(T *at, T v) { emulate::Atomic a; T old = *at; *at = old | v; return old; }
inline void __threadfence() {}

template <class T> inline T __ldg(const T *at) { return *at; }
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline int __float_as_int(float f) { int u; memcpy(&u, &f, 4); return u; }
inline float __int_as_float(int u) { float f; memcpy(&f, &u, 4); return f; }
inline double __longlong_as_double(long long u) { double f; memcpy(&f, &u, 8); return f; }
inline long long __double_as_longlong(double f) { long long u; memcpy(&u, &f, 8); return u; }
inline int __popc(unsigned u) { return __builtin_popcount(u); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
template <class T> inline T min(T a, T b) { return a < b ? a : b; }
template <class T> inline T max(T a, T b) { return a > b ? a : b; }

#endif
