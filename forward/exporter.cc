#include "forward/exporter.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "forward/formats/columns.h"
#include "profiles/model/shown_series.h"
#include "series/store/past.h"

namespace sonde::forward {
namespace {

class FailuresInRecord : public Delivery::Witness {
 public:
  explicit FailuresInRecord(Record& record) : record_(record) {}
  void OnFailure(std::string_view why) override { (void)record_.Failed(why); }
  Status OnSplit() override { return {}; }

 protected:
  Record& record_;
};

// For a batch that has been begun in the record.
class InRecord final : public FailuresInRecord {
 public:
  using FailuresInRecord::FailuresInRecord;
  Status OnSplit() override { return record_.Split(); }
};

}  // namespace

Exporter::Exporter(const Archive& archive, std::string key, Delivery& delivery, Record& record,
                   OnProgress on_progress)
    : archive_(archive),
      key_(std::move(key)),
      delivery_(delivery),
      record_(record),
      on_progress_(std::move(on_progress)),
      ahead_(Clock::System().Now() - Clock::System().SinceBoot()) {}

Exporter::~Exporter() = default;

// Counters are read from the first row on: after a failure reading has to begin there again.
Status Exporter::Forget(Status failure) {
  streams_.clear();
  numbers_ = StepNumbers({});
  chunks_.clear();
  waiting_ = 0;
  marks_.clear();
  return failure;
}

Status Exporter::Pass() {
  if (record_.state().done) return {};
  const Result<ProfileEntry> entry = archive_.Entry(key_);
  if (!entry.ok()) return entry.status();
  numbers_.SetPresence(entry->job.presence);
  if (!record_.state().intent.empty()) {
    const Marks intent = record_.state().intent;
    const bool perhaps_there = !record_.state().split;
    Status sent = Read(*entry, &intent);
    if (sent.ok()) sent = Flush(perhaps_there);
    // Rows that no longer exist, such as thinned ones, are dropped with the others.
    (void)Forget({});
    if (!sent.ok()) return sent;
  }
  Status sent = Read(*entry, nullptr);
  if (sent.ok()) sent = Flush(false);
  if (!sent.ok()) return Forget(sent);
  // While the step is in live/ another part of it may come.
  if (entry->running || entry->live) return {};
  sent = SendStale(*entry);
  return sent.ok() ? record_.Done() : Forget(sent);
}

Status Exporter::Read(const ProfileEntry& entry, const Marks* only) {
  const Destination& to = delivery_.destination();
  const bool reduced = to.scope == SeriesScope::kReduced;
  RowsWanted wanted = RowsFor(entry.job, to);
  if (entry.running && reduced) {
    wanted.end = std::min(wanted.end, Clock::System().SinceBoot() + ahead_ - kSettle);
  }
  wanted.stream = [&, of_host = wanted.stream](uint32_t node, const std::string& group,
                                               const BlockInfo& info) {
    if (!of_host(node, group, info)) return false;
    // Of the past more may come of any time. Prometheus refuses what is older than what it has.
    const bool is_in_order = to.protocol == Protocol::kPrometheus;
    if (IsPastGroup(group) && (entry.running || is_in_order)) return false;
    const auto [at, is_new] = streams_.try_emplace({node, group});
    // The numbers of single nodes do not depend on earlier rows.
    if (is_new && !reduced) at->second.seen = record_.Mark(at->first);
    return info.last > at->second.seen;
  };
  return archive_.ReadRows(key_, to.scope, wanted,
                           [&](const StoredRow& row) { return AddRow(entry, row, only); });
}

Status Exporter::AddRow(const ProfileEntry& entry, const StoredRow& row, const Marks* only) {
  const Stream name(row.node, row.group);
  StreamState& stream = streams_[name];
  // Rows of the past may be of one time.
  if (row.time() < stream.seen || (row.time() == stream.seen && !IsPastGroup(row.group))) return {};
  const bool reduced = row.node == kReducedNode;
  // The node's name is not stored yet: next time.
  if (!reduced && entry.running &&
      (row.node >= entry.job.nodes.size() || entry.job.nodes[row.node].host.empty())) {
    return {};
  }
  stream.seen = row.time();
  Columns& columns = ColumnsOf(entry, row, stream);
  if (reduced) numbers_.Add(row, row_);
  const Destination& to = delivery_.destination();
  const Nanos mark = record_.Mark(name);
  if (row.time() < mark || (row.time() == mark && !IsPastGroup(row.group))) return {};
  if (row.time() < to.since) return {};
  if (only != nullptr) {
    const auto limit = only->find(name);
    if (limit == only->end() || row.time() > limit->second) return {};
  }
  if (only == nullptr && waiting_ > 0 && waiting_ + columns.wanted > to.batch) {
    SONDE_RETURN_IF_ERROR(Flush(false));
  }
  marks_[name] = row.time();
  if (columns.wanted == 0) return {};
  if (chunks_.empty() || chunks_.back().columns != &columns) chunks_.push_back({&columns, {}, {}});
  Chunk& chunk = chunks_.back();
  chunk.times.push_back(row.time());
  for (size_t i = 0; i < columns.lines.size(); ++i) {
    if (columns.lines[i] == nullptr) continue;
    const double value = reduced ? row_[i] : row.block.Column(i)[row.row];
    chunk.values.push_back(value);
  }
  waiting_ += columns.wanted;
  return {};
}

Exporter::Columns& Exporter::ColumnsOf(const ProfileEntry& entry, const StoredRow& row,
                                       StreamState& stream) {
  const auto [at, is_new] = stream.columns.try_emplace(row.schema->id());
  Columns& columns = at->second;
  if (!is_new) return columns;
  columns.lines = LinesOf(entry.job, row.node, row.group, *row.schema, delivery_.destination());
  for (const auto& line : columns.lines) {
    if (line == nullptr) continue;
    delivery_.encoder().Prepare(*line);
    ++columns.wanted;
  }
  return columns;
}

Runs Exporter::MakeRuns(std::vector<Sample>& storage) {
  storage.clear();
  storage.reserve(waiting_);  // so that runs can point into it
  Runs runs;
  const Encoder& encoder = delivery_.encoder();
  for (const Chunk& chunk : chunks_) {
    size_t column = 0;
    for (const auto& line : chunk.columns->lines) {
      if (line == nullptr) continue;
      const size_t begin = storage.size();
      int64_t millis = INT64_MIN;
      for (size_t row = 0; row < chunk.times.size(); ++row) {
        const double value = chunk.values[row * chunk.columns->wanted + column];
        if (std::isnan(value)) continue;
        if (!encoder.Takes(value)) {
          ++progress_.untold;
          continue;
        }
        // Of two rows within a millisecond most receivers have room for one. The later one counts,
        // as in answers to queries.
        const int64_t before = std::exchange(millis, ToMillis(chunk.times[row]));
        if (before == millis) {
          ++progress_.untold;
          storage.pop_back();
        }
        storage.push_back({chunk.times[row], value});
      }
      ++column;
      if (storage.size() == begin) continue;
      runs.push_back({line.get(), std::span(storage).subspan(begin)});
    }
  }
  return runs;
}

Status Exporter::Flush(bool perhaps_there) {
  if (marks_.empty()) return {};
  std::vector<Sample> storage;
  const Runs runs = MakeRuns(storage);
  SONDE_RETURN_IF_ERROR(SendBatch(runs, marks_, perhaps_there));
  for (const auto& [stream, time] : marks_) progress_.reached = std::max(progress_.reached, time);
  chunks_.clear();
  waiting_ = 0;
  marks_.clear();
  if (on_progress_) on_progress_(progress_);
  return {};
}

Status Exporter::SendBatch(const Runs& runs, const Marks& marks, bool perhaps_there) {
  SONDE_RETURN_IF_ERROR(record_.Begin(marks));
  InRecord witness(record_);
  const Result<Delivery::Outcome> outcome = delivery_.Send(runs, perhaps_there, witness);
  if (!outcome.ok()) {
    (void)record_.Failed(outcome.status().message());
    if (!perhaps_there && !delivery_.perhaps_there()) (void)record_.Cancel();
    return outcome.status();
  }
  progress_.taken += outcome->taken;
  progress_.refused += outcome->refused;
  return record_.Taken(outcome->taken, outcome->refused);
}

namespace {

// In the order of their heads, each once.
void SortLines(std::vector<Line>& lines) {
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.head < b.head; });
  lines.erase(std::unique(lines.begin(), lines.end(),
                          [](const Line& a, const Line& b) { return a.head == b.head; }),
              lines.end());
}

}  // namespace

std::vector<Line> Exporter::LinesOfStep() const {
  std::vector<Line> lines;
  for (const auto& [name, stream] : streams_) {
    for (const auto& [id, columns] : stream.columns) {
      for (const auto& line : columns.lines) {
        if (line != nullptr) lines.push_back(*line);
      }
    }
  }
  SortLines(lines);
  return lines;
}

// Whoever sent them: this object may not have seen their rows. A large step has too many lines to
// hold them all.
Status Exporter::ForEachHost(const ProfileEntry& entry,
                             const std::function<Status(std::vector<Line>)>& f) const {
  struct Shape {
    uint32_t node;
    std::string group;
    Schema::Ptr schema;
  };
  std::map<std::string, std::vector<Shape>> hosts;
  SONDE_RETURN_IF_ERROR(
      archive_.ReadShapes(key_, SeriesScope::kNodes, [&](const StoredShape& shape) {
        hosts[HostOfNode(entry.job, shape.node)].push_back(
            {shape.node, std::string(shape.group), shape.schema});
        return true;
      }));
  for (const auto& [host, shapes] : hosts) {
    std::vector<Line> lines;
    for (const Shape& shape : shapes) {
      for (const auto& line :
           LinesOf(entry.job, shape.node, shape.group, *shape.schema, delivery_.destination())) {
        if (line == nullptr) continue;
        lines.push_back(*line);
        delivery_.encoder().Prepare(lines.back());
      }
    }
    SortLines(lines);
    SONDE_RETURN_IF_ERROR(f(std::move(lines)));
  }
  return {};
}

// One for each series, at the end of the step, that is, after its last row. Sending them again
// changes nothing.
Status Exporter::SendStale(const ProfileEntry& entry) {
  const double* marker = delivery_.encoder().StaleMarker();
  const Destination& to = delivery_.destination();
  if (marker == nullptr || to.until != INT64_MAX || record_.state().marks.empty()) return {};
  Nanos end = entry.job.end;
  for (const auto& [stream, time] : record_.state().marks) end = std::max(end, time);
  FailuresInRecord witness(record_);
  const Sample sample{(ToMillis(end) + 1) * kMillisecond, *marker};
  std::vector<Line> waiting;
  const auto send = [&]() -> Status {
    for (size_t begin = 0; begin < waiting.size(); begin += to.batch) {
      Runs runs;
      for (size_t i = begin; i < std::min(begin + to.batch, waiting.size()); ++i) {
        runs.push_back({&waiting[i], {&sample, 1}});
      }
      const auto sent = delivery_.Send(runs, true, witness);
      if (!sent.ok()) return sent.status();
    }
    waiting.clear();
    return {};
  };
  if (to.scope == SeriesScope::kReduced) {
    waiting = LinesOfStep();
    return send();
  }
  const Status all = ForEachHost(entry, [&](std::vector<Line> lines) {
    const bool full = waiting.size() + lines.size() > to.batch;
    const Status sent = full ? send() : Status();
    std::move(lines.begin(), lines.end(), std::back_inserter(waiting));
    return sent;
  });
  if (!all.ok()) return all;
  return send();
}

}  // namespace sonde::forward
