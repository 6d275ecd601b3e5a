// An interposed function of MPI and its metrics.
//
// A Site is constant-initialised and lives as long as the process. Its metrics are registered with
// the first call that is recorded; below level 4 all functions of a class share them.
//
// Thread safety: any thread.
#pragma once

#include <stdint.h>

#include "libclient/interpose/telemetry.h"
#include "libclient/mpi/shapes.h"

namespace sonde::mpi {

// What a function is counted as. Receive is point to point, Barrier a collective, whose time is
// waiting; Test looks for completion without waiting for it.
enum class Class : uint8_t { P2p, Receive, Wait, Test, Collective, Barrier, OneSided, Io, Other };

struct Site {
  const char* name;  // MPI_Send
  Class kind;
  bool sends;
  bool receives;

  void* real = nullptr;  // atomic
  bool ready = false;    // atomic; the metrics are there
  // Fortran: whether the library's entry point calls the C function, which then counts. Atomic.
  enum Inner : uint8_t { kUnknown, kCounts, kNone } inner = kUnknown;

  sonde_metric_t* calls = nullptr;
  sonde_metric_t* seconds = nullptr;
  sonde_metric_t* wait_seconds = nullptr;
  sonde_metric_t* sent = nullptr;
  sonde_metric_t* received = nullptr;
  sonde_metric_t* sizes = nullptr;
};

// Of the calling thread.
struct Thread {
  int depth;          // 1: within a call that is counted
  uint32_t recorded;  // calls
  bool main;          // it called MPI_Init
};
extern __thread Thread thread __attribute__((tls_model("initial-exec")));

// MPI is in use and there is telemetry; read by every thread, atomically.
extern bool active;
extern interpose::TickClock clock;
extern uint64_t begun;  // ticks; MPI_Init

// The library's function of this name, nullptr if it has none.
void* FindReal(Site& site, const char* symbol);

// Registers the site's metrics if that has not been done.
void Prepare(Site& site);

// A call that took so many ticks, ended at `now`; gives them in seconds.
double Record(Site& site, uint64_t ticks, uint64_t now, const Bytes& bytes);

// The result of a call to a function that the program's MPI does not have: an error, MPI_ERR_OTHER
// with most libraries.
inline constexpr int kMissing = 15;

// Connects and starts to record; called before the real MPI_Init.
void Begin();
// After MPI_Finalize.
void End();

}  // namespace sonde::mpi
