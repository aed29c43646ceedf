// The machine that fake.cpp drives: devices, memory, streams. Streams are lazy: what is put into one happens later, in an
// order that is drawn by lot among all streams, so code that does not wait for what it needs reads too early.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fake {

using Address = uint64_t;

// The driver's numbers of errors.
enum Result {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  TOO_MANY_RESOURCES = 701,
  PEER_ALREADY_ENABLED = 704,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  NEVER = 999,
};

// ---- Settings, all of the environment.

inline const char *text(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}
inline long number(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value ? atol(value) : otherwise;
}

const int MOST_DEVICES = 8;
inline const int DEVICES = (int)number("FAKE_DEVICES", 1);
inline const size_t MEMORY = (size_t)number("FAKE_MEMORY", 4l << 30);
// How likely it is that one more operation happens at a call that need not wait.
inline const double PROBABILITY = atof(text("FAKE_PROB", "0.3"));

// ---- What was done, and what was done wrong.

inline std::recursive_mutex mutex;
inline std::string violations;
inline Result broken = OK;  // after a fault on the device all calls fail with it

// A line at the end of the file that the environment names.
inline void tell(const char *file, const std::string &line) {
  if (!getenv(file)) return;
  if (FILE *f = fopen(getenv(file), "a")) fprintf(f, "%s\n", line.c_str()), fclose(f);
}

inline void violation(const std::string &what) {
  violations += what + "\n";
  tell("FAKE_REPORT", what);
}

// How often what happened; told at the process's end.
struct Counts : std::map<std::string, long> {
  ~Counts() {
    for (auto &[what, times] : *this) tell("FAKE_COUNTS", what + " = " + std::to_string(times));
  }
};
inline Counts counts;

// FAKE_FAIL=cuMemHostAlloc:2,cuLaunchKernel:2:1 makes calls fail: function, error, and how often (for ever).
struct Failure {
  int error;
  long times;
};
inline std::map<std::string, Failure> failures = [] {
  std::map<std::string, Failure> all;
  std::string rest = text("FAKE_FAIL", "");
  while (!rest.empty()) {
    std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    size_t error = one.find(':'), times = one.find(':', error + 1);
    all[one.substr(0, error)] = {atoi(one.c_str() + error + 1),
                                 times == std::string::npos ? -1 : atol(one.c_str() + times + 1)};
  }
  return all;
}();

inline int injected(const char *function) {
  auto found = failures.find(function);
  if (found == failures.end() || found->second.times == 0) return OK;
  if (found->second.times > 0) --found->second.times;
  if (found->second.error == ILLEGAL_ADDRESS) broken = ILLEGAL_ADDRESS;
  return found->second.error;
}

// ---- Memory of the devices: mappings of the host's, which end where a page without access begins.

struct Context {
  int device;
};
inline Context contexts[MOST_DEVICES];
inline thread_local Context *current;

const size_t PAGE = 4096, ALIGNMENT = 256;
const char FRESH = (char)0xFF;   // a NaN, as a float
const char MARGIN = (char)0xA5;  // between a block's end and the page

struct Block {
  size_t bytes;
  char *mapping;
  size_t mapped;
  Context *context;
};
inline std::map<Address, Block> blocks;
inline std::map<Address, size_t> pinned;
inline size_t used[MOST_DEVICES];

inline size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

inline Address allocate(size_t bytes) {
  size_t inside = rounded(bytes, PAGE), mapped = inside + 2 * PAGE;
  void *made = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return 0;
  char *mapping = (char *)made, *at = mapping + PAGE + inside - rounded(bytes, ALIGNMENT);
  memset(mapping + PAGE, MARGIN, inside);
  memset(at, FRESH, bytes);
  mprotect(mapping, PAGE, PROT_NONE);
  mprotect(mapping + mapped - PAGE, PAGE, PROT_NONE);
  blocks[(Address)at] = {bytes, mapping, mapped, current};
  used[current->device] += bytes;
  return (Address)at;
}

inline void release(Address at) {
  Block b = blocks[at];
  char *end = (char *)at + b.bytes, *page = b.mapping + b.mapped - PAGE;
  for (char *p = b.mapping + PAGE; p < page; ++p) {
    if ((p < (char *)at || p >= end) && *p != MARGIN) {
      violation("something wrote beside a block of " + std::to_string(b.bytes) + " bytes");
      break;
    }
  }
  used[b.context->device] -= b.bytes;
  munmap(b.mapping, b.mapped);
  blocks.erase(at);
}

// The part that holds an address, of blocks or of pinned memory.
template <class Parts>
auto part(Parts &parts, Address at) {
  auto found = parts.upper_bound(at);
  return found == parts.begin() ? parts.end() : std::prev(found);
}

inline bool is_inside(Address at, size_t bytes) {
  auto found = part(blocks, at);
  return found != blocks.end() && at + bytes <= found->first + found->second.bytes;
}
inline bool is_pinned(Address at, size_t bytes) {
  auto found = part(pinned, at);
  return found != pinned.end() && at + bytes <= found->first + found->second;
}
inline Context *owner(Address at) {
  auto found = part(blocks, at);
  return found == blocks.end() ? nullptr : found->second.context;
}

// Whether it is memory of a device; if not, that is a violation.
inline bool is_valid(Address at, size_t bytes, const char *what) {
  if (!bytes || is_inside(at, bytes)) return true;
  violation(std::string(what) + ": memory that is no block's");
  return false;
}

// ---- Streams, and what is put into them.

struct Event {
  long recorded = 0, done = 0;
  bool destroyed = false;
};

struct Operation {
  std::function<void()> work;
  Event *awaited = nullptr;  // it waits until this was recorded so often
  long version = 0;
  bool is_meeting = false;  // for another member of a collective
};
using Operations = std::vector<Operation>;

struct Stream {
  Context *context;
  std::deque<Operation> waiting{};
  bool capturing = false, spoilt = false;
  std::thread::id capturer{};
  Operations captured{};

  bool is_ready() const {
    if (waiting.empty()) return false;
    const Operation &next = waiting.front();
    return !next.awaited || next.awaited->done >= next.version;
  }
};
inline std::vector<Stream *> streams;

inline std::mt19937 dice((unsigned)number("FAKE_SEED", 1));

inline void perform(const Operation &operation) {
  if (!broken && operation.work) operation.work();
}

// The next operation of some stream; false if there is none that can go on.
inline bool step() {
  std::vector<Stream *> ready;
  for (Stream *s : streams)
    if (s->is_ready()) ready.push_back(s);
  if (ready.empty()) return false;
  Stream *chosen = ready[dice() % ready.size()];
  Operation next = std::move(chosen->waiting.front());
  chosen->waiting.pop_front();
  perform(next);
  return true;
}

inline void go_on() {
  while (dice() / 4294967296.0 < PROBABILITY && step()) {
  }
}

// Lets other threads call; the caller has the lock, once.
inline void give_way() {
  mutex.unlock();
  usleep(500);
  mutex.lock();
}

// Streams that wait for a collective, to which another thread may still come.
inline bool is_expecting() {
  for (Stream *s : streams)
    if (!s->waiting.empty() && s->waiting.front().is_meeting) return true;
  return false;
}

// Goes on until `done`. What waits for an event that is never recorded waits for ever.
template <class Done>
Result until(Done done) {
  while (!done()) {
    if (step()) continue;
    if (is_expecting()) {
      give_way();
      continue;
    }
    violation("a stream waits for ever");
    return NEVER;
  }
  return broken;
}

inline Result finish_all() {
  return until([] {
    for (Stream *s : streams)
      if (!s->waiting.empty()) return false;
    return true;
  });
}

// Other threads may do as they like meanwhile: captures are relaxed.
inline bool this_thread_captures() {
  for (Stream *s : streams)
    if (s->capturing && s->capturer == std::this_thread::get_id()) return true;
  return false;
}

inline Result put(Stream *stream, Operation operation) {
  if (!stream) {
    violation("work for the stream of all, which waits for the others");
    return INVALID_HANDLE;
  }
  if (current != stream->context) {
    violation("work for a stream of another context");
    return INVALID_CONTEXT;
  }
  if (stream->capturing) {
    stream->captured.push_back(std::move(operation));
    return OK;
  }
  stream->waiting.push_back(std::move(operation));
  go_on();
  return broken;
}

// What must not be done with a stream that captures: it spoils the capture.
inline Result refuse_while_capturing(Stream *stream, const char *function) {
  if (!stream || !stream->capturing) return OK;
  stream->spoilt = true;
  violation(std::string(function) + " while capturing");
  return CAPTURE_UNSUPPORTED;
}

}  // namespace fake
