// The one state of the library behind the functions of sonde.h.
//
// Constant-initialised and never destroyed, so that it serves constructors that run before main()
// and destructors that run after it. No C++ runtime: an application in C or Fortran loads none.
//
// Thread safety: as stated with each function; the fields are guarded by the mutex unless said
// otherwise.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "libclient/connect.h"
#include "libclient/declaration.h"
#include "libclient/distributions.h"
#include "libclient/phases.h"
#include "libclient/registry.h"
#include "libclient/ring.h"
#include "libclient/segment.h"
#include "libclient/shards.h"

#define SONDE_EXPORT extern "C" __attribute__((visibility("default")))

// How often the calling thread is within the library, perhaps holding its mutex: the interposers,
// which run in signal handlers, leave out calls that would take the mutex again.
extern "C" __thread int sonde_inside_ __attribute__((tls_model("initial-exec")));

namespace sonde::client {

enum class State : unsigned char {
  kFresh,      // nobody has asked for anything
  kSettled,    // tried; Library::code tells how it went
  kForked,     // the child of an attached process
  kFinalized,  // ended by sonde_finalize()
};

struct Library {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  State state = State::kFresh;
  int code = SONDE_OFF;
  int error = 0;              // errno that belongs to it
  int64_t tried = 0;          // when, by CLOCK_MONOTONIC
  bool loaded = false;        // these two are known
  bool guards_forks = false;  // set once, before main()
  bool talks = false;         // set once, before main(): SONDE_DEBUG=1
  bool has_shards = false;    // Shards::Create was called
  bool recording = false;     // updates are recorded; read by every thread, atomically
  Segment segment;
  Registry registry;
  Shards shards;
  Distributions distributions;
  Ring<Moments> moments;
  Ring<Past> past;
  Phases phases;
  Connection connection;
};
extern Library library;

// sonde_inside_ is raised before the mutex is taken and lowered after it is given back, so that a
// signal handler in between finds it raised.
inline void Acquire() {
  ++sonde_inside_;
  asm volatile("" ::: "memory");
  pthread_mutex_lock(&library.mutex);
}
inline void Release() {
  pthread_mutex_unlock(&library.mutex);
  asm volatile("" ::: "memory");
  --sonde_inside_;
}

class Lock {
 public:
  Lock() { Acquire(); }
  ~Lock() { Release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// Any thread, without the mutex: whether this process is attached.
inline bool Recording() { return __atomic_load_n(&library.recording, __ATOMIC_ACQUIRE); }

// Mutex held: attaches the process if that was not tried yet, or again if nobody listened and a
// second has passed. Returns a code of sonde.h.
int Attach();

// Without the mutex: attaches the process if it is not.
inline int AttachIfNeeded() {
  if (Recording()) return SONDE_OK;
  const Lock lock;
  return Attach();
}

// Mutex held: ends the record of the process.
void Detach();

// Mutex held: the metric, or nullptr with a code of sonde.h.
sonde_metric_t* Register(const Declaration& declaration, int* code);

// Without the mutex: adds to a counter of this process on the slow way.
void AddToCounter(uint32_t slot, double value);

// Keeps the result of a call, and prints it if SONDE_DEBUG=1; `what`: its subject. Returns `code`.
int Finish(int code, const char* what);
int ThreadStatus();

}  // namespace sonde::client
