// What a metric is.
//
// A metric is declared once, where it is collected: name, unit, type, level, reduction, help.
// Documentation, dashboards, endpoints and the report are made from the declaration. A series is a
// metric with tags: one network device, one task, one node.
//
// Names follow the conventions of Prometheus, and node_exporter's names are used where it has one:
// base units (seconds, bytes), the unit in the name, counters end in _total.
//
// Counters count from the start of the step: a machine's earlier count is subtracted when a series
// is first read, so a sum over nodes covers this step alone.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/text/names.h"

namespace sonde {

// Values written to disk and to the wire: never change them.
enum class MetricType : uint8_t {
  kGauge = 0,
  kCounter = 1,
  kHistogram = 2,
  kUnknown = 255,  // another number that was read is kept and means the same
};
constexpr bool IsKnown(MetricType type) { return type <= MetricType::kHistogram; }
// Whether its values only rise. Those of an unknown type are shown as they are.
constexpr bool IsCounting(MetricType type) {
  return type == MetricType::kCounter || type == MetricType::kHistogram;
}

// Which statistic of a reduced point is the number for the whole step.
// Values written to disk and to the wire: never change them.
enum class Reduction : uint8_t {
  kSum = 0,       // amounts: bytes used, seconds spent
  kMean = 1,      // intensities: load, share, temperature of a typical node
  kMin = 2,       // what is left: available memory
  kMax = 3,       // what must not be exceeded
  kUnknown = 15,  // another number that was read is kept and means the same
};
constexpr bool IsKnown(Reduction reduction) { return reduction <= Reduction::kMax; }

inline constexpr int kMinLevel = 0;
inline constexpr int kMaxLevel = 4;

// A declaration as it stands in a source's table.
struct MetricDecl {
  std::string_view name;
  std::string_view unit;  // "seconds", "bytes", "1" for a ratio or a count; see docs/metrics.md
  MetricType type;
  uint8_t level;
  Reduction reduction;
  std::string_view help;
  bool spread = false;
};

// The same declaration, with `spread` set.
constexpr MetricDecl WithSpread(MetricDecl decl) {
  decl.spread = true;
  return decl;
}

// A metric at run time; the application's own are made from what it registers.
struct Metric {
  std::string name;
  std::string unit;
  std::string help;
  MetricType type = MetricType::kGauge;
  uint8_t level = 1;
  Reduction reduction = Reduction::kSum;
  // Whether its percentiles over nodes and tasks are recorded at every tick: of a gauge's values,
  // of a counter's rates. This costs memory and bytes for each series, so only those metrics have
  // it whose distribution tells more than mean and extremes do.
  bool spread = false;

  Metric() = default;
  explicit Metric(const MetricDecl& d)
      : name(d.name),
        unit(d.unit),
        help(d.help),
        type(d.type),
        level(d.level),
        reduction(d.reduction),
        spread(d.spread) {}
  bool operator==(const Metric&) const = default;
};

// Sorted by key, keys unique.
class Tags {
 public:
  using Pair = std::pair<std::string, std::string>;

  Tags() = default;
  Tags(std::initializer_list<Pair> pairs);

  // Replaces the value if the key is there.
  void Set(std::string_view key, std::string_view value);
  void Erase(std::string_view key);
  // nullptr if there is no such key.
  const std::string* Find(std::string_view key) const;
  const std::vector<Pair>& pairs() const { return pairs_; }
  bool empty() const { return pairs_.empty(); }
  auto operator<=>(const Tags&) const = default;

 private:
  std::vector<Pair> pairs_;
};

struct Series {
  Metric metric;
  Tags tags;
  bool operator==(const Series&) const = default;
};

// name{key="value",...}: for people and as a key in maps.
std::string SeriesName(std::string_view metric, const Tags& tags);

// A metric's name: [a-zA-Z_:][a-zA-Z0-9_:.-]*, at most kMaxNameLength bytes.
Status CheckMetricName(std::string_view name);
// A tag's key is [a-zA-Z_][a-zA-Z0-9_]*, its value UTF-8 text without control characters, both 1 to
// kMaxNameLength bytes.
Status CheckTag(std::string_view key, std::string_view value);

std::string_view ToString(MetricType type);
std::string_view ToString(Reduction reduction);

}  // namespace sonde
