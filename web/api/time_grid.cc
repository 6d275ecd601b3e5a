#include "web/api/time_grid.h"

#include <algorithm>
#include <string>
#include <utility>

#include "web/opentsdb/request.h"

namespace sonde::web {

Nanos EvenInterval(Nanos wanted, Nanos period) {
  Nanos interval = std::max<Nanos>((wanted + period - 1) / period, 1) * period;
  if (kSlowPeriod % period != 0) return interval;
  if (interval > kSlowPeriod) return (interval + kSlowPeriod - 1) / kSlowPeriod * kSlowPeriod;
  while (kSlowPeriod % interval != 0) interval += period;
  return interval;
}

Result<TimeGrid> ReadTimeGrid(const Context& context, const Request& request,
                              const JobDescription& job, const GridParam& many) {
  const Nanos now = context.clock->Now();
  TimeGrid grid;
  grid.start = job.start;
  grid.end = job.end != 0 ? job.end : now;
  for (const auto& [name, out] : {std::pair("start", &grid.start), std::pair("end", &grid.end)}) {
    const std::string* text = request.Param(name);
    if (text == nullptr) continue;
    const Result<Nanos> time = ParseOpenTsdbTime(*text, now);
    if (!time.ok()) return time.status().Within(name);
    *out = *time;
  }
  const Result<uint64_t> parts = NumberParam(request, many.name, many.usual, many.least, many.most);
  if (!parts.ok()) return parts.status();
  if (grid.end <= grid.start) return Status(Code::kInvalid, "end must lie after start");
  const Nanos period = std::max(job.period, kMinPeriod);
  grid.interval = EvenInterval((grid.end - grid.start) / static_cast<Nanos>(*parts), period);
  grid.parts = *parts;
  return grid;
}

}  // namespace sonde::web
