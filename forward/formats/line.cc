#include "forward/formats/line.h"

#include "core/prometheus_text.h"

namespace sonde::forward {

size_t CountSamples(std::span<const Run> runs) {
  size_t n = 0;
  for (const Run& run : runs) n += run.samples.size();
  return n;
}

Line MakeLine(const Series& series, std::string_view suffix, const JobDescription& job,
              const Destination& destination) {
  Line line;
  line.name = prometheus::Name(series.metric.name + std::string(suffix));
  line.metric = series.metric;
  line.labels = series.tags;
  for (const auto& [key, value] : destination.labels.pairs()) line.labels.Set(key, value);
  if (!job.cluster.empty()) line.labels.Set("cluster", job.cluster);
  if (!job.user.empty()) line.labels.Set("user", job.user);
  line.labels.Set("job", job.id.ToString());
  return line;
}

}  // namespace sonde::forward
