// A series in the form that is sent on, and its samples.
//
// A line has the name and the labels that /metrics gives it: characters that Prometheus does not
// accept become '_', `job` is JOB.STEP, `host` is the node's name.
//
// Thread safety: values.
#pragma once

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/metric.h"
#include "forward/formats/destination.h"

namespace sonde::forward {

struct Line {
  std::string name;
  Metric metric;     // name as measured
  Tags labels;       // without the name
  std::string head;  // text that an Encoder puts before every sample, or series
};

struct Sample {
  Nanos time;
  double value;
};

// Samples of one line in the order of time.
struct Run {
  const Line* line;
  std::span<const Sample> samples;
};
using Runs = std::vector<Run>;
size_t CountSamples(std::span<const Run> runs);

// `suffix` is appended to the metric's name; characters that Prometheus does not accept become '_'.
Line MakeLine(const Series& series, std::string_view suffix, const JobDescription& job,
              const Destination& destination);

// Whole milliseconds, rounded up, so that the last row of a step, at any time after a tick, does
// not get that tick's time.
constexpr int64_t ToMillis(Nanos time) { return (time + kMillisecond - 1) / kMillisecond; }

// The shortest text that still differs from all other values.
template <typename T>
void AppendNumber(T value, std::string& out) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

}  // namespace sonde::forward
