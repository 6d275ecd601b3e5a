#include "profiles/model/parts.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/time.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/model/presence.h"

namespace sonde {
namespace {

constexpr std::string_view kHead = "head";
constexpr std::string_view kActing = "acting";
constexpr std::string_view kAgain = " again";

void AddOnce(std::vector<std::string>& notes, const std::string& note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

bool HasYielded(const Part& part) {
  const auto& notes = part.profile.job.notes;
  return std::any_of(notes.begin(), notes.end(),
                     [](const std::string& note) { return note.starts_with(kYieldedNote); });
}

// A head that nobody came back to has finished its part, and yet does not know the end.
bool KnowsEnd(const Part& part) {
  return part.finished() && part.profile.job.state != EndState::kLost;
}

// Parts that know the end first, then finished ones, then the head's part before acting heads',
// then later ends first.
bool Before(const Part& a, const Part& b) {
  if (KnowsEnd(a) != KnowsEnd(b)) return KnowsEnd(a);
  if (a.finished() != b.finished()) return a.finished();
  if (a.id.acting != b.id.acting) return b.id.acting;
  if (a.profile.job.end != b.profile.job.end) return a.profile.job.end > b.profile.job.end;
  return a.id.text < b.id.text;
}

void MergeNode(const NodeInfo& from, NodeInfo& into) {
  if (into.host.empty()) {
    into = from;
    return;
  }
  into.kept.Merge(from.kept);
  into.end_in_rows = std::max(into.end_in_rows, from.end_in_rows);
  if (from.joined != 0)
    into.joined = into.joined == 0 ? from.joined : std::min(into.joined, from.joined);
  const bool said_goodbye = from.left != 0 && !from.lost;
  const bool known = into.left != 0 && !into.lost;
  if (said_goodbye && known) {
    into.left = std::max(into.left, from.left);
  } else if (said_goodbye || (!known && from.left > into.left)) {
    into.left = from.left;
    into.lost = from.lost;
    into.note = from.note;
  }
}

void MergeNodes(const std::vector<NodeInfo>& from, std::vector<NodeInfo>& into) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) MergeNode(from[i], into[i]);
}

// The figure set last; of equal times the larger name, so that the order does not matter.
void MergeFigures(const std::vector<Figure>& from, std::vector<Figure>& into) {
  for (const Figure& figure : from) {
    const auto same = [&](const Figure& f) { return f.name == figure.name; };
    const auto at = std::find_if(into.begin(), into.end(), same);
    if (at == into.end()) {
      into.push_back(figure);
      continue;
    }
    const uint64_t count = at->count + figure.count;
    Figure other = figure;
    if (std::tie(figure.time, figure.value) > std::tie(at->time, at->value)) std::swap(*at, other);
    at->count = count;
    at->kept.Merge(other.kept);
  }
}

// A phase that some task has not left lasts as long as possible.
Nanos EndOf(const Phase& phase) {
  return phase.began > phase.ended ? std::numeric_limits<Nanos>::max() : phase.end;
}

// By begin; overlapping phases of one name become one.
std::vector<Phase> MergePhases(std::vector<Phase> all) {
  std::stable_sort(all.begin(), all.end(), [](const Phase& a, const Phase& b) {
    return std::tie(a.name, a.begin, a.end) < std::tie(b.name, b.begin, b.end);
  });
  std::vector<Phase> merged;
  for (const Phase& phase : all) {
    Phase* last = merged.empty() ? nullptr : &merged.back();
    if (last == nullptr || last->name != phase.name || EndOf(*last) < phase.begin) {
      merged.push_back(phase);
      continue;
    }
    if (*last == phase) continue;
    last->end = std::max(last->end, phase.end);
    last->began += phase.began;
    last->ended += phase.ended;
    last->pauses = std::min(last->pauses, phase.pauses);
    last->kept.Merge(phase.kept);
  }
  std::stable_sort(merged.begin(), merged.end(), [](const Phase& a, const Phase& b) {
    return std::tie(a.begin, a.name) < std::tie(b.begin, b.name);
  });
  return merged;
}

std::vector<Remark> MergeRemarks(std::vector<Remark> all) {
  std::stable_sort(all.begin(), all.end(), [](const Remark& a, const Remark& b) {
    return std::tie(a.first, a.text, a.last, a.count) < std::tie(b.first, b.text, b.last, b.count);
  });
  std::vector<Remark> merged;
  for (Remark& remark : all) {
    const auto same = [&](const Remark& r) {
      return r.text == remark.text && r.first == remark.first;
    };
    const auto at = std::find_if(merged.begin(), merged.end(), same);
    if (at == merged.end()) {
      merged.push_back(std::move(remark));
    } else {
      at->last = std::max(at->last, remark.last);
      at->count = std::max(at->count, remark.count);
      at->kept.Merge(remark.kept);
    }
  }
  return merged;
}

StepMoments MergeMoments(const std::vector<Part>& parts) {
  StepMoments merged;
  std::map<std::string, NamedSketch> sketches;
  for (const Part& part : parts) {
    const StepMoments& one = part.profile.moments;
    merged.phases.insert(merged.phases.end(), one.phases.begin(), one.phases.end());
    merged.remarks.insert(merged.remarks.end(), one.remarks.begin(), one.remarks.end());
    for (const NamedSketch& sketch : one.distributions) {
      std::string name = SeriesName(sketch.series.metric.name, sketch.series.tags);
      const auto [at, added] = sketches.try_emplace(std::move(name), sketch);
      if (!added) at->second.sketch.Merge(sketch.sketch);
    }
    merged.alarms.insert(merged.alarms.end(), one.alarms.begin(), one.alarms.end());
    merged.lost += one.lost;
    merged.left_out += one.left_out;
    merged.kept.Merge(one.kept);
    for (const auto& [name, kept] : one.kept_of_distributions) {
      merged.kept_of_distributions[name].Merge(kept);
    }
  }
  merged.phases = MergePhases(std::move(merged.phases));
  merged.remarks = MergeRemarks(std::move(merged.remarks));
  std::stable_sort(merged.alarms.begin(), merged.alarms.end(),
                   [](const RaisedAlarm& a, const RaisedAlarm& b) { return a.raised < b.raised; });
  for (auto& [name, sketch] : sketches) merged.distributions.push_back(std::move(sketch));
  return merged;
}

// If both values are unknown, so is the sum.
double Sum(double a, double b) { return std::isnan(a) ? b : (std::isnan(b) ? a : a + b); }

OwnCost MergeCost(const std::vector<Part>& parts) {
  OwnCost cost{std::nan(""), std::nan(""), std::nan(""), 0, "", {}};
  for (const Part& part : parts) {
    cost.cpu_seconds = Sum(cost.cpu_seconds, part.profile.cost.cpu_seconds);
    cost.bytes_sent = Sum(cost.bytes_sent, part.profile.cost.bytes_sent);
    cost.peak_node_memory = std::fmax(cost.peak_node_memory, part.profile.cost.peak_node_memory);
    if (cost.carriers.empty()) cost.carriers = part.profile.cost.carriers;
    cost.kept.Merge(part.profile.cost.kept);
  }
  return cost;
}

// What the writer of `before` told later includes what it told before, unless it was killed too
// early for that.
void TakeOver(const Part& before, Part& again) {
  Profile& profile = again.profile;
  AddOnce(profile.job.notes,
          "For a time another host took this step for abandoned, since its "
          "writer was silent.");
  profile.job.end = std::max(profile.job.end, before.profile.job.end);
  if (again.finished()) return;
  if (profile.moments.empty()) profile.moments = before.profile.moments;
  if (profile.job.figures.empty()) profile.job.figures = before.profile.job.figures;
}

// Leaves of the parts of one writer the last one.
void JoinContinued(std::vector<Part>& parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.id.text < b.id.text; });
  std::vector<Part> joined;
  for (Part& part : parts) {
    const bool continues = !joined.empty() && part.id.text.ends_with(kAgain) &&
                           part.id.text.substr(0, part.id.text.find(kAgain)) ==
                               joined.back().id.text.substr(0, joined.back().id.text.find(kAgain));
    if (continues) TakeOver(joined.back(), part);
    if (continues) joined.pop_back();
    joined.push_back(std::move(part));
  }
  parts = std::move(joined);
}

std::string KilledNote(const Part& part) {
  const std::string who = part.id.acting ? "The acting head on " + part.id.host : "The head";
  if (part.profile.job.end <= part.profile.job.start) {
    return who + " was killed before its first block was stored.";
  }
  return fmt::format("{} was killed: its record stops at {} with its last stored block.", who,
                     FormatTime(part.profile.job.end));
}

}  // namespace

PartId PartId::Make(bool acting, std::string_view host) {
  PartId id;
  id.acting = acting;
  id.host = host.empty() ? HostName() : std::string(host);
  id.text = fmt::format("{} {} {} {}", acting ? kActing : kHead, id.host, ::getpid(),
                        Clock::System().Now());
  return id;
}

PartId PartId::Again() const {
  PartId id = *this;
  id.text += kAgain;
  return id;
}

PartId PartId::Parse(std::string_view text) {
  PartId id;
  id.text = text.substr(0, kMaxPartId);
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return id;
  id.acting = text.substr(0, blank) == kActing;
  const std::string_view rest = text.substr(blank + 1);
  id.host = rest.substr(0, std::min(rest.find(' '), size_t{256}));
  return id;
}

Profile MergeParts(std::vector<Part> parts) {
  JoinContinued(parts);
  std::sort(parts.begin(), parts.end(), Before);
  Profile merged;
  merged.job = parts.front().profile.job;
  JobDescription& job = merged.job;
  if (!parts.front().finished()) job.state = EndState::kLost;
  for (size_t i = 1; i < parts.size(); ++i) {
    const JobDescription& one = parts[i].profile.job;
    job.end = std::max(job.end, one.end);
    if (!parts.front().finished()) job.exit_status = std::max(job.exit_status, one.exit_status);
    job.expected_nodes = std::max(job.expected_nodes, one.expected_nodes);
    job.coverage.skipped += one.coverage.skipped;
    MergeNodes(one.nodes, job.nodes);
    MergeFigures(one.figures, job.figures);
    AddExits(one.exits, job);
    job.exits_left_out += one.exits_left_out;
    if (!job.request) job.request = one.request;
    job.tags.insert(one.tags.begin(), one.tags.end());
    job.environment.insert(one.environment.begin(), one.environment.end());
    for (const std::string& note : one.notes) AddOnce(job.notes, note);
    job.kept.Merge(one.kept);
  }
  for (const Part& part : parts) {
    if (part.id.acting && part.finished()) {
      AddOnce(job.notes, "The daemon on " + part.id.host + " went on as acting head.");
    }
    if (!part.finished() && !HasYielded(part)) AddOnce(job.notes, KilledNote(part));
  }
  if (job.state == EndState::kLost) AddOnce(job.notes, "The end of the step is not known.");
  job.presence = MergePresence(parts);
  job.presence_from = 0;
  merged.moments = MergeMoments(parts);
  merged.cost = MergeCost(parts);
  for (const Part& part : parts) merged.kept.Merge(part.profile.kept);
  return merged;
}

uint64_t NodeTicks(const std::map<Nanos, double>& nodes_at) {
  double sum = 0;
  for (const auto& [time, nodes] : nodes_at) sum += nodes;
  return static_cast<uint64_t>(sum);
}

// A tick that fell into a node's registration is owed by the node only if it has a sample of it, as
// in the head's own count (daemon/head/record/coverage_count.h). A row says how many nodes it has,
// not which: no more are taken off than nodes registered then.
Coverage CoverageOf(const JobDescription& job, const std::map<Nanos, double>& nodes_at) {
  Coverage coverage;
  coverage.got = NodeTicks(nodes_at);
  coverage.skipped = job.coverage.skipped;
  const auto ticks = [&](Nanos from, Nanos to) {
    return to <= from ? 0 : static_cast<uint64_t>(to / job.period - from / job.period);
  };
  std::vector<Nanos> came;
  std::vector<Nanos> went;
  std::map<Nanos, uint64_t> first_ticks;  // of how many nodes
  for (const NodeInfo& node : job.nodes) {
    const Nanos from = std::max(job.start, node.joined);
    const Nanos to = std::max(from, node.left == 0 || node.lost ? job.end : node.left);
    came.push_back(from);
    went.push_back(to);
    const uint64_t owed = ticks(from, to);
    coverage.expected += owed + 1;  // and its last word
    if (owed > 0) ++first_ticks[(from / job.period + 1) * job.period];
  }
  std::sort(came.begin(), came.end());
  std::sort(went.begin(), went.end());
  const auto before = [](const std::vector<Nanos>& times, Nanos tick) {
    return std::lower_bound(times.begin(), times.end(), tick) - times.begin();
  };
  for (const auto& [tick, nodes] : first_ticks) {
    const auto row = nodes_at.find(tick);
    const auto owed = static_cast<double>(before(came, tick) - before(went, tick));
    const double missing = owed - (row == nodes_at.end() ? 0 : row->second);
    coverage.expected -=
        static_cast<uint64_t>(std::clamp(missing, 0.0, static_cast<double>(nodes)));
  }
  if (job.expected_nodes > job.nodes.size()) {
    coverage.expected += (job.expected_nodes - job.nodes.size()) * (ticks(job.start, job.end) + 1);
  }
  // What a node says that it has not taken was expected of it, whatever its times tell.
  coverage.expected = std::max(coverage.expected, coverage.got + coverage.skipped);
  return coverage;
}

}  // namespace sonde
