#include "daemon/head/answers/stored_series.h"

#include <fmt/core.h>

#include "core/log.h"
#include "profiles/archive/asked_series.h"
#include "series/query/steps.h"

namespace sonde::head {

Result<std::shared_ptr<const Archive>> ArchivedSeries::Opened() const {
  const std::lock_guard lock(mutex_);
  if (archive_ != nullptr) return archive_;
  Result<std::shared_ptr<const Archive>> opened = Archive::Open(path_);
  if (!opened.ok()) return opened;
  archive_ = *std::move(opened);
  archive_->OnDamage([](const std::string& what) {
    log::Warning("the archive, of which nodes that are gone are answered: {}", what);
  });
  return archive_;
}

Result<std::vector<SeriesData>> ArchivedSeries::Read(const QuerySpec& spec,
                                                     const std::set<std::string>& hosts) const {
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  const Result<std::shared_ptr<const Archive>> archive = Opened();
  if (!archive.ok()) return archive.status();
  const auto wanted = [&](const Tags& tags) {
    const std::string* host = tags.Find("host");
    return host != nullptr && hosts.contains(*host) && filter->Matches(spec.metric, tags);
  };
  const Earlier earlier = query_steps::HoldsCounters(spec) ? Earlier::kCounted : Earlier::kNone;
  Result<std::vector<SeriesData>> read =
      ReadAsked(**archive, key_, SeriesScope::kNodes, spec, wanted, DataRange(spec), earlier);
  if (!read.ok()) return read;
  size_t points = 0;
  for (const SeriesData& one : *read) points += one.points.size();
  if (points <= kMaxPoints) return read;
  return Status(
      Code::kLimit,
      fmt::format("the series of nodes that are gone have more than {} points there", kMaxPoints));
}

}  // namespace sonde::head
