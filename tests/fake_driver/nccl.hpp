// NCCL as nnrs calls it, between devices of one process: its library is this one under another name. Collectives stand in
// the streams and go on when all members have come to them, which is when the device does, not when the host calls.
//
// FAKE_FAIL reaches these functions too. Calls that differ between members are violations.
#pragma once

#include "machine.hpp"

#include <chrono>

namespace fake {

const int INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5;
const int MEMBERS = 8;

struct UniqueId {
  char text[128];
};

// One collective: what its members have brought, and who has come.
struct Meeting {
  std::string said;
  Event events[MEMBERS] = {};
  std::string brought[MEMBERS];                // of collectives
  std::map<int, std::string> pieces[MEMBERS];  // of sends: by sender, for each receiver
  bool ended[MEMBERS] = {};                    // members that have left: they take nothing
};

struct Clique {
  int size = 0, joined = 0;
  bool members[MEMBERS] = {};
  Context *contexts[MEMBERS] = {};
  std::map<long, std::shared_ptr<Meeting>> meetings;
};
inline std::map<std::string, Clique> cliques;

struct Member {
  Clique *clique;
  int rank;
  Context *context;
  long calls = 0;
  std::vector<std::shared_ptr<Meeting>> open{};
};

// Sends and receives between ncclGroupStart and ncclGroupEnd.
struct Piece {
  bool sends;
  Address at;
  size_t bytes;
  int peer;
};
inline thread_local std::vector<Piece> begun;
inline thread_local Member *beginner;
inline thread_local Stream *begun_on;
inline thread_local int depth;

inline size_t element(int type) {
  const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

// In the order of ranks; of the types that the tests use.
template <class T>
std::string total(const Meeting &m, int size, int operation, size_t first, size_t count) {
  std::vector<T> sums(count);
  for (size_t i = 0; i < count; ++i) {
    for (int r = 0; r < size; ++r) {
      T x = ((const T *)m.brought[r].data())[first + i];
      if (operation == 4) x = (T)(x / (T)size);
      sums[i] = r == 0 ? x : operation == 2 ? std::max(sums[i], x) : (T)(sums[i] + x);
    }
  }
  return {(const char *)sums.data(), count * sizeof(T)};
}
inline std::string total(const Meeting &m, int size, int type, int operation, size_t first, size_t count) {
  if (type == 7) return total<float>(m, size, operation, first, count);
  if (type == 8) return total<double>(m, size, operation, first, count);
  if (type == 2) return total<int>(m, size, operation, first, count);
  if (type == 1) return total<unsigned char>(m, size, operation, first, count);
  violation("NCCL: sums of a type that the fake lacks");
  return std::string(count * element(type), 0);
}

// Puts a collective into the stream: what is brought, waits for the others, what is done then.
inline int meet(Member *member, Stream *stream, const std::string &said, std::function<void(Meeting &)> bring,
                std::function<void(Meeting &)> take) {
  if (!stream || stream->context != member->context) {
    violation("NCCL: a stream of another device than the communicator's");
    return INVALID_USAGE;
  }
  if (stream->capturing) violation("NCCL: captured, which the fake cannot do");
  std::shared_ptr<Meeting> &m = member->clique->meetings[++member->calls];
  if (!m) m = std::make_shared<Meeting>(), m->said = said;
  if (m->said != said) violation("NCCL: " + said + " meets " + m->said);
  std::shared_ptr<Meeting> own = m;
  member->open.push_back(own);
  Event *here = &own->events[member->rank];
  if (int error = put(stream, {[=] { bring(*own), here->done = 1; }})) return error;
  for (int r = 0; r < member->clique->size; ++r)
    if (int error = put(stream, {nullptr, &own->events[r], 1, true})) return error;
  ++counts["collectives"];
  int rank = member->rank;
  return put(stream, {[=] {
               if (!own->ended[rank]) take(*own);
             }});
}

inline std::string words(const char *name, size_t count, int type, int operation, int root) {
  return std::string(name) + " of " + std::to_string(count) + " of type " + std::to_string(type) + ", " +
         std::to_string(operation) + ", root " + std::to_string(root);
}

inline void put_there(Address to, const std::string &bytes) {
  if (is_valid(to, bytes.size(), "NCCL writes")) memcpy((void *)to, bytes.data(), bytes.size());
}
inline std::string taken(Address from, size_t bytes) {
  return is_valid(from, bytes, "NCCL reads") ? std::string((char *)from, bytes) : std::string(bytes, 0);
}

}  // namespace fake

API int ncclGetVersion(int *version) {
  *version = (int)number("FAKE_NCCL", 22304);
  return 0;
}
API const char *ncclGetErrorString(int status) { return status == INVALID_USAGE ? "invalid usage" : "unhandled error"; }
API int ncclGetUniqueId(UniqueId *id) {
  CALL(ncclGetUniqueId);
  static long next = 0;
  memset(id, 0, sizeof *id);
  snprintf(id->text, sizeof id->text, "clique %ld", ++next);
  return 0;
}
API int ncclCommInitRank(Member **made, int size, UniqueId id, int rank) {
  CALL_INSIDE(ncclCommInitRank);
  Clique &clique = cliques[id.text];
  if (rank >= size || (clique.size && clique.size != size) || clique.members[rank]) return INVALID_ARGUMENT;
  for (int r = 0; r < size; ++r)
    if (clique.contexts[r] == current) return INVALID_USAGE;
  clique.size = size, clique.members[rank] = true, clique.contexts[rank] = current, ++clique.joined;
  auto begin = std::chrono::steady_clock::now();
  while (clique.joined < size) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(20)) return INTERNAL_ERROR;
    give_way();
  }
  *made = new Member{&clique, rank, current};
  return 0;
}
static int end(Member *member) {
  for (auto &meeting : member->open) {
    meeting->ended[member->rank] = true;
    for (Event &e : meeting->events) e.done = 1;
  }
  member->open.clear();
  return 0;
}
API int ncclCommDestroy(Member *member) {
  CALL(ncclCommDestroy);
  return end(member);
}
API int ncclCommAbort(Member *member) {
  CALL(ncclCommAbort);
  ++counts["communicators aborted"];
  return end(member);
}
API int ncclCommGetAsyncError(Member *, int *error) {
  CALL(ncclCommGetAsyncError);
  *error = injected("asynchronous");
  return 0;
}

API int ncclAllReduce(Address from, Address to, size_t n, int type, int operation, Member *member, Stream *stream) {
  CALL_INSIDE(ncclAllReduce);
  int size = member->clique->size, rank = member->rank;
  return meet(member, stream, words("AllReduce", n, type, operation, 0),
              [=](Meeting &m) { m.brought[rank] = taken(from, n * element(type)); },
              [=](Meeting &m) { put_there(to, total(m, size, type, operation, 0, n)); });
}
API int ncclReduce(Address from, Address to, size_t n, int type, int operation, int root, Member *member, Stream *stream) {
  CALL_INSIDE(ncclReduce);
  int size = member->clique->size, rank = member->rank;
  return meet(member, stream, words("Reduce", n, type, operation, root),
              [=](Meeting &m) { m.brought[rank] = taken(from, n * element(type)); },
              [=](Meeting &m) {
                if (rank == root) put_there(to, total(m, size, type, operation, 0, n));
              });
}
API int ncclReduceScatter(Address from, Address to, size_t n, int type, int operation, Member *member, Stream *stream) {
  CALL_INSIDE(ncclReduceScatter);
  int size = member->clique->size, rank = member->rank;
  return meet(member, stream, words("ReduceScatter", n, type, operation, 0),
              [=](Meeting &m) { m.brought[rank] = taken(from, n * size * element(type)); },
              [=](Meeting &m) { put_there(to, total(m, size, type, operation, rank * n, n)); });
}
API int ncclBroadcast(Address from, Address to, size_t n, int type, int root, Member *member, Stream *stream) {
  CALL_INSIDE(ncclBroadcast);
  int rank = member->rank;
  return meet(member, stream, words("Broadcast", n, type, 0, root),
              [=](Meeting &m) { m.brought[rank] = rank == root ? taken(from, n * element(type)) : ""; },
              [=](Meeting &m) { put_there(to, m.brought[root]); });
}
API int ncclAllGather(Address from, Address to, size_t n, int type, Member *member, Stream *stream) {
  CALL_INSIDE(ncclAllGather);
  int size = member->clique->size, rank = member->rank;
  return meet(member, stream, words("AllGather", n, type, 0, 0),
              [=](Meeting &m) { m.brought[rank] = taken(from, n * element(type)); },
              [=](Meeting &m) {
                for (int r = 0; r < size; ++r) put_there(to + r * n * element(type), m.brought[r]);
              });
}

API int ncclGroupStart() {
  ++depth;
  return 0;
}
static int piece(bool sends, Address at, size_t n, int type, int peer, Member *member, Stream *stream) {
  if (!depth) violation("NCCL: a send or receive outside of a group waits for the other one");
  begun.push_back({sends, at, n * element(type), peer});
  beginner = member, begun_on = stream;
  return 0;
}
API int ncclSend(Address from, size_t n, int type, int peer, Member *member, Stream *stream) {
  CALL_INSIDE(ncclSend);
  return piece(true, from, n, type, peer, member, stream);
}
API int ncclRecv(Address to, size_t n, int type, int peer, Member *member, Stream *stream) {
  CALL_INSIDE(ncclRecv);
  return piece(false, to, n, type, peer, member, stream);
}
// Members that neither send nor receive have no part in a real one; here all have.
API int ncclGroupEnd() {
  CALL(ncclGroupEnd);
  if (--depth || begun.empty()) return 0;
  std::vector<Piece> all = std::move(begun);
  begun.clear();
  int rank = beginner->rank;
  auto bring = [=](Meeting &m) {
    for (const Piece &p : all)
      if (p.sends) m.pieces[p.peer][rank] = taken(p.at, p.bytes);
  };
  auto take = [=](Meeting &m) {
    for (const Piece &p : all) {
      if (p.sends) continue;
      if (m.pieces[rank][p.peer].size() != p.bytes) violation("NCCL: a piece of another size than was sent");
      put_there(p.at, m.pieces[rank][p.peer]);
    }
  };
  return meet(beginner, begun_on, "Send and Recv", bring, take);
}
