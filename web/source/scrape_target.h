// An exporter that a step scrapes: [http://]HOST[:PORT][/path].
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"

namespace sonde::web {

struct ScrapeTarget {
  std::string host;  // a name or an address; IPv6 without its brackets
  std::string port;
  std::string path;  // begins with '/'; with a query, if there is one
  Nanos every = kSecond;

  // HOST:PORT, as Prometheus labels it.
  std::string Instance() const;
  std::string Url() const;
};

// The time between scrapes.
inline constexpr Nanos kMinScrapePeriod = 100 * kMillisecond;
inline constexpr Nanos kMaxScrapePeriod = 3600 * kSecond;

// "500ms", "5s"; a bare number is milliseconds, as in metric-proxy.
Result<Nanos> ParseScrapePeriod(std::string_view text);

// A target as it is sent to a node: URL and milliseconds, with a blank between. kCorrupt for any
// other text.
std::string EncodeScrape(const ScrapeTarget& target);
Result<ScrapeTarget> DecodeScrape(std::string_view text);

// The port is 80 with http:// and is required without it; the path is /metrics unless one is given.
// kInvalid says what was expected.
Result<ScrapeTarget> ParseScrapeTarget(std::string_view text);

}  // namespace sonde::web
