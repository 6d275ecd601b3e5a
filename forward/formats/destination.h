// Destinations to which series are sent, as sonde.conf and `sonde export --to` name them:
//
//   URL [option=value]...
//
// with the options scope=job|node, metrics=GLOB,..., node=GLOB,..., step=TIME, token_file=,
// password_file=, ca_file=, batch= and label.NAME=VALUE; docs/forwarding.md lists them all. In
// place of a URL there may be a file, FORMAT:PATH or PATH with a suffix that tells the format. The
// text holds no secret.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"

namespace sonde::forward {

// Part of records of sent samples (Destination::Id): never to change.
enum class Protocol : unsigned char {
  kPrometheus = 0,
  kInflux = 1,
  kOpenTsdb = 2,
  kOpenMetrics = 3,
  // Files only.
  kCsv = 4,
  kJsonLines = 5,
  kTrace = 6,
  kProfile = 7,
};
// Whether it is written to a file; the others go to receivers.
constexpr bool IsFile(Protocol protocol) { return protocol >= Protocol::kOpenMetrics; }
// Whether the format is written from tables (forward/formats/table.h).
constexpr bool IsTable(Protocol protocol) {
  return protocol >= Protocol::kCsv && protocol <= Protocol::kTrace;
}
// The ending of a file's name, ".csv", and the prefix of a path, "csv:".
std::string_view SuffixOf(Protocol protocol);
std::string_view PrefixOf(Protocol protocol);

inline constexpr size_t kMaxBatch = 100'000;

struct Destination {
  std::string name;  // from sonde.conf; "" for the command's
  Protocol protocol = Protocol::kPrometheus;
  std::string url;  // http or https; of a file its path, "-": standard output
  SeriesScope scope = SeriesScope::kReduced;
  std::vector<std::string> metrics;  // globs; one with '!' before it leaves out; none: all
  std::vector<std::string> nodes;    // globs of hosts, likewise
  Nanos step = 0;                    // one value for each such time; 0: all values
  std::string token_file;            // the first line is sent as the bearer token
  std::string password_file;         // the first line is user:password
  std::string ca_file;               // certificates that https trusts; "": those of the system
  size_t batch = 10'000;             // samples in a request
  Tags labels;                       // added to those of the series
  Nanos since = 0;                   // only rows from this time on
  Nanos until = INT64_MAX;

  // Differs for destinations that get different samples: 16 hexadecimal digits.
  std::string Id() const;
};

// kInvalid says what was expected.
Result<Destination> ParseDestination(std::string_view text);
// The same in two texts; the first may hold blanks, as paths do.
Result<Destination> ParseDestination(std::string_view url, std::string_view options);

// Whether `destination` takes a metric of that name, as it was measured.
bool Wants(const Destination& destination, std::string_view metric);
// Whether the destination takes series of that host.
bool WantsHost(const Destination& destination, std::string_view host);
// '*' is any text, '?' any character.
bool MatchesGlob(std::string_view glob, std::string_view text);

// The first line of a file that other users can neither read nor write; "" for "".
Result<std::string> ReadSecret(const std::string& path);

}  // namespace sonde::forward
