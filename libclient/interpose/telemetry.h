// How the interposers, libsonde-mpi.so, libsonde-io.so and libsonde_functions.so, use libsonde and
// the clock.
//
// libsonde is not linked but referred to weakly: it is preloaded beside an interposer, or linked by
// the application. Without it an interposer forwards every call, and loading it never fails for
// want of another library.
//
// Thread safety: any thread. Safe in a signal handler: a Visit tells whether this thread is within
// libsonde already, which may hold its mutex then; in that case the caller leaves the value out.
#pragma once

#pragma weak sonde_init
#pragma weak sonde_counter
#pragma weak sonde_gauge
#pragma weak sonde_histogram
#pragma weak sonde_annotate
#pragma weak sonde_add_slow_
#pragma weak sonde_observe_slow_
#pragma weak sonde_thread_
#pragma weak sonde_inside_

#include "libclient/interpose/call_metrics.h"
#include "libclient/interpose/ticks.h"
#include "libclient/sonde.h"

// Of libclient/library.h.
extern "C" __thread int sonde_inside_ __attribute__((tls_model("initial-exec")));

#define SONDE_INTERPOSED extern "C" __attribute__((visibility("default")))

namespace sonde::interpose {

// This thread is within libsonde because we called it. sonde_inside_ tells whether the application
// called it.
inline __thread int within __attribute__((tls_model("initial-exec"))) = 0;

class Visit {
 public:
  Visit() : good_(within == 0 && sonde_inside_ == 0) { ++within; }
  ~Visit() { --within; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  bool good() const { return good_; }

 private:
  bool good_;
};

// Whether a daemon is named, libsonde is there and this is the task's doing, not the site's; says
// why not if SONDE_DEBUG=1. Does not connect.
bool Wanted(const char* library);

// The step's level as the environment tells it, 4 if it does not.
int StepLevel();

// Registers one; the caller is in a Visit. NULL if libsonde refuses it.
inline sonde_metric_t* Counter(const CallMetric& metric, const sonde_tag_t* tags, size_t count) {
  return sonde_counter(metric.name, metric.unit, metric.help, 0, tags, count);
}
inline sonde_metric_t* Histogram(const CallMetric& metric, const sonde_tag_t* tags, size_t count) {
  if (&sonde_histogram == nullptr) return nullptr;
  return sonde_histogram(metric.name, metric.unit, metric.help, 0, tags, count);
}

// Whole numbers below 2^53; nothing happens for NULL.
inline void Add(sonde_metric_t* counter, uint64_t value) {
  if (counter == nullptr) return;
  if (counter->slot < sonde_thread_.limit) {
    uint64_t* const sum = &sonde_thread_.counts[counter->slot].whole;
    __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + value, __ATOMIC_RELAXED);
    return;
  }
  const Visit visit;
  if (visit.good()) sonde_add_slow_(counter, static_cast<double>(value));
}

inline void AddSeconds(sonde_metric_t* counter, double seconds) {
  if (counter == nullptr) return;
  if (counter->slot < sonde_thread_.limit) {
    double* const sum = &sonde_thread_.counts[counter->slot].fraction;
    const double total = *sum + seconds;
    __atomic_store(sum, const_cast<double*>(&total), __ATOMIC_RELAXED);
    return;
  }
  const Visit visit;
  if (visit.good()) sonde_add_slow_(counter, seconds);
}

inline void Observe(sonde_metric_t* histogram, double value) {
  if (histogram == nullptr) return;
  if (histogram->histogram < sonde_thread_.distributions_limit &&
      sonde_thread_.distributions[histogram->histogram] != nullptr) {
    return sonde_observe(histogram, value);
  }
  const Visit visit;
  if (visit.good()) sonde_observe_slow_(histogram, value);
}

}  // namespace sonde::interpose
