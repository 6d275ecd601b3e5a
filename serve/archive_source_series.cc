// Questions about series over the steps of an archive; queries are in step_queries.h.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "profiles/model/shown_series.h"
#include "profiles/select/select.h"
#include "series/block/thin.h"
#include "series/query/steps.h"
#include "series/store/task_ranks.h"
#include "serve/archive_source.h"

namespace sonde::serve {
namespace {

using query_steps::kJobTag;
constexpr size_t kAskedFirst = 8;

// Adds the names of a node's series, without ranks. How many ranks the node has; 0: no tasks.
uint64_t AddSchema(const Schema& schema, web::SeriesNames& names) {
  uint64_t ranks = 0;
  for (const Series& series : schema.series()) {
    if (IsExtreme(series)) continue;
    const std::string* task = series.tags.Find(kTaskTag);
    const char* const end = task == nullptr ? nullptr : task->data() + task->size();
    uint32_t rank = 0;
    if (task == nullptr || std::from_chars(task->data(), end, rank).ptr != end) {
      names.Add(series);
      continue;
    }
    ranks = std::max<uint64_t>(ranks, uint64_t{rank} + 1);
    Series without = series;
    without.tags.Erase(kTaskTag);
    names.Add(without);
  }
  return ranks;
}

}  // namespace

Result<std::vector<Series>> ArchiveSource::SeriesOf(const ProfileEntry& entry,
                                                    const RunningHeads::Profiles& told,
                                                    const std::string& metric, size_t limit) const {
  const auto is_asked = [&](const Metric& one) { return metric.empty() || one.name == metric; };
  const auto profile = told.find(entry.key);
  if (profile == told.end()) {
    return archive_->AllSeries(entry.key, SeriesScope::kNodes, SeriesWanted(is_asked, nullptr),
                               limit);
  }
  std::vector<Series> all;
  for (const FootprintEntry& one : profile->second.footprint) {
    if (!is_asked(one.series.metric)) continue;
    for (const NodeInfo& node : profile->second.job.nodes) {
      if (all.size() >= limit) return all;
      if (node.host.empty()) continue;
      all.push_back(one.series);
      all.back().tags.Set("host", node.host);
    }
  }
  return all;
}

Task<Result<std::vector<Series>>> ArchiveSource::DoListSeries(std::string metric,
                                                              size_t limit) const {
  const Result<Steps> entries = archive_->ListWithRunning(kListedSteps);
  if (!entries.ok()) co_return entries.status();
  // Mostly one of the newest steps has it: the heads of others are asked only if none has.
  size_t asked = std::min(entries->size(), kAskedFirst);
  const auto rest = entries->begin() + static_cast<ptrdiff_t>(asked);
  RunningHeads::Profiles told = co_await heads_.GetProfiles({entries->begin(), rest});
  std::vector<Series> list;
  for (size_t i = 0; i < entries->size(); ++i) {
    if (i == asked) {
      told.merge(co_await heads_.GetProfiles({rest, entries->end()}));
      asked = entries->size();
    }
    const ProfileEntry& entry = (*entries)[i];
    if (list.size() == limit) co_return list;
    Result<std::vector<Series>> series = SeriesOf(entry, told, metric, limit - list.size());
    // A step that cannot be read must not hide the others.
    if (!series.ok()) continue;
    for (Series& one : *series) {
      one.tags.Set(kJobTag, entry.job.id.ToString());
      list.push_back(std::move(one));
    }
  }
  co_return list;
}

void ArchiveSource::ListSeries(std::string_view metric, size_t limit,
                               SeriesCallback callback) const {
  workers_.Begin("list series", std::move(callback), DoListSeries(std::string(metric), limit));
}

// Each series once, and the hosts and ranks by themselves: together they would be very many.
void ArchiveSource::AddNames(const ProfileEntry& entry, const RunningHeads::Profiles& told,
                             web::SeriesNames& names) const {
  const auto profile = told.find(entry.key);
  const JobDescription& job = profile == told.end() ? entry.job : profile->second.job;
  uint64_t ranks = 0;
  bool any = false;
  if (profile == told.end()) {
    std::map<uint64_t, uint64_t> ranks_of;  // by schema
    const Status read =
        archive_->ReadShapes(entry.key, SeriesScope::kNodes, [&](const StoredShape& shape) {
          const auto [of, is_new] = ranks_of.try_emplace(shape.schema->id(), 0);
          if (is_new) of->second = AddSchema(*shape.schema, names);
          if (of->second > 0) ranks = std::max(ranks, FirstRankOf(shape.group) + of->second);
          any |= shape.schema->size() > 0;
          return true;
        });
    if (!read.ok()) return;
  } else {
    for (const FootprintEntry& one : profile->second.footprint) names.Add(one.series);
    any = !profile->second.footprint.empty() && !job.nodes.empty();
    ranks = job.expected_tasks;  // the head has a series of all of them
  }
  if (!any) return;
  names.keys.insert({"host", std::string(kJobTag)});
  names.values.insert(entry.job.id.ToString());
  for (uint32_t node = 0; node < job.nodes.size(); ++node) {
    names.values.insert(HostOfNode(job, node));
  }
  if (ranks > 0) names.keys.emplace(kTaskTag);
  ranks = std::min<uint64_t>(ranks, web::kMaxListed);
  for (uint64_t rank = 0; rank < ranks; ++rank) names.values.insert(std::to_string(rank));
}

// Every query asks for these names, and those of finished steps change only with their list.
Task<Result<web::SeriesNames>> ArchiveSource::DoNames() const {
  Selection newest;
  newest.limit = kListedSteps;
  const auto listed = archive_->Select(newest, Clock::System().Now());
  if (!listed.ok()) co_return listed.status();
  std::vector<std::string> finished;
  Steps live;
  std::string which;
  for (const ListedProfile& one : *listed) {
    if (one.live) {
      Result<ProfileEntry> entry = archive_->Entry(one.key);
      if (entry.ok()) live.push_back(*std::move(entry));
      continue;
    }
    finished.push_back(one.key);
    // A step that went on after it was thought lost has another card.
    which.append(one.key).append(1, '\0').append(one.card);
  }
  // Those that have run for longer than the newest ones.
  Result<Steps> running = archive_->ListWithRunning(0);
  if (!running.ok()) co_return running.status();
  std::erase_if(*running, [&](const ProfileEntry& step) {
    return std::any_of(live.begin(), live.end(),
                       [&](const ProfileEntry& one) { return one.key == step.key; });
  });
  std::move(running->begin(), running->end(), std::back_inserter(live));
  std::shared_ptr<const web::SeriesNames> known;
  {
    const std::lock_guard lock(mutex_);
    if (named_ == which) known = names_;
  }
  if (!known) {
    auto made = std::make_shared<web::SeriesNames>();
    for (const std::string& key : finished) {
      const Result<ProfileEntry> entry = archive_->Entry(key);
      if (entry.ok()) AddNames(*entry, {}, *made);
    }
    known = std::move(made);
    const std::lock_guard lock(mutex_);
    named_ = std::move(which);
    names_ = known;
  }
  const RunningHeads::Profiles told = co_await heads_.GetProfiles(live);
  web::SeriesNames names = *known;
  for (const ProfileEntry& entry : live) AddNames(entry, told, names);
  co_return names;
}

void ArchiveSource::Names(NamesCallback callback) const {
  workers_.Begin("list names", std::move(callback), DoNames());
}

void ArchiveSource::Query(const QuerySpec& spec, Callback callback) const {
  workers_.Begin("evaluate a query", std::move(callback), queries_.Evaluate(spec),
                 Workers::Length::kLong);
}

Task<std::vector<web::Note>> ArchiveSource::DoNotes(Nanos first, Nanos last) const {
  std::vector<web::Note> notes;
  Result<Steps> entries = archive_->ListWithRunning(kListedSteps);
  if (!entries.ok()) co_return notes;
  std::erase_if(*entries, [&](const ProfileEntry& entry) {
    return entry.job.start > last || (entry.job.end != 0 && entry.job.end < first);
  });
  // Finished ones are left out before running ones, the oldest first.
  std::stable_partition(entries->begin(), entries->end(),
                        [](const ProfileEntry& entry) { return entry.running; });
  const size_t left_out = entries->size() - std::min(entries->size(), kNotedSteps);
  entries->resize(entries->size() - left_out);
  Steps unknown;
  for (const ProfileEntry& entry : *entries) {
    if (!KnownMoments(entry.key)) unknown.push_back(entry);
  }
  const RunningHeads::Profiles told = co_await heads_.GetProfiles(unknown);
  for (const ProfileEntry& entry : *entries) {
    std::vector<web::Note> more = web::NotesOf(entry.job, MomentsOf(entry, told), first, last);
    std::move(more.begin(), more.end(), std::back_inserter(notes));
  }
  web::Bound(left_out, first, notes);
  co_return notes;
}

void ArchiveSource::Notes(Nanos first, Nanos last, NotesCallback callback) const {
  workers_.Begin("read notes", std::move(callback), DoNotes(first, last));
}

std::optional<StepMoments> ArchiveSource::KnownMoments(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto known = moments_.find(key);
  if (known == moments_.end()) return std::nullopt;
  return known->second;
}

StepMoments ArchiveSource::MomentsOf(const ProfileEntry& entry,
                                     const RunningHeads::Profiles& told) const {
  constexpr size_t kMaxKept = 256;
  if (std::optional<StepMoments> known = KnownMoments(entry.key)) return *std::move(known);
  const auto at = told.find(entry.key);
  Result<Profile> profile = at == told.end() ? archive_->Load(entry.key) : at->second;
  if (!profile.ok()) return {};
  profile->moments.distributions.clear();
  if (entry.live) return profile->moments;
  const std::lock_guard lock(mutex_);
  if (moments_.size() >= kMaxKept) moments_.clear();
  return moments_[entry.key] = std::move(profile->moments);
}

Task<Result<web::LiveRows>> ArchiveSource::DoReadLive(JobStep id) const {
  const Result<Profile> profile = co_await DoGetProfile(std::move(id));
  if (!profile.ok()) co_return profile.status();
  web::LiveRows none;
  none.running = profile->job.end == 0;
  co_return none;
}

void ArchiveSource::ReadLive(const JobStep& id, const IsWanted& /*wanted*/, Nanos /*after*/,
                             size_t /*limit*/, RowsCallback callback) const {
  workers_.Begin("look for a step", std::move(callback), DoReadLive(id));
}

}  // namespace sonde::serve
