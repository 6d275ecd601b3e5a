// The functions of sonde.h but those that tell moments, which are in moments.cc.
#include "libclient/sonde.h"

#include "libclient/error.h"
#include "libclient/library.h"

namespace sonde::client {
namespace {

sonde_metric_t* Declare(const Declaration& declaration) {
  ClearError();
  sonde_metric_t* metric = nullptr;
  int code = SONDE_OK;
  {
    const Lock lock;
    metric = Register(declaration, &code);
  }
  Finish(code, declaration.name == nullptr ? "(no name)" : declaration.name);
  return metric;
}

void Observe(uint32_t histogram, double value) {
  if (histogram >= kMaxHistograms || !__builtin_isfinite(value) || !Recording()) return;
  if (Distributions::ObserveOwn(histogram, value)) return;
  const sonde_thread& thread = sonde_thread_;
  if (thread.state == kDenied) return;
  Distributions& distributions = library.distributions;
  if (distributions.ObserveCommon(histogram, value, thread.state == kCommonShard)) return;
  {
    const Lock lock;
    const size_t shard = library.shards.Enter(library.segment);
    if (!distributions.Prepare(library.segment, shard, histogram)) {
      sonde_thread_.state = kDenied;
      return;
    }
  }
  if (Distributions::ObserveOwn(histogram, value)) return;
  distributions.ObserveCommon(histogram, value, true);
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

SONDE_EXPORT int sonde_init(void) {
  sonde::client::ClearError();
  int code;
  {
    const sonde::client::Lock lock;
    code = sonde::client::Attach();
  }
  return sonde::client::Finish(code, "sonde_init");
}

SONDE_EXPORT sonde_metric_t* sonde_counter(const char* name, const char* unit, const char* help,
                                           int level, const sonde_tag_t* tags, size_t tag_count) {
  return sonde::client::Declare(
      {sonde::client::kTypeCounter, name, unit, help, level, tags, tag_count});
}

SONDE_EXPORT sonde_metric_t* sonde_gauge(const char* name, const char* unit, const char* help,
                                         int level, const sonde_tag_t* tags, size_t tag_count) {
  return sonde::client::Declare(
      {sonde::client::kTypeGauge, name, unit, help, level, tags, tag_count});
}

SONDE_EXPORT sonde_metric_t* sonde_histogram(const char* name, const char* unit, const char* help,
                                             int level, const sonde_tag_t* tags, size_t tag_count) {
  return sonde::client::Declare(
      {sonde::client::kTypeHistogram, name, unit, help, level, tags, tag_count});
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

SONDE_EXPORT void sonde_observe_slow_(sonde_metric_t* metric, double value) {
  sonde::client::Observe(metric->histogram, value);
}

SONDE_EXPORT void sonde_finalize(void) {
  sonde::client::ClearError();
  {
    const sonde::client::Lock lock;
    sonde::client::Detach();
  }
  sonde::client::Finish(SONDE_OK, "sonde_finalize");
}

SONDE_EXPORT int sonde_status(void) { return sonde::client::ThreadStatus(); }

SONDE_EXPORT const char* sonde_error(void) {
  const char* const words = sonde::client::LastError();
  return *words == '\0' ? sonde_strerror(sonde::client::ThreadStatus()) : words;
}

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
      return "a name, tag, text, level or value that is not allowed; see sonde.h";
    case SONDE_CONFLICT:
      return "a metric of this name and these tags exists with another type";
    case SONDE_LEVEL:
      return "not recorded at the step's telemetry level";
    case SONDE_LIMIT:
      return "too many metrics or phases in this process";
    case SONDE_SYSTEM:
      return "the operating system gave no memory or descriptor";
    case SONDE_FINALIZED:
      return "sonde_finalize was called before";
    default:
      return "not a code of sonde.h";
  }
}
