#include "web/source/step_series.h"

#include <fmt/core.h>

#include <utility>

namespace sonde::web {

void SeriesNames::Add(const Series& series) {
  metrics.insert(series.metric.name);
  for (const auto& [key, value] : series.tags.pairs()) {
    keys.insert(key);
    values.insert(value);
  }
}

void StepSeries::Names(NamesCallback callback) const {
  ListSeries(
      "", kMaxListed + 1, [callback = std::move(callback)](const Result<std::vector<Series>>& all) {
        if (!all.ok()) return callback(all.status());
        if (all->size() > kMaxListed) {
          return callback(
              Status(Code::kLimit, fmt::format("names are looked for in {} series at most, and "
                                               "there are more",
                                               kMaxListed)));
        }
        SeriesNames names;
        for (const Series& one : *all) names.Add(one);
        callback(std::move(names));
      });
}

void StepSeries::QueryForPart(const QuerySpec& /*spec*/, const QueryGrid& /*grid*/,
                              PartCallback callback) const {
  callback(Status(Code::kNotFound,
                  "parts of answers are given by the head of a running step; see /api/query"));
}

void StepSeries::Notes(Nanos /*first*/, Nanos /*last*/, NotesCallback callback) const {
  callback({});
}

void StepSeries::ReadLive(const JobStep& id, const IsWanted& /*wanted*/, Nanos /*after*/,
                          size_t /*limit*/, RowsCallback callback) const {
  callback(Status(Code::kNotFound, "there is no step " + id.ToString() + " here"));
}

}  // namespace sonde::web
