#include "web/data_source.h"

#include <fmt/format.h>

namespace sonde::web {

void SeriesNames::Add(const Series& series) {
  metrics.insert(series.metric.name);
  for (const auto& [key, value] : series.tags.pairs()) {
    keys.insert(key);
    values.insert(value);
  }
}

Result<SeriesNames> DataSource::Names() const {
  const Result<std::vector<Series>> all = ListSeries("", kMaxListed + 1);
  if (!all.ok()) return all.status();
  if (all->size() > kMaxListed) {
    return Status(Code::kLimit, fmt::format("names are looked for in {} series at most, and there "
                                            "are more",
                                            kMaxListed));
  }
  SeriesNames names;
  for (const Series& one : *all) names.Add(one);
  return names;
}

}  // namespace sonde::web
