// An exporter that a step is to scrape: [http://]HOST[:PORT][/path].
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

// Between scrapes.
inline constexpr Nanos kMinScrapePeriod = 100 * kMillisecond;
inline constexpr Nanos kMaxScrapePeriod = 3600 * kSecond;

// "5", "500ms"; a bare number is seconds.
Result<Nanos> ParseScrapePeriod(std::string_view text);

// A target on its way to a node: URL and milliseconds, apart by a blank. kCorrupt for anything
// else.
std::string EncodeScrape(const ScrapeTarget& target);
Result<ScrapeTarget> DecodeScrape(std::string_view text);

// The port is 80 with http:// and must be named without; the path is /metrics unless one is named.
// kInvalid says what was expected.
Result<ScrapeTarget> ParseScrapeTarget(std::string_view text);

}  // namespace sonde::web
