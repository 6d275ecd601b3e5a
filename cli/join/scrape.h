// One scrape of an exporter, or of a metric-proxy.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "web/source/scrape_target.h"

namespace sonde::join {

enum class Kind : uint8_t { kPrometheus, kProxy };
std::string_view ToString(Kind kind);  // "Prometheus", "Proxy", as metric-proxy names them

struct Scraped {
  Kind kind = Kind::kPrometheus;
  std::string text;  // an exposition, in either format; of a proxy made from its JSON
};

// kTimeout, kUnavailable, kLimit for more than `max_bytes`, or kCorrupt for an answer that is not
// HTTP, or no JSON of a proxy's where it begins like JSON.
Result<Scraped> Scrape(const web::ScrapeTarget& target, Nanos timeout, size_t max_bytes);

struct FirstLimits {
  Nanos each = 0;      // of one request
  Nanos together = 0;  // of all that are needed to find the values
  size_t max_bytes = 0;
};
struct Found {
  web::ScrapeTarget target;
  Scraped scraped;
};
// The first scrape, which finds where the values of a target are: a metric-proxy has them below
// /job, and is known by a page and by what it has there, since there are exporters that answer any
// path. A target with a path of its own stays as it is. A target that is silent is not asked again.
// Errors as of Scrape.
Result<Found> Find(const web::ScrapeTarget& target, const FirstLimits& limits);

}  // namespace sonde::join
