// sonde_set_past of sonde.h.
#include <errno.h>
#include <string.h>

#include "libclient/error.h"
#include "libclient/library.h"

namespace sonde::client {
namespace {

// Takes the mutex only while the ring grows.
int SetPast(const double* cell, double value, int64_t time) {
  if (const int code = AttachIfNeeded(); code != SONDE_OK) return code;
  const auto slot = reinterpret_cast<const Cell*>(cell) - library.segment.cell(0);
  const uint64_t ticket = Ring<Past>::Draw(library.segment);
  if (!library.past.HasPlace(ticket)) {
    const Lock lock;
    if (!library.past.Extend(library.segment, ticket)) {
      return Fail(SONDE_SYSTEM, "no memory for a value of the past: %s", strerror(errno));
    }
  }
  Ring<Past>::Write(library.segment, ticket,
                    {.sequence = 0,
                     .time = time,
                     .value = value,
                     .slot = static_cast<uint32_t>(slot),
                     .reserved = 0});
  return SONDE_OK;
}

}  // namespace
}  // namespace sonde::client

SONDE_EXPORT int sonde_set_past(sonde_metric_t* metric, double value, int64_t time_ns) {
  if (metric == nullptr || metric->cell == nullptr || !__builtin_isfinite(value)) return SONDE_OK;
  sonde::client::ClearError();
  const int code = sonde::client::SetPast(metric->cell, value, time_ns);
  return sonde::client::Finish(code, "sonde_set_past");
}
