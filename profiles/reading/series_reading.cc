// The series of a profile, each with its points or by itself.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/model/shown_series.h"
#include "profiles/reading/counted_before.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "series/block/thin.h"
#include "series/store/past.h"
#include "series/store/task_ranks.h"

namespace sonde {
namespace {

// Collects the points of wanted series from many blocks.
class SeriesCollector {
 public:
  explicit SeriesCollector(const SeriesWanted& wanted) : wanted_(wanted) {}

  // Index of the series, or kUnwanted. Of what is not wanted nothing is kept.
  static constexpr size_t kUnwanted = std::numeric_limits<size_t>::max();
  size_t Find(const Series& series) {
    if (wanted_.series && !wanted_.series(series)) return kUnwanted;
    const auto [it, is_new] =
        index_.try_emplace(SeriesName(series.metric.name, series.tags), data_.size());
    if (is_new) data_.push_back({series, {}});
    return it->second;
  }
  // `past`: it is a value of the past, in the order of telling.
  void Add(size_t index, const Block& block, size_t column, size_t row, Nanos start, Nanos end,
           bool past = false) {
    const Nanos time = block.times[row];
    const double value = block.Column(column)[row];
    if (time < start || time > end || std::isnan(value)) return;
    (past ? past_[index] : data_[index].points).push_back({time, value});
  }
  void AddEarlier(size_t index, const std::vector<Point>& points) {
    std::vector<Point>& all = data_[index].points;
    all.insert(all.end(), points.begin(), points.end());
  }
  bool Counts(size_t index) const { return IsCounting(data_[index].series.metric.type); }
  // Points in time order, each time once: parts of two writers may overlap.
  std::vector<SeriesData> Take() {
    const auto earlier = [](const Point& a, const Point& b) { return a.time < b.time; };
    const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
    for (SeriesData& series : data_) {
      auto& points = series.points;
      if (!std::is_sorted(points.begin(), points.end(), earlier)) {
        std::stable_sort(points.begin(), points.end(), earlier);
      }
      points.erase(std::unique(points.begin(), points.end(), same), points.end());
    }
    for (auto& [index, points] : past_) PutPast(std::move(points), data_[index].points);
    return std::move(data_);
  }

 private:
  const SeriesWanted& wanted_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<SeriesData> data_;
  std::map<size_t, std::vector<Point>> past_;  // by data_
};

// Blocks with equal values of these have the same series: node, its first rank, schema.
using NodesSchema = std::tuple<uint32_t, uint32_t, uint64_t>;
NodesSchema SchemaOf(const BlockKey& key, uint64_t schema_id) {
  return {key.node, FirstRankOf(key.group), schema_id};
}

// Finds the wanted columns of blocks.
class Targets {
 public:
  // In ascending order, each with the index of its series.
  using Columns = CountedBefore::Columns;
  struct Wanted {
    Columns all;
    Columns counters;  // of these
  };
  // All of these outlive it.
  Targets(const JobDescription& job, const SeriesWanted& wanted, Thinned thinned,
          SeriesCollector& collector)
      : job_(job), wanted_(wanted), thinned_(thinned), collector_(collector) {}

  // The same for all blocks of a node that have this schema; it stays where it is.
  const Wanted& Of(const BlockKey& key, const Schema& schema) {
    static const Wanted kNone;
    const auto [candidates, is_new_schema] = candidates_.try_emplace(schema.id());
    if (is_new_schema) candidates->second = CandidatesOf(schema, key.node == kReducedNode);
    if (candidates->second.empty()) return kNone;
    const auto [found, is_new] = columns_.try_emplace(SchemaOf(key, schema.id()));
    if (!is_new) return found->second;
    Wanted& wanted = found->second;
    wanted.all = Find(key, candidates->second);
    std::copy_if(wanted.all.begin(), wanted.all.end(), std::back_inserter(wanted.counters),
                 [&](const auto& column) { return collector_.Counts(column.second); });
    return wanted;
  }

 private:
  // A column whose metric is wanted.
  struct Candidate {
    size_t column = 0;
    bool is_extreme = false;  // of a thinned gauge: it takes the place of the mean
    Tags tags;                // as they are stored
    Series shown;             // as it comes out, of the node that was looked at last
  };

  std::vector<Candidate> CandidatesOf(const Schema& schema, bool reduced) const {
    const std::string_view which = thinned_ == Thinned::kMin   ? "min"
                                   : thinned_ == Thinned::kMax ? "max"
                                                               : "";
    std::vector<Candidate> candidates;
    for (size_t column = 0; column < schema.size(); ++column) {
      const Series& series = schema[column];
      if (wanted_.metric && !wanted_.metric(series.metric)) continue;
      const std::string* extreme = reduced ? nullptr : series.tags.Find(kThinnedTag);
      if (extreme != nullptr && *extreme != which) continue;
      candidates.push_back({column, extreme != nullptr, series.tags, {series.metric, {}}});
      if (extreme != nullptr) candidates.back().tags.Erase(kThinnedTag);
    }
    return candidates;
  }
  Columns Find(const BlockKey& key, std::vector<Candidate>& candidates) {
    Columns columns;
    for (Candidate& candidate : candidates) {
      candidate.shown.tags = candidate.tags;
      AddShownTags(key.node, key.group, job_, candidate.shown.tags);
      const size_t target = collector_.Find(candidate.shown);
      if (target == SeriesCollector::kUnwanted) continue;
      if (candidate.is_extreme) {
        std::erase_if(columns, [&](const auto& column) { return column.second == target; });
      }
      columns.emplace_back(candidate.column, target);
    }
    return columns;
  }

  const JobDescription& job_;
  const SeriesWanted& wanted_;
  const Thinned thinned_;
  SeriesCollector& collector_;
  std::map<uint64_t, std::vector<Candidate>> candidates_;  // by schema
  std::map<NodesSchema, Wanted> columns_;
};

// Lists the series of one stream after the other, each once.
class SeriesList {
 public:
  // All of these outlive it.
  SeriesList(const JobDescription& job, const SeriesWanted& wanted, size_t limit)
      : job_(job), wanted_(wanted), limit_(limit) {}

  // False: these are enough.
  bool Add(const StoredShape& shape) {
    const Schema::Ptr& schema = shape.schema;
    const auto [candidates, is_new_schema] = candidates_.try_emplace(schema->id());
    if (is_new_schema) candidates->second = CandidatesOf(schema, shape.node == kReducedNode);
    if (candidates->second.empty()) return true;
    const Met met{shape.node, std::string(shape.group), schema->id()};
    // Series may be in several schemas of a host, whose daemon may also have been started anew.
    std::vector<Met>& earlier =
        met_[shape.node == kReducedNode ? "" : HostOfNode(job_, shape.node)];
    std::set<std::string> known;
    for (const Met& one : earlier) {
      ForEach(one, [&](const Series& series) {
        known.insert(SeriesName(series.metric.name, series.tags));
        return true;
      });
    }
    ForEach(met, [&](Series series) {
      if (known.contains(SeriesName(series.metric.name, series.tags))) return true;
      all_.push_back(std::move(series));
      return all_.size() < limit_;
    });
    earlier.push_back(met);
    return all_.size() < limit_;
  }
  std::vector<Series> Take() { return std::move(all_); }

 private:
  struct Met {
    uint32_t node;
    std::string group;
    uint64_t schema_id;
  };
  std::vector<Series> CandidatesOf(const Schema::Ptr& schema, bool reduced) const {
    std::vector<Series> candidates;
    for (const Series& series : schema->series()) {
      if (!reduced && IsExtreme(series)) continue;
      if (!wanted_.metric || wanted_.metric(series.metric)) candidates.push_back(series);
    }
    return candidates;
  }
  template <typename F>
  void ForEach(const Met& met, F f) const {
    for (const Series& candidate : candidates_.at(met.schema_id)) {
      Series shown = ShownSeries(candidate, met.node, met.group, job_);
      if (wanted_.series && !wanted_.series(shown)) continue;
      if (!f(std::move(shown))) return;
    }
  }

  const JobDescription& job_;
  const SeriesWanted& wanted_;
  const size_t limit_;
  std::map<uint64_t, std::vector<Series>> candidates_;     // by schema
  std::unordered_map<std::string, std::vector<Met>> met_;  // by host
  std::vector<Series> all_;
};

}  // namespace

Result<std::vector<SeriesData>> ProfileReader::Read(SeriesScope scope, const SeriesWanted& wanted,
                                                    Nanos start, Nanos end, Thinned thinned,
                                                    Earlier earlier) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  SeriesCollector collector(wanted);
  Targets targets(**job, wanted, thinned, collector);
  ReadTally tally;
  if (scope == SeriesScope::kReduced) {
    SONDE_RETURN_IF_ERROR(ForEachReducedRow(
        start, end, tally, [&](const Place& place, const Block& block, size_t row) {
          for (const auto [column, target] : targets.Of(place.key, *place.schema).all) {
            collector.Add(target, block, column, row, start, end);
          }
          return Status();
        }));
    if (!tally.unsupported.ok()) return tally.unsupported;
    return collector.Take();
  }
  CountedBefore before(start);
  const Nanos from = earlier == Earlier::kCounted ? 0 : start;
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        const Targets::Wanted& columns = targets.Of(stored.key, *stored.schema);
        const bool counts =
            earlier == Earlier::kCounted && stored.info.first < start && !columns.counters.empty();
        const bool within = stored.info.last >= start && stored.info.first <= end;
        if (columns.all.empty() || (!counts && !within)) return true;
        // A record of joined blocks is at hand only now.
        if (!within && stored.joined == nullptr) {
          before.Add({stored.key, stored.info, &columns.counters});
          return true;
        }
        const auto block =
            stored.joined != nullptr
                ? stored.joined->Columns(stored.entry, columns.all)
                : DecodeColumns(stored.bytes, WantedOf(columns.all, stored.schema->size()));
        if (!block.ok()) {
          Found("some of the blocks", block.status());
          return true;
        }
        const bool past = IsPastGroup(stored.key.group);
        for (size_t taken = 0; taken < columns.all.size(); ++taken) {
          const size_t series = columns.all[taken].second;
          if (counts && collector.Counts(series)) {
            before.Take(stored.key.node, series, block->times, block->Column(taken));
          }
          for (size_t row = 0; within && row < block->times.size(); ++row) {
            collector.Add(series, *block, taken, row, start, end, past);
          }
        }
        return true;
      },
      from, end));
  if (!tally.unsupported.ok()) return tally.unsupported;
  const auto counted = before.Find(
      [&](const CountedBefore::Place& place, const Targets::Columns& columns) -> Result<Block> {
        std::string bytes;
        const leveldb::Status read = db_.Get(CheckedRead(), keys::Block(key_, place.key), &bytes);
        if (!read.ok()) return FromLevelDb(read, "read a block");
        return DecodeColumns(bytes, WantedOf(columns, place.info.columns));
      });
  for (const auto& [series, points] : counted) collector.AddEarlier(series, points);
  return collector.Take();
}

Status ProfileReader::ReadShapes(SeriesScope scope, const OnStoredShape& f) const {
  std::set<std::tuple<uint32_t, std::string, uint64_t>> met;
  ReadTally tally;
  return ForEach(scope, tally, [&](const Stored& stored) {
    const BlockKey& key = stored.key;
    if (!met.emplace(key.node, key.group, stored.info.schema_id).second) return true;
    return f({key.node, key.group, stored.schema, stored.info.first});
  });
}

Result<std::vector<Series>> ProfileReader::AllSeries(SeriesScope scope, const SeriesWanted& wanted,
                                                     size_t limit) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  SeriesList list(**job, wanted, limit);
  if (limit > 0) {
    SONDE_RETURN_IF_ERROR(
        ReadShapes(scope, [&](const StoredShape& shape) { return list.Add(shape); }));
  }
  return list.Take();
}

}  // namespace sonde
