#include "profiles/model/presence.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <limits>
#include <optional>
#include <set>

#include "profiles/json/kept.h"

namespace sonde {
namespace {

// What later versions may keep.
constexpr size_t kMaxRead = size_t{1} << 16;
constexpr size_t kMaxIntervals = size_t{1} << 20;

// The object of a run, for what is kept of it.
std::string NameOf(const PresenceRun& run) { return "presence " + std::to_string(run.first); }

PresenceRun ReadRun(const boost::json::value& value, std::string& error, KeptMembers& kept) {
  JsonFields fields(value, error, "presence");
  PresenceRun run;
  fields.Read("first", run.first, Nanos{0});
  fields.Read("nodes", run.nodes);
  fields.Read("joined", run.joined);
  fields.Read("left", run.left);
  fields.Read("back_from", run.back_from, Nanos{0}, run.first);
  fields.Keep(kept, NameOf(run));
  return run;
}

// The run in which rows of that time are; nullptr before the first.
const PresenceRun* RunAt(const std::vector<PresenceRun>& runs, Nanos time) {
  const auto behind =
      std::upper_bound(runs.begin(), runs.end(), time,
                       [](Nanos t, const PresenceRun& run) { return t < run.first; });
  return behind == runs.begin() ? nullptr : &*(behind - 1);
}

Nanos TickAfter(Nanos time, Nanos period) { return (time / period + 1) * period; }

// The runs of one part, and the time at which they are over: those of the part that ends last never
// are.
struct Told {
  const std::vector<PresenceRun>* runs;
  Nanos over;
  Nanos own_from;  // its writer saw the runs from here on itself; INT64_MAX: that is not known
};

Nanos OwnFrom(const Part& part) {
  const Nanos from = part.profile.job.presence_from;
  return part.id.acting && from == 0 ? std::numeric_limits<Nanos>::max() : from;
}

// What all that tell of this time say; nothing if they differ, or none does. Runs of all nodes
// there are have the same nodes. Runs of fewer that two heads saw, each with nodes of its own, may
// have the same numbers and are of different nodes.
std::optional<PresenceRun> SaidOf(Nanos time, const std::vector<Told>& parts, size_t all) {
  std::optional<PresenceRun> said;
  bool seen = false;
  for (const Told& part : parts) {
    const PresenceRun* run = time < part.over ? RunAt(*part.runs, time) : nullptr;
    if (run == nullptr) continue;
    const bool sees = run->first >= part.own_from;
    const bool of_all = said && said->nodes == run->nodes && run->nodes == all;
    const bool same = !said || of_all || (*said == *run && !(seen && sees));
    if (!same) return {};
    seen = seen || sees;
    // Of the same nodes, that which begins now says who came.
    if (!said || run->first == time) said = *run;
  }
  return said;
}

// The rows before are not known, so somebody may be back who was there before those.
PresenceRun AfterMixed(PresenceRun run, Nanos time, const PresenceRun& mixed, Nanos period) {
  const Nanos before = std::max<Nanos>(mixed.first - period, 1);
  const Nanos since = run.back_from == 0 ? before : std::min(run.back_from, before);
  return {time, run.nodes, run.nodes, mixed.nodes, since};
}

}  // namespace

void PutTogether(const PresenceRun& next, PresenceRun& run) {
  const auto add = [](uint32_t a, uint32_t b) {
    return a + std::min(b, std::numeric_limits<uint32_t>::max() - a);
  };
  run.nodes = std::min(run.nodes, next.nodes);
  run.joined = add(run.joined, next.joined);
  run.left = add(run.left, next.left);
  run.back_from = run.first;
}

void LimitPresence(std::vector<PresenceRun>& runs) {
  if (runs.size() <= kMaxPresenceRuns) return;
  const auto end = runs.begin() + 1 + static_cast<std::ptrdiff_t>(runs.size() - kMaxPresenceRuns);
  for (auto at = runs.begin() + 1; at != end; ++at) PutTogether(*at, runs.front());
  runs.erase(runs.begin() + 1, end);
}

// --- JSON ---

void WritePresence(JsonWriter& w, const std::vector<PresenceRun>& runs, const KeptMembers& kept) {
  if (runs.empty()) return;
  w.Key("presence").BeginArray();
  for (const PresenceRun& run : runs) {
    w.BeginObject().Field("first", run.first).Field("nodes", run.nodes);
    if (run.joined != 0) w.Field("joined", run.joined);
    if (run.left != 0) w.Field("left", run.left);
    if (run.back_from != 0) w.Field("back_from", run.back_from);
    WriteKept(w, kept, NameOf(run));
    w.EndObject();
  }
  w.EndArray();
}

std::vector<PresenceRun> ReadPresence(JsonFields& fields, std::string& error, KeptMembers& kept) {
  std::vector<PresenceRun> runs;
  const boost::json::array* values = fields.Array("presence", kMaxRead);
  if (values == nullptr) return runs;
  runs.reserve(values->size());
  for (const boost::json::value& value : *values) {
    const PresenceRun run = ReadRun(value, error, kept);
    if (!runs.empty() && run.first <= runs.back().first) {
      fields.Wrong("presence", "runs in the order of time");
      break;
    }
    runs.push_back(run);
  }
  LimitPresence(runs);
  return runs;
}

// --- Over time ---

std::vector<std::pair<Nanos, uint32_t>> NodesOver(const JobDescription& job, Nanos start, Nanos end,
                                                  Nanos interval) {
  constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();
  std::vector<std::pair<Nanos, uint32_t>> changes;
  if (end < start || interval <= 0) return changes;
  const auto count = static_cast<size_t>((end - start) / interval) + 1;
  if (count > kMaxIntervals) return changes;
  std::vector<uint32_t> fewest(count, kNoRow);
  const std::vector<PresenceRun>& runs = job.presence;
  for (size_t i = 0; i < runs.size(); ++i) {
    // Of the last run it is not told how far it goes.
    Nanos last = i + 1 < runs.size() ? runs[i + 1].first - job.period : end;
    if (i + 1 == runs.size() && job.end != 0) last = std::min(last, job.end - 1);
    last = std::min(std::max(last, runs[i].first), end);
    if (last < start || runs[i].first > end) continue;
    const auto from = static_cast<size_t>(std::max<Nanos>(runs[i].first - start, 0) / interval);
    const auto to = static_cast<size_t>((last - start) / interval);
    for (size_t n = from; n <= to; ++n) fewest[n] = std::min(fewest[n], runs[i].nodes);
  }
  for (size_t n = 0; n < count; ++n) {
    if (fewest[n] == kNoRow || (!changes.empty() && changes.back().second == fewest[n])) continue;
    changes.emplace_back(start + static_cast<Nanos>(n) * interval, fewest[n]);
  }
  return changes;
}

// --- Of several parts ---

std::vector<PresenceRun> MergePresence(const std::vector<Part>& parts) {
  std::vector<Told> told;
  std::set<Nanos> changes;
  size_t all = 0;
  Nanos end = 0;
  for (const Part& part : parts) end = std::max(end, part.profile.job.end);
  for (const Part& part : parts) {
    const JobDescription& job = part.profile.job;
    all = std::max(all, job.nodes.size());
    if (job.presence.empty() && job.end <= job.start) continue;  // it has no rows
    if (job.presence.empty()) return {};
    const bool is_last = job.end == end;
    told.push_back({&job.presence,
                    is_last ? std::numeric_limits<Nanos>::max() : TickAfter(job.end, job.period),
                    OwnFrom(part)});
    for (const PresenceRun& run : job.presence) changes.insert(run.first);
    if (!is_last) changes.insert(told.back().over);
  }
  if (told.size() == 1) return *told.front().runs;
  std::vector<PresenceRun> merged;
  for (const Nanos time : changes) {
    const bool was_mixed = !merged.empty() && merged.back().IsMixed();
    const auto said = SaidOf(time, told, all);
    if (!said) {
      if (!was_mixed) merged.push_back({time, 0, 0, 0, time});
    } else if (was_mixed && !said->IsMixed()) {
      const Nanos period = parts.front().profile.job.period;
      merged.push_back(AfterMixed(*said, time, merged.back(), period));
    } else if (said->first == time || merged.empty()) {
      merged.push_back(*said);
    }
  }
  LimitPresence(merged);
  return merged;
}

}  // namespace sonde
