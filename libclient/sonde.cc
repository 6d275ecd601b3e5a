// The functions of sonde.h and the one state of the library behind them.
//
// Constant-initialised and never destroyed, so that it serves constructors that run before main()
// and destructors that run after it. No C++ runtime: an application in C or Fortran loads none.
#include "libclient/sonde.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libclient/connect.h"
#include "libclient/registry.h"
#include "libclient/segment.h"
#include "libclient/shards.h"

#define SONDE_EXPORT extern "C" __attribute__((visibility("default")))

__attribute__((visibility("default"))) __thread struct sonde_thread sonde_thread_ = {};

namespace sonde::client {
namespace {

enum class Phase : unsigned char {
  kFresh,      // nobody has asked for anything
  kSettled,    // tried; Library::code tells how it went
  kForked,     // the child of an attached process
  kFinalized,  // ended by sonde_finalize()
};

struct Library {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards all but `counting`
  Phase phase = Phase::kFresh;
  int code = SONDE_OFF;
  bool guards_forks = false;  // set once, before main()
  bool counting = false;      // counters have a place to go; read by every thread, atomically
  Segment segment;
  Registry registry;
  Shards shards;
  Connection connection;
};

constinit Library library;
__thread int thread_status = SONDE_OK;

class Lock {
 public:
  Lock() { pthread_mutex_lock(&library.mutex); }
  ~Lock() { pthread_mutex_unlock(&library.mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// Remembers how a call went, and tells on request.
int Finish(int code, const char* what) {
  const int error = errno;
  thread_status = code;
  const char* debug = secure_getenv("SONDE_DEBUG");
  if (debug == nullptr || strcmp(debug, "1") != 0) return code;
  const bool system = code == SONDE_SYSTEM || code == SONDE_UNREACHABLE;
  dprintf(STDERR_FILENO, "sonde[%d]: %s: %s%s%s\n", getpid(), what, sonde_strerror(code),
          system ? ": " : "", system ? strerror(error) : "");
  return code;
}

void SetCounting(bool counting) { __atomic_store_n(&library.counting, counting, __ATOMIC_RELEASE); }

void BeforeFork() { pthread_mutex_lock(&library.mutex); }
void AfterForkInParent() { pthread_mutex_unlock(&library.mutex); }

// The child must neither write into its parent's metrics nor keep its parent's connection open.
// Connecting is left to its next call: most children only run another program.
void AfterForkInChild() {
  if (library.phase == Phase::kSettled && library.code == SONDE_OK) {
    library.connection.Close();
    library.segment.Detach();
    library.shards.Reset();
    SetCounting(false);
    library.phase = Phase::kForked;
  } else if (library.phase == Phase::kFinalized && library.segment.header() != nullptr) {
    library.segment.Detach();
    library.shards.Reset();
    SetCounting(false);
  }
  pthread_mutex_unlock(&library.mutex);
}

// At load and not with the first metric: a fork that had begun before would copy a locked mutex.
__attribute__((constructor)) void GuardForks() {
  library.guards_forks = pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild) == 0;
}

void OnThreadEnd(void* shard) {
  const Lock lock;
  library.shards.Release(shard);
}

int AttachFirst() {
  if (!DaemonNamed()) return SONDE_OFF;
  if (!library.segment.Create()) return SONDE_SYSTEM;
  const int code = library.connection.Open(library.segment.fd());
  if (code != SONDE_OK) {
    const int error = errno;
    library.segment.Destroy();
    errno = error;
    return code;
  }
  library.shards.Create(&OnThreadEnd);
  return SONDE_OK;
}

int AttachChild() {
  const Registry& registry = library.registry;
  if (!library.segment.Renew(registry.records_end(), registry.gauges())) return SONDE_SYSTEM;
  return library.connection.Open(library.segment.fd());
}

// Mutex held.
int Attach() {
  switch (library.phase) {
    case Phase::kFresh:
      library.code =
          library.guards_forks && library.registry.Create() ? AttachFirst() : SONDE_SYSTEM;
      break;
    case Phase::kForked:
      library.code = AttachChild();
      break;
    case Phase::kSettled:
      return library.code;
    case Phase::kFinalized:
      return SONDE_FINALIZED;
  }
  library.phase = Phase::kSettled;
  SetCounting(library.code == SONDE_OK);
  return library.code;
}

sonde_metric_t* Register(const Declaration& declaration) {
  sonde_metric_t* metric = nullptr;
  int code = SONDE_OK;
  {
    const Lock lock;
    code = Attach();
    if (code == SONDE_OK) {
      metric =
          library.registry.Add(library.segment, declaration, library.connection.Level(), &code);
    }
  }
  Finish(code, declaration.name == nullptr ? "(no name)" : declaration.name);
  return metric;
}

void AddToCounter(uint32_t slot, double value) {
  if (!__atomic_load_n(&library.counting, __ATOMIC_ACQUIRE)) return;
  const sonde_thread& thread = sonde_thread_;
  if (slot < thread.limit) return Shards::AddToOwn(slot, value);
  if (thread.state == kDenied) return;
  if (thread.state == kCommonShard && library.shards.AddToCommon(library.segment, slot, value)) {
    return;
  }
  {
    const Lock lock;
    library.shards.Prepare(library.segment, slot);
  }
  if (thread.state == kCommonShard) {
    library.shards.AddToCommon(library.segment, slot, value);
  } else if (slot < thread.limit) {
    Shards::AddToOwn(slot, value);
  }
}

// Of two threads that set one gauge at the same moment, one wins.
void SetTimed(Cell* cell, double value, int64_t time) {
  uint32_t sequence = __atomic_load_n(&cell->sequence, __ATOMIC_RELAXED);
  if ((sequence & 1) != 0 ||
      !__atomic_compare_exchange_n(&cell->sequence, &sequence, sequence + 1, false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return;
  }
  __atomic_store(&cell->value, &value, __ATOMIC_RELEASE);
  __atomic_store_n(&cell->time, time, __ATOMIC_RELEASE);
  __atomic_store_n(&cell->sequence, sequence + 2, __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace sonde::client

using sonde::client::library;

SONDE_EXPORT int sonde_init(void) {
  int code;
  {
    const sonde::client::Lock lock;
    code = sonde::client::Attach();
  }
  return sonde::client::Finish(code, "sonde_init");
}

SONDE_EXPORT sonde_metric_t* sonde_counter(const char* name, const char* unit, const char* help,
                                           int level, const sonde_tag_t* tags, size_t tag_count) {
  return sonde::client::Register(
      {sonde::client::kTypeCounter, name, unit, help, level, tags, tag_count});
}

SONDE_EXPORT sonde_metric_t* sonde_gauge(const char* name, const char* unit, const char* help,
                                         int level, const sonde_tag_t* tags, size_t tag_count) {
  return sonde::client::Register(
      {sonde::client::kTypeGauge, name, unit, help, level, tags, tag_count});
}

SONDE_EXPORT void sonde_set_at(sonde_metric_t* metric, double value, int64_t time_ns) {
  if (metric == nullptr || metric->cell == nullptr) return;
  sonde::client::SetTimed(reinterpret_cast<sonde::client::Cell*>(metric->cell), value, time_ns);
}

SONDE_EXPORT void sonde_add_slow_(sonde_metric_t* metric, double value) {
  if (metric->cell != nullptr) {
    sonde::client::AddAtomically(metric->cell, value);
  } else if (value >= 0) {
    sonde::client::AddToCounter(metric->slot, value);
  }
}

SONDE_EXPORT void sonde_finalize(void) {
  {
    const sonde::client::Lock lock;
    library.connection.Close();
    library.phase = sonde::client::Phase::kFinalized;
  }
  sonde::client::Finish(SONDE_OK, "sonde_finalize");
}

SONDE_EXPORT int sonde_status(void) { return sonde::client::thread_status; }

SONDE_EXPORT const char* sonde_strerror(int code) {
  switch (code) {
    case SONDE_OK:
      return "done";
    case SONDE_OFF:
      return "no telemetry was asked for (SONDE_SOCKET is not set)";
    case SONDE_UNREACHABLE:
      return "the step's daemon could not be reached at SONDE_SOCKET";
    case SONDE_FOREIGN:
      return "SONDE_SOCKET belongs to another user";
    case SONDE_INVALID:
      return "a name, tag, text or level that is not allowed; see sonde.h";
    case SONDE_CONFLICT:
      return "a metric of this name and these tags exists with another type";
    case SONDE_LEVEL:
      return "not recorded at the step's telemetry level";
    case SONDE_LIMIT:
      return "too many metrics in this process";
    case SONDE_SYSTEM:
      return "the operating system gave no memory or descriptor";
    case SONDE_FINALIZED:
      return "sonde_finalize was called before";
    default:
      return "not a code of sonde.h";
  }
}
