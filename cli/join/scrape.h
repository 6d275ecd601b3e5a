// One scrape of an exporter.
//
// Thread safety: a function without state.
#pragma once

#include <cstddef>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "web/source/scrape_target.h"

namespace sonde::join {

// The target's answer, in either format. kTimeout, kUnavailable, kLimit for more than `max_bytes`,
// or kCorrupt for an answer that is not HTTP.
Result<std::string> Scrape(const web::ScrapeTarget& target, Nanos timeout, size_t max_bytes);

}  // namespace sonde::join
