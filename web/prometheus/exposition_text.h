// Samples as the text that Prometheus scrapes: format 0.0.4 or OpenMetrics 1.0.
//
// In OpenMetrics a counter ends in _total, which is no part of its family's name; the text also has
// the time when the counter began, and the unit if the name ends in it. A counter with another name
// keeps that name and is of unknown type.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/metric.h"
#include "core/time.h"

namespace sonde::web {

enum class ExpositionFormat : uint8_t { kPlain, kOpenMetrics };

// The media type of an answer.
std::string_view ContentType(ExpositionFormat format);

// The form that a client accepts, by the header Accept of RFC 9110: OpenMetrics if the header names
// it and prefers nothing else, the text in all other cases.
ExpositionFormat ChooseFormat(std::string_view accept);

// Samples by metric; those of one metric are together.
class Exposition {
 public:
  // Characters that Prometheus does not accept in names become '_'. NaN is a missing value and is
  // passed over; of samples with the same labels the first stays. `began`: of counters, the time
  // when they were 0; 0 if that is not known.
  void Add(const Metric& metric, const Tags& labels, double value, Nanos began);

  std::string Format(ExpositionFormat format) const;

 private:
  struct Sample {
    double value = 0;
    Nanos began = 0;
  };
  struct Family {
    std::string help;
    std::string unit;
    MetricType type = MetricType::kGauge;
    std::map<std::string, Sample> samples;  // by labels
  };

  void FormatText(const std::string& name, const Family& family, std::string& out) const;
  void FormatOpenMetrics(const std::string& name, const Family& family, std::string& out) const;

  std::map<std::string, Family> families_;
};

}  // namespace sonde::web
