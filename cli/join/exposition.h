// Reads an exporter's answer: Prometheus' text format 0.0.4 and OpenMetrics 1.0, which differ
// little, in one pass over the text.
//
// Nothing in it is trusted: a wrong line is an error that names the line, and no sample is
// made up. Time stamps and exemplars are passed over: a value counts for the tick after its
// scrape.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/metric.h"
#include "core/status.h"

namespace sonde::join {

// One line with a value. Texts point into the exposition, but for values with escapes.
struct Sample {
  std::string_view series;  // name and labels as in the text: the same for the same series
  double value = 0;
};

// What a series is, worked out when it is first seen.
struct Meaning {
  std::string_view name;
  std::vector<std::pair<std::string, std::string>> labels;  // unescaped, in their order
  MetricType type = MetricType::kGauge;  // buckets, counts and sums of histograms are counters
  std::string help;
  std::string unit;
};

class Exposition {
 public:
  static constexpr size_t kMaxLine = 65536;

  explicit Exposition(std::string_view text) : rest_(text) {}

  // The next sample; nothing at the end. After an error there are no more samples.
  Result<std::optional<Sample>> Next();
  // Of a sample that Next has given; the lines about its family were read before.
  Result<Meaning> Explain(const Sample& sample) const;

 private:
  enum class Kind : unsigned char { kOther, kCounter, kHistogram, kSummary };
  struct Family {
    Kind kind = Kind::kOther;
    std::string_view help;  // with escapes
    std::string_view unit;
  };

  Status Comment(std::string_view line);
  Result<Sample> ParseSample(std::string_view line) const;
  const Family* FamilyOf(std::string_view name, MetricType* type) const;
  Status Wrong(std::string_view what) const;

  std::string_view rest_;
  size_t line_ = 0;
  std::unordered_map<std::string_view, Family> families_;
};

}  // namespace sonde::join
