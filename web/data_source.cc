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

Result<std::vector<StepInShort>> DataSource::StepsOf(const std::string& job, Nanos now) const {
  const Result<Profile> profile = GetProfile(JobStep::Parse(job));
  if (!profile.ok()) return profile.status();
  const JobDescription& d = profile->job;
  return std::vector<StepInShort>{{"", d.id, d.name, d.state, d.start, d.end, d.expected_nodes,
                                   d.expected_tasks, d.tags, Summarize(*profile, {}, now)}};
}

Result<UserTags> DataSource::ChangeTags(const JobStep& id, const UserTags&,
                                        const std::vector<std::string>&) const {
  return Status(Code::kBusy, id.ToString() +
                                 " is running; its tags can be changed when it has ended, "
                                 "with 'sonde tag' or at 'sonde serve'");
}

void DataSource::Compare(const std::vector<std::string>&, const std::string&,
                         CompareCallback callback) const {
  callback(Status(Code::kNotFound,
                  "runs are compared when they have ended, by 'sonde diff' or at 'sonde serve'"));
}

}  // namespace sonde::web
