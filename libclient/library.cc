#include "libclient/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clocks.h"
#include "libclient/error.h"

__attribute__((visibility("default"))) __thread struct sonde_thread sonde_thread_ = {};
__attribute__((visibility("default"))) __thread int sonde_inside_ = 0;

namespace sonde::client {

constinit Library library;

namespace {

__thread int thread_status = SONDE_OK;

void SetRecording(bool recording) {
  __atomic_store_n(&library.recording, recording, __ATOMIC_RELEASE);
}

constexpr int64_t kTryAgainAfter = 1'000'000'000;  // ns

void BeforeFork() { Acquire(); }
void AfterForkInParent() { Release(); }

// The child does not inherit what the parent's threads had.
void Disown() {
  library.segment.Detach();
  library.shards.Reset();
  library.distributions.Reset();
  library.moments.Reset();
  library.past.Reset();
  library.phases.Reset();
  SetRecording(false);
}

// The child must neither write into its parent's metrics nor keep its parent's connection open.
// Connecting is left to its next call: most children only run another program.
void AfterForkInChild() {
  if (library.segment.header() != nullptr && library.state != State::kForked) {
    library.connection.Close();
    Disown();
    if (library.state == State::kSettled) library.state = State::kForked;
  }
  Release();
}

// At load and not with the first metric: a fork that had begun before would copy a locked mutex.
// Another library's constructor may come before this one, and register a metric.
__attribute__((constructor)) void Load() {
  if (library.loaded) return;
  library.loaded = true;
  const char* const debug = secure_getenv("SONDE_DEBUG");
  library.talks = debug != nullptr && strcmp(debug, "1") == 0;
  library.guards_forks = pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild) == 0;
}

void OnThreadEnd(void* shard) {
  const Lock lock;
  library.shards.Release(shard);
}

// A process that never had a daemon keeps nothing open.
int AttachFirst(Patience patience) {
  if (!DaemonNamed()) return SONDE_OFF;
  Load();
  errno = ENOMEM;
  if (!library.guards_forks || !library.registry.Create() || !library.segment.Create()) {
    return SONDE_SYSTEM;
  }
  const int code = library.connection.Open(library.segment.fd(), patience);
  if (code != SONDE_OK) {
    const int error = errno;
    library.segment.Destroy();
    errno = error;
    return code;
  }
  if (!library.has_shards) library.shards.Create(&OnThreadEnd);
  library.has_shards = true;
  return SONDE_OK;
}

int AttachChild() {
  const Registry& registry = library.registry;
  if (!library.segment.Renew(registry.records_end(), registry.gauges())) return SONDE_SYSTEM;
  return library.connection.Open(library.segment.fd(), Patience::kSome);
}

// Nobody listened before: perhaps the daemon has started since. Costs no wait.
int AttachAgain() {
  return library.segment.header() == nullptr
             ? AttachFirst(Patience::kNone)
             : library.connection.Open(library.segment.fd(), Patience::kNone);
}

bool MayTryAgain() {
  return library.code == SONDE_UNREACHABLE && MonotonicNow() - library.tried >= kTryAgainAfter;
}

int Explain(int code) {
  const char* const socket = DaemonNamed() ? secure_getenv("SONDE_SOCKET") : "";
  if (code == SONDE_UNREACHABLE) {
    Fail(code, "the step's daemon could not be reached at SONDE_SOCKET '%s': %s",
         Quoted(socket).c_str(), strerror(library.error));
  } else if (code == SONDE_SYSTEM) {
    Fail(code, "no memory or descriptor for this process's metrics: %s", strerror(library.error));
  } else if (code == SONDE_FOREIGN) {
    Fail(code, "SONDE_SOCKET '%s' belongs to another user", Quoted(socket).c_str());
  }
  return code;
}

void Settle(int code) {
  library.error = errno;
  library.code = code;
  library.tried = MonotonicNow();
  library.state = State::kSettled;
  SetRecording(code == SONDE_OK);
}

}  // namespace

int Attach() {
  switch (library.state) {
    case State::kFresh:
      Settle(AttachFirst(Patience::kSome));
      break;
    case State::kForked:
      Settle(AttachChild());
      break;
    case State::kSettled:
      if (MayTryAgain()) Settle(AttachAgain());
      break;
    case State::kFinalized:
      return SONDE_FINALIZED;
  }
  return Explain(library.code);
}

void Detach() {
  library.connection.Close();
  library.state = State::kFinalized;
  SetRecording(false);
}

sonde_metric_t* Register(const Declaration& declaration, int* code) {
  *code = Attach();
  if (*code != SONDE_OK) return nullptr;
  const int level = library.connection.Level();
  errno = 0;
  sonde_metric_t* const metric = library.registry.Add(library.segment, declaration, level, code);
  if (*code == SONDE_SYSTEM) {
    Fail(*code, "no memory for the metric '%s': %s", Quoted(Text(declaration.name)).c_str(),
         strerror(errno));
  }
  return metric;
}

void AddToCounter(uint32_t slot, double value) {
  if (slot >= kMaxMetrics || !Recording()) return;
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

int Finish(int code, const char* what) {
  thread_status = code;
  if (code == SONDE_OK) ClearError();
  if (!library.talks) return code;
  const char* words = LastError();
  dprintf(STDERR_FILENO, "sonde[%d]: %s: %s\n", getpid(), Quoted(what).c_str(),
          *words == '\0' ? sonde_strerror(code) : words);
  return code;
}

int ThreadStatus() { return thread_status; }

}  // namespace sonde::client
