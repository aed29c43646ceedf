// A libcuda.so.1 for tests: the calls that nnrs makes of NVIDIA's driver, over the machine of machine.hpp and the kernels
// of cuda/*.cu as C++. What a real driver forbids, or leaves undefined, is a violation here: work in a wrong context or
// while capturing, memory that is no block's, grids and blocks beyond the limits.
//
// The environment: FAKE_DEVICES, FAKE_MEMORY (bytes of each), FAKE_VERSION, FAKE_CC (compute capability, 90), FAKE_SEED,
// FAKE_PROB and FAKE_FAIL (see machine.hpp), FAKE_KERNELS (folder of the kernels' libraries); FAKE_REPORT and FAKE_COUNTS
// are files to which violations, and how often what happened, are written.

#include "machine.hpp"

#include <dlfcn.h>
#include <glob.h>

using namespace fake;

#define API extern "C" __attribute__((visibility("default")))

// What each call begins with.
#define CALL(name)                                     \
  std::lock_guard<std::recursive_mutex> lock(mutex);   \
  if (int error = injected(#name)) return error
// And each one that wants a context.
#define CALL_INSIDE(name) \
  CALL(name);             \
  if (int error = inside(#name)) return error

static int inside(const char *function) {
  if (current) return broken;
  violation(std::string(function) + " without a context");
  return INVALID_CONTEXT;
}

// ---- Devices and contexts.

API int cuInit(unsigned) {
  CALL(cuInit);
  return OK;
}
API int cuDriverGetVersion(int *version) {
  *version = (int)number("FAKE_VERSION", 12020);
  return OK;
}
API int cuDeviceGetCount(int *count) {
  CALL(cuDeviceGetCount);
  *count = DEVICES;
  return OK;
}
API int cuDeviceGet(int *device, int ordinal) {
  CALL(cuDeviceGet);
  *device = ordinal;
  return OK;
}
API int cuDeviceGetName(char *name, int size, int) {
  snprintf(name, size, "a fake");
  return OK;
}
API int cuDeviceGetAttribute(int *value, int attribute, int) {
  const int PROCESSORS = 16, MAJOR = 75, MINOR = 76;
  int capability = (int)number("FAKE_CC", 90);
  *value = attribute == MAJOR ? capability / 10 : attribute == MINOR ? capability % 10 : attribute == PROCESSORS ? 3 : 1;
  return OK;
}
API int cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = MEMORY;
  return OK;
}
API int cuDevicePrimaryCtxRetain(Context **context, int device) {
  CALL(cuDevicePrimaryCtxRetain);
  contexts[device].device = device;
  *context = &contexts[device];
  return OK;
}
API int cuCtxSetCurrent(Context *context) {
  current = context;
  return OK;
}
API int cuCtxGetCurrent(Context **context) {
  *context = current;
  return OK;
}
API int cuCtxEnablePeerAccess(Context *, unsigned) { return PEER_ALREADY_ENABLED; }

// ---- Streams and events.

API int cuStreamCreate(Stream **stream, unsigned flags) {
  CALL_INSIDE(cuStreamCreate);
  const unsigned NON_BLOCKING = 1;
  if (flags != NON_BLOCKING) violation("a stream that waits for the stream of all");
  streams.push_back(*stream = new Stream{current});
  return OK;
}
API int cuStreamSynchronize(Stream *stream) {
  CALL_INSIDE(cuStreamSynchronize);
  if (int error = refuse_while_capturing(stream, "cuStreamSynchronize")) return error;
  ++counts["waits for a stream"];
  return until([&] { return stream->waiting.empty(); });
}
API int cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  CALL_INSIDE(cuStreamWaitEvent);
  if (event->destroyed) violation("an event that was destroyed is waited for");
  if (int error = refuse_while_capturing(stream, "cuStreamWaitEvent")) return error;
  return put(stream, {nullptr, event, event->recorded});
}
API int cuEventCreate(Event **event, unsigned) {
  CALL_INSIDE(cuEventCreate);
  *event = new Event;
  return OK;
}
API int cuEventRecord(Event *event, Stream *stream) {
  CALL_INSIDE(cuEventRecord);
  if (event->destroyed) violation("an event that was destroyed is recorded");
  if (int error = refuse_while_capturing(stream, "cuEventRecord")) return error;
  long version = ++event->recorded;
  return put(stream, {[=] { event->done = std::max(event->done, version); }});
}
API int cuEventQuery(Event *event) {
  CALL(cuEventQuery);
  go_on();
  return event->done < event->recorded ? NOT_READY : (int)broken;
}
API int cuEventSynchronize(Event *event) {
  CALL(cuEventSynchronize);
  return until([&] { return event->done >= event->recorded; });
}
// Not deleted, so that its later use is seen.
API int cuEventDestroy_v2(Event *event) {
  CALL(cuEventDestroy);
  event->destroyed = true;
  return OK;
}

// ---- Memory and copies.

API int cuMemAlloc_v2(Address *at, size_t bytes) {
  CALL_INSIDE(cuMemAlloc);
  if (!bytes) {
    violation("cuMemAlloc of no bytes");
    return INVALID_VALUE;
  }
  ++counts["allocations"];
  if (used[current->device] + bytes > MEMORY || !(*at = allocate(bytes))) return OUT_OF_MEMORY;
  return OK;
}
// It waits for the device, as the driver's does.
API int cuMemFree_v2(Address at) {
  CALL_INSIDE(cuMemFree);
  auto found = blocks.find(at);
  if (found == blocks.end()) {
    violation("cuMemFree of what is no block");
    return INVALID_VALUE;
  }
  if (found->second.context != current) violation("cuMemFree in another context");
  finish_all();
  release(at);
  return OK;
}
API int cuMemHostAlloc(void **at, size_t bytes, unsigned) {
  CALL_INSIDE(cuMemHostAlloc);
  *at = malloc(bytes);
  pinned[(Address)*at] = bytes;
  return OK;
}

// Pinned memory is read when the copy happens, other memory before the call returns.
static Operation sending(Address to, Address from, size_t bytes) {
  if (is_pinned(from, bytes)) {
    ++counts["pinned copies"];
    return {[=] {
      if (is_valid(to, bytes, "a copy that happens")) memcpy((void *)to, (void *)from, bytes);
    }};
  }
  ++counts["copies of other memory"];
  std::string now((char *)from, bytes);
  return {[=] {
    if (is_valid(to, bytes, "a copy that happens")) memcpy((void *)to, now.data(), bytes);
  }};
}
API int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream *stream) {
  CALL_INSIDE(cuMemcpyHtoDAsync);
  if (!is_valid(to, bytes, "cuMemcpyHtoDAsync")) return INVALID_VALUE;
  if (int error = refuse_while_capturing(stream, "cuMemcpyHtoDAsync")) return error;
  return put(stream, sending(to, (Address)from, bytes));
}
API int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream *stream) {
  CALL_INSIDE(cuMemcpyDtoHAsync);
  if (!is_valid(from, bytes, "cuMemcpyDtoHAsync")) return INVALID_VALUE;
  if (int error = refuse_while_capturing(stream, "cuMemcpyDtoHAsync")) return error;
  return put(stream, {[=] {
               if (is_valid(from, bytes, "a copy that happens")) memcpy(to, (void *)from, bytes);
             }});
}
static Operation moving(Address to, Address from, size_t bytes) {
  return {[=] {
    bool valid = is_valid(to, bytes, "a copy that happens") && is_valid(from, bytes, "a copy that happens");
    if (valid) memmove((void *)to, (void *)from, bytes);
  }};
}
API int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream *stream) {
  CALL_INSIDE(cuMemcpyDtoDAsync);
  bool valid = is_valid(to, bytes, "cuMemcpyDtoDAsync") && is_valid(from, bytes, "cuMemcpyDtoDAsync");
  return valid ? put(stream, moving(to, from, bytes)) : INVALID_VALUE;
}
API int cuMemcpyPeerAsync(Address to, Context *there, Address from, Context *here, size_t bytes, Stream *stream) {
  CALL_INSIDE(cuMemcpyPeerAsync);
  bool valid = is_valid(to, bytes, "cuMemcpyPeerAsync") && is_valid(from, bytes, "cuMemcpyPeerAsync");
  if (!valid) return INVALID_VALUE;
  if (owner(to) != there || owner(from) != here) violation("cuMemcpyPeerAsync with contexts that are not the memory's");
  ++counts["copies between devices"];
  return put(stream, moving(to, from, bytes));
}

// ---- Kernels: the PTX says which there are and what they take, the libraries in FAKE_KERNELS have them.

using Entry = const char *(*)(const unsigned *grid, void **arguments);

struct Function {
  std::string name;
  std::vector<size_t> sizes;  // of the parameters
  unsigned most_threads;
  Entry entry;
  Context *context;
};
struct Module {
  std::string ptx;
  Context *context;
  std::map<std::string, Function *> functions{};
};

static std::vector<void *> libraries() {
  std::vector<void *> all;
  glob_t files;
  std::string pattern = std::string(text("FAKE_KERNELS", ".")) + "/*.so";
  if (glob(pattern.c_str(), 0, nullptr, &files) != 0) return all;
  for (size_t i = 0; i < files.gl_pathc; ++i)
    if (void *library = dlopen(files.gl_pathv[i], RTLD_NOW | RTLD_LOCAL)) all.push_back(library);
  globfree(&files);
  return all;
}
static Entry entry(const std::string &kernel) {
  static std::vector<void *> all = libraries();
  for (void *library : all)
    if (void *found = dlsym(library, ("launch_" + kernel).c_str())) return (Entry)found;
  return nullptr;
}

// Sizes of parameters such as `.param .u64 name, .param .f32 name`.
static std::vector<size_t> sizes(const std::string &parameters) {
  std::vector<size_t> all;
  const std::string WORD = ".param .";
  for (size_t at = parameters.find(WORD); at != std::string::npos; at = parameters.find(WORD, at + 1))
    all.push_back(atoi(parameters.c_str() + at + WORD.size() + 1) / 8);
  return all;
}
static unsigned most_threads(const std::string &head) {
  size_t at = head.find(".maxntid");
  return at == std::string::npos ? 1024 : atoi(head.c_str() + at + strlen(".maxntid"));
}
static Function *function(const Module &module, const std::string &name) {
  const std::string &ptx = module.ptx, word = ".entry " + name + "(";
  size_t at = ptx.find(word);
  Entry code = entry(name);
  if (at == std::string::npos || !code) return nullptr;
  size_t begin = at + word.size(), end = ptx.find(')', begin), body = ptx.find('{', end);
  return new Function{name, sizes(ptx.substr(begin, end - begin)), most_threads(ptx.substr(end, body - end)), code,
                      module.context};
}

API int cuModuleLoadData(Module **module, const void *image) {
  CALL_INSIDE(cuModuleLoadData);
  if (this_thread_captures()) violation("cuModuleLoadData while capturing");
  *module = new Module{(const char *)image, current};
  return OK;
}
API int cuModuleGetFunction(Function **found, Module *module, const char *name) {
  CALL_INSIDE(cuModuleGetFunction);
  Function *&known = module->functions[name];
  if (!known) known = function(*module, name);
  if (!known) violation(std::string("there is no kernel ") + name);
  return (*found = known) ? OK : NOT_FOUND;
}

static int refused(const Function &f, const unsigned *grid) {
  const unsigned MOST = 65535;
  unsigned threads = grid[3] * grid[4] * grid[5];
  bool is_grid = grid[0] && grid[0] <= 0x7FFFFFFF && grid[1] && grid[1] <= MOST && grid[2] && grid[2] <= MOST;
  if (!is_grid || !threads || threads > 1024) {
    violation("a launch of " + f.name + " with a grid that cannot be");
    return INVALID_VALUE;
  }
  if (threads > f.most_threads) {
    violation("a launch of " + f.name + " with more threads than its .maxntid");
    return TOO_MANY_RESOURCES;
  }
  return OK;
}
static void execute(const Function &f, std::vector<unsigned> grid, std::vector<std::vector<char>> arguments) {
  std::vector<void *> places;
  for (auto &a : arguments) places.push_back(a.data());
  ++counts["kernels"];
  const char *wrong = f.entry(grid.data(), places.data());
  if (!wrong) return;
  violation("kernel " + f.name + ": " + wrong);
  broken = ILLEGAL_ADDRESS;
}
API int cuLaunchKernel(Function *f, unsigned x, unsigned y, unsigned z, unsigned i, unsigned j, unsigned k, unsigned,
                       Stream *stream, void **parameters, void **) {
  CALL_INSIDE(cuLaunchKernel);
  std::vector<unsigned> grid{x, y, z, i, j, k};
  if (int error = refused(*f, grid.data())) return error;
  if (stream && f->context != stream->context) {
    violation("a launch of " + f->name + ", which another context has loaded");
    return INVALID_HANDLE;
  }
  std::vector<std::vector<char>> arguments;
  for (size_t n = 0; n < f->sizes.size(); ++n)
    arguments.emplace_back((char *)parameters[n], (char *)parameters[n] + f->sizes[n]);
  return put(stream, {[=] { execute(*f, grid, arguments); }});
}

// ---- Captured runs.

struct Graph {
  std::shared_ptr<Operations> operations;
};

API int cuStreamBeginCapture_v2(Stream *stream, int mode) {
  CALL_INSIDE(cuStreamBeginCapture);
  const int RELAXED = 2;
  if (mode != RELAXED) violation("a capture in which other threads may not allocate");
  if (int error = refuse_while_capturing(stream, "cuStreamBeginCapture")) return error;
  stream->capturing = true, stream->spoilt = false, stream->capturer = std::this_thread::get_id();
  stream->captured.clear();
  return OK;
}
API int cuStreamEndCapture(Stream *stream, Graph **graph) {
  CALL_INSIDE(cuStreamEndCapture);
  stream->capturing = false;
  *graph = nullptr;
  if (stream->spoilt) return CAPTURE_INVALIDATED;
  *graph = new Graph{std::make_shared<Operations>(std::move(stream->captured))};
  ++counts["captures"];
  return OK;
}
API int cuGraphInstantiateWithFlags(Graph **ready, Graph *graph, unsigned long long) {
  CALL_INSIDE(cuGraphInstantiateWithFlags);
  *ready = new Graph{graph->operations};
  return OK;
}
API int cuGraphDestroy(Graph *graph) {
  CALL(cuGraphDestroy);
  delete graph;
  return OK;
}
API int cuGraphLaunch(Graph *ready, Stream *stream) {
  CALL_INSIDE(cuGraphLaunch);
  ++counts["replays"];
  auto operations = ready->operations;
  return put(stream, {[=] {
               for (const Operation &o : *operations) perform(o);
             }});
}
API int cuGraphExecDestroy(Graph *ready) {
  CALL(cuGraphExecDestroy);
  delete ready;
  return OK;
}

#include "nccl.hpp"

// ---- Errors, and questions of the tests.

API int cuGetErrorName(int error, const char **name) {
  static thread_local char made[32];
  snprintf(made, sizeof made, "CUDA_ERROR_%d", error);
  *name = made;
  return OK;
}
API int cuGetErrorString(int error, const char **what) {
  static thread_local char made[32];
  snprintf(made, sizeof made, "error %d", error);
  *what = made;
  return OK;
}

API const char *fake_violations() { return violations.c_str(); }
API long fake_kernels() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  return counts["kernels"];
}
API long fake_pending() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  long all = 0;
  for (Stream *s : streams) all += (long)s->waiting.size();
  return all;
}
