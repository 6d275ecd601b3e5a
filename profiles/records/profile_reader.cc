#include "profiles/records/profile_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/model/parts.h"
#include "profiles/model/shown_series.h"
#include "profiles/records/assembly.h"
#include "profiles/records/block_scan.h"
#include "profiles/records/counted_before.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "profiles/records/stored_bytes.h"
#include "series/block/thin.h"
#include "series/store/past.h"
#include "series/store/task_ranks.h"

namespace sonde {
namespace {

Result<std::string> Get(leveldb::DB& db, const std::string& at, std::string_view what) {
  std::string value;
  const leveldb::Status status = db.Get(CheckedRead(), at, &value);
  if (!status.ok()) return FromLevelDb(status, what);
  return value;
}

// Collects the points of one series from many blocks.
class SeriesCollector {
 public:
  explicit SeriesCollector(const std::function<bool(const Series&)>& wanted) : wanted_(wanted) {}

  // Index of the series, or npos if it is not wanted.
  static constexpr size_t kUnwanted = std::numeric_limits<size_t>::max();
  size_t Find(const Series& series) {
    const auto [it, is_new] =
        index_.try_emplace(SeriesName(series.metric.name, series.tags), kUnwanted);
    if (is_new && (!wanted_ || wanted_(series))) {
      it->second = data_.size();
      data_.push_back({series, {}});
    }
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
  const std::function<bool(const Series&)>& wanted_;
  std::map<std::string, size_t> index_;
  std::vector<SeriesData> data_;
  std::map<size_t, std::vector<Point>> past_;  // by data_
};

Series Shown(const Series& series, const BlockKey& key, const JobDescription& job) {
  return ShownSeries(series, key.node, key.group, job);
}

// Blocks with equal values of these have the same series: node, its first rank, schema.
using NodesSchema = std::tuple<uint32_t, uint32_t, uint64_t>;
NodesSchema SchemaOf(const BlockKey& key, uint64_t schema_id) {
  return {key.node, FirstRankOf(key.group), schema_id};
}

// The series to which each column of a schema belongs. The wanted extreme of a thinned gauge takes
// the place of the mean.
std::vector<size_t> TargetsOf(const Schema& schema, const BlockKey& key, const JobDescription& job,
                              Thinned thinned, SeriesCollector& collector) {
  std::vector<size_t> targets;
  const std::string_view which = thinned == Thinned::kMin   ? "min"
                                 : thinned == Thinned::kMax ? "max"
                                                            : "";
  for (const Series& series : schema.series()) {
    const std::string* extreme = series.tags.Find(kThinnedTag);
    if (key.node == kReducedNode || extreme == nullptr) {
      targets.push_back(collector.Find(Shown(series, key, job)));
      continue;
    }
    size_t target = SeriesCollector::kUnwanted;
    if (*extreme == which) {
      Series mean = series;
      mean.tags.Erase(kThinnedTag);
      target = collector.Find(Shown(mean, key, job));
      std::replace(targets.begin(), targets.end(), target, SeriesCollector::kUnwanted);
    }
    targets.push_back(target);
  }
  return targets;
}

// Those columns, each with the index of its series. If few of many series are wanted, the others
// cost a tenth.
using Columns = CountedBefore::Columns;
Result<Block> DecodeSome(std::string_view bytes, size_t columns, const Columns& wanted) {
  std::vector<bool> is_wanted(columns);
  for (const auto& [column, series] : wanted) is_wanted[column] = true;
  return DecodeColumns(bytes, is_wanted);
}

}  // namespace

Result<JobDescription> ProfileReader::Description() const {
  const auto json = Get(db_, keys::Description(key_), "read the description of " + key_);
  if (!json.ok()) return json.status();
  return DescriptionFromJson(*json);
}

Result<Profile> ProfileReader::StoredProfile() const {
  const auto json = Get(db_, keys::Profile(key_), "read profile " + key_);
  if (!json.ok()) return json.status();
  return ProfileFromJson(*json);
}

Result<StepMoments> ProfileReader::StoredMoments() const {
  const auto json = Get(db_, keys::Moments(key_), "read the moments of " + key_);
  if (!json.ok() && json.status().code() == Code::kNotFound) return StepMoments();
  if (!json.ok()) return json.status();
  return MomentsFromJson(*json);
}

Result<std::string> ProfileReader::Writer() const {
  return Get(db_, keys::Writer(key_), "read the writer of " + key_);
}

bool ProfileReader::finished() const { return Get(db_, keys::Finished(key_), "").ok(); }

Profile ProfileReader::Assemble(const JobDescription& job, ReadTally* tally_out) const {
  Profile profile;
  profile.job = job;
  Assembly assembly(job);
  ReadTally tally;
  std::set<uint64_t> schemas;
  Status status = ForEach(std::nullopt, tally, [&](const Stored& stored) {
    tally.last = std::max(tally.last, stored.info.last);
    if (schemas.insert(stored.info.schema_id).second) {
      tally.content += BytesInDb(stored.schema->encoded());
    }
  });
  tally.content += tally.bytes;
  ReadTally rows;
  if (status.ok()) {
    status = ForEachReducedRow(0, std::numeric_limits<Nanos>::max(), rows,
                               [&](const Stored& stored, const Block& block, size_t row) {
                                 assembly.AddRow(stored.key.group, stored.schema, block, row);
                               });
  }
  if (!status.ok() && tally.first_error.empty()) tally.first_error = status.message();
  auto moments = StoredMoments();
  if (moments.ok()) {
    profile.moments = *std::move(moments);
  } else if (tally.first_error.empty()) {
    tally.first_error = moments.status().message();
  }
  profile.footprint = assembly.Footprint();
  tally.nodes_at = assembly.NodesAt();
  profile.cost.cpu_seconds = std::nan("");
  profile.cost.peak_node_memory = std::nan("");
  profile.cost.bytes_sent = std::nan("");
  if (job.end == 0 && tally.last > job.start) {
    const auto ticks = static_cast<uint64_t>(tally.last / job.period - job.start / job.period);
    Coverage& coverage = profile.job.coverage;
    coverage.got = NodeTicks(tally.nodes_at);
    coverage.expected = std::max<uint64_t>(coverage.got, ticks * job.expected_nodes);
  }
  profile.cost.stored_bytes = StoredBytes(tally.content, profile);
  if (tally_out != nullptr) *tally_out = tally;
  return profile;
}

Status ProfileReader::ForEach(std::optional<SeriesScope> scope, ReadTally& tally,
                              const std::function<void(const Stored&)>& f, Nanos first,
                              Nanos last) const {
  const std::string reduced = keys::Block(key_, {kReducedNode, "", 0});
  std::map<uint64_t, Result<Schema::Ptr>> schemas;
  const auto schema_of = [&](uint64_t id) -> const Result<Schema::Ptr>& {
    const auto found = schemas.find(id);
    if (found != schemas.end()) return found->second;
    const auto bytes = Get(db_, keys::Schema(id), "read a block's schema");
    Result<Schema::Ptr> schema = bytes.ok() ? Schema::Decode(*bytes) : bytes.status();
    if (schema.ok() && (*schema)->id() != id) schema = Status(Code::kCorrupt, "wrong schema");
    return schemas.emplace(id, std::move(schema)).first->second;
  };
  const auto unreadable = [&](const Status& status) {
    ++tally.unreadable;
    if (status.code() == Code::kUnsupported) tally.unsupported = status;
    if (tally.first_error.empty()) tally.first_error = status.message();
  };
  const bool of_rows = scope == SeriesScope::kReduced;
  BlockScan scan(db_, key_, of_rows ? reduced.substr(0, reduced.size() - 9) : keys::Blocks(key_),
                 first, last);
  while (scan.Next()) {
    if (scope == SeriesScope::kNodes && scan.key().node == kReducedNode) break;
    ++tally.blocks;
    tally.bytes += scan.bytes().size();
    const auto info = ReadBlockInfo(scan.bytes());
    if (!info.ok()) {
      unreadable(info.status());
      continue;
    }
    const auto& schema = schema_of(info->schema_id);
    if (!schema.ok()) {
      unreadable(schema.status());
      continue;
    }
    if (info->columns != (*schema)->size()) {
      unreadable({Code::kCorrupt, "a block does not fit its schema"});
      continue;
    }
    f({scan.key(), *info, *schema, scan.bytes()});
  }
  // LevelDB passes over what it cannot read, and tells at the end.
  Status status = FromLevelDb(scan.status(), "read the blocks of " + key_);
  if (status.ok() && scope != SeriesScope::kReduced)
    status = ForEachOfJoined(tally, f, first, last);
  if (status.code() == Code::kCorrupt) unreadable(status);
  if (tally.unreadable > 0 && tally.unsupported.ok()) {
    Found("some of the blocks", {Code::kCorrupt, tally.first_error});
  }
  return status.code() == Code::kCorrupt ? Status() : status;
}

namespace {

// The number of nodes in a reduced row.
double NodesOf(const Schema& schema, const Block& block, size_t row) {
  double nodes = 0;
  for (size_t c = 0; c < block.columns(); c += ReducedColumns(schema[c].metric)) {
    nodes = std::fmax(nodes, block.Column(c)[row]);
  }
  return nodes;
}

// The blocks of one stream, from `begin` on, that overlap: they are read together. With one writer
// each block is alone.
template <typename P>
size_t EndOfOverlap(const std::vector<P>& blocks, size_t begin) {
  Nanos last = blocks[begin].info.last;
  size_t end = begin + 1;
  for (; end < blocks.size() && blocks[end].key.node == blocks[begin].key.node &&
         blocks[end].key.group == blocks[begin].key.group && blocks[end].info.first <= last;
       ++end) {
    last = std::max(last, blocks[end].info.last);
  }
  return end;
}

}  // namespace

Result<std::vector<ProfileReader::Place>> ProfileReader::Places(SeriesScope scope, Nanos start,
                                                                Nanos end, ReadTally& tally) const {
  std::vector<Place> blocks;
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        if (stored.info.last < start || stored.info.first > end) return;
        blocks.push_back({stored.key, stored.info, stored.schema, PlaceOf(stored)});
      },
      start, end));
  // Stream by stream, in the order of time.
  std::stable_sort(blocks.begin(), blocks.end(), [](const Place& a, const Place& b) {
    return std::tie(a.key.node, a.key.group, a.info.first, a.key) <
           std::tie(b.key.node, b.key.group, b.info.first, b.key);
  });
  return blocks;
}

Result<Block> ProfileReader::BlockAt(const Place& place, JoinedCache& joined,
                                     std::string& bytes) const {
  if (IsJoinedPlace(place.at)) return joined.Read(place.at);
  auto read = ReadAt(place.at);
  if (!read.ok()) return read.status();
  bytes = *std::move(read);
  auto block = DecodeBlock(bytes);
  if (!block.ok()) return Status(Code::kCorrupt, std::string(block.status().message()));
  return block;
}

Status ProfileReader::MergeRows(
    std::span<const Place> blocks, JoinedCache& joined,
    const std::function<Status(const Place&, std::string_view, const Block&, size_t)>& f) const {
  struct Row {
    Nanos time;
    double nodes;
    size_t block;
    size_t row;
  };
  std::vector<std::string> bytes;
  std::vector<Block> decoded;
  std::vector<Row> rows;
  for (const Place& place : blocks) {
    auto block = BlockAt(place, joined, bytes.emplace_back());
    if (!block.ok() && block.status().code() != Code::kCorrupt) return block.status();
    const bool good = block.ok() && block->columns() == place.schema->size();
    if (!block.ok()) Found("some of the blocks", block.status());
    decoded.push_back(good ? *std::move(block) : Block());
    const bool compared = blocks.size() > 1 && place.key.node == kReducedNode;
    for (size_t r = 0; r < decoded.back().times.size(); ++r) {
      const double nodes = compared ? NodesOf(*place.schema, decoded.back(), r) : 0;
      rows.push_back({decoded.back().times[r], nodes, decoded.size() - 1, r});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.time != b.time ? a.time < b.time : a.nodes > b.nodes;
  });
  // Rows of the past that are of one time have values of different series.
  const bool once = blocks.size() > 1 && !IsPastGroup(blocks.front().key.group);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (once && i > 0 && rows[i].time == rows[i - 1].time) continue;
    const size_t b = rows[i].block;
    SONDE_RETURN_IF_ERROR(f(blocks[b], bytes[b], decoded[b], rows[i].row));
  }
  return {};
}

Status ProfileReader::ForEachReducedRow(Nanos start, Nanos end_time, ReadTally& tally,
                                        const OnRow& f) const {
  const auto blocks = Places(SeriesScope::kReduced, start, end_time, tally);
  if (!blocks.ok()) return blocks.status();
  JoinedCache joined(db_);
  for (size_t begin = 0, end = 0; begin < blocks->size(); begin = end) {
    end = EndOfOverlap(*blocks, begin);
    SONDE_RETURN_IF_ERROR(
        MergeRows(std::span(*blocks).subspan(begin, end - begin), joined,
                  [&](const Place& place, std::string_view bytes, const Block& block, size_t row) {
                    f({place.key, place.info, place.schema, bytes}, block, row);
                    return Status();
                  }));
  }
  return {};
}

Status ProfileReader::ReadRows(SeriesScope scope, const RowsWanted& wanted,
                               const OnStoredRow& f) const {
  ReadTally tally;
  auto places = Places(scope, wanted.start, wanted.end, tally);
  if (!places.ok()) return places.status();
  if (wanted.stream) {
    std::erase_if(*places, [&](const Place& place) {
      return !wanted.stream(place.key.node, place.key.group, place.info);
    });
  }
  JoinedCache joined(db_);
  const Nanos window = std::max<Nanos>(wanted.window, 1);
  for (Nanos from = wanted.start; !places->empty();) {
    Nanos first = wanted.end;
    for (const Place& place : *places) first = std::min(first, place.info.first);
    from = std::max(from, first);
    const Nanos to = wanted.end - from < window ? wanted.end : from + window - 1;
    std::vector<Place> now;
    std::copy_if(places->begin(), places->end(), std::back_inserter(now),
                 [&](const Place& place) { return place.info.first <= to; });
    for (size_t begin = 0, end = 0; begin < now.size(); begin = end) {
      end = EndOfOverlap(now, begin);
      SONDE_RETURN_IF_ERROR(
          MergeRows(std::span(now).subspan(begin, end - begin), joined,
                    [&](const Place& place, std::string_view, const Block& block, size_t row) {
                      if (block.times[row] < from || block.times[row] > to) return Status();
                      return f({place.key.node, place.key.group, place.schema, block, row});
                    }));
    }
    if (wanted.on_window) SONDE_RETURN_IF_ERROR(wanted.on_window(to));
    std::erase_if(*places, [&](const Place& place) { return place.info.last <= to; });
    if (to >= wanted.end) break;
    from = to + 1;
  }
  return {};
}

Result<std::vector<SeriesData>> ProfileReader::Read(
    SeriesScope scope, const std::function<bool(const Series&)>& wanted, Nanos start, Nanos end,
    Thinned thinned, Earlier earlier) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  SeriesCollector collector(wanted);
  // Which columns of a schema are wanted and their series: the same for all blocks of a node.
  std::map<NodesSchema, Columns> targets;
  const auto targets_of = [&](const Stored& stored) {
    const auto [it, is_new] = targets.try_emplace(SchemaOf(stored.key, stored.info.schema_id));
    if (!is_new) return &it->second;
    size_t column = 0;
    for (const size_t target : TargetsOf(*stored.schema, stored.key, *job, thinned, collector)) {
      if (target != SeriesCollector::kUnwanted) it->second.emplace_back(column, target);
      ++column;
    }
    return &it->second;
  };
  ReadTally tally;
  if (scope == SeriesScope::kReduced) {
    SONDE_RETURN_IF_ERROR(ForEachReducedRow(
        start, end, tally, [&](const Stored& stored, const Block& block, size_t row) {
          for (const auto [column, target] : *targets_of(stored)) {
            collector.Add(target, block, column, row, start, end);
          }
        }));
    if (!tally.unsupported.ok()) return tally.unsupported;
    return collector.Take();
  }
  CountedBefore before(start);
  const Nanos from = earlier == Earlier::kCounted ? 0 : start;
  const auto remember = [&](const Stored& stored) {
    Columns columns = *targets_of(stored);
    std::erase_if(columns, [&](const auto& column) { return !collector.Counts(column.second); });
    if (columns.empty()) return;
    before.Add({stored.key.node, stored.info, PlaceOf(stored), std::move(columns)});
  };
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        if (earlier == Earlier::kCounted && stored.info.first < start) remember(stored);
        if (stored.info.last < start || stored.info.first > end) return;
        const Columns& wanted_columns = *targets_of(stored);
        if (wanted_columns.empty()) return;
        const auto block = stored.joined != nullptr
                               ? stored.joined->Columns(stored.entry, wanted_columns)
                               : DecodeSome(stored.bytes, stored.schema->size(), wanted_columns);
        if (!block.ok()) return Found("some of the blocks", block.status());
        const bool past = IsPastGroup(stored.key.group);
        for (size_t taken = 0; taken < wanted_columns.size(); ++taken) {
          for (size_t row = 0; row < block->times.size(); ++row) {
            collector.Add(wanted_columns[taken].second, *block, taken, row, start, end, past);
          }
        }
      },
      from, end));
  if (!tally.unsupported.ok()) return tally.unsupported;
  const auto counted =
      before.Find([&](const CountedBefore::Place& place, const Columns& columns) -> Result<Block> {
        const auto bytes = ReadAt(place.at);
        if (!bytes.ok()) return bytes.status();
        return DecodeSome(*bytes, place.info.columns, columns);
      });
  for (const auto& [series, points] : counted) collector.AddEarlier(series, points);
  return collector.Take();
}

Result<std::vector<Series>> ProfileReader::AllSeries(SeriesScope scope) const {
  const auto job = Described();
  if (!job.ok()) return job.status();
  const std::function<bool(const Series&)> all_of_them;
  SeriesCollector collector(all_of_them);
  std::set<NodesSchema> seen;
  ReadTally tally;
  SONDE_RETURN_IF_ERROR(ForEach(scope, tally, [&](const Stored& stored) {
    if (!seen.insert(SchemaOf(stored.key, stored.info.schema_id)).second) return;
    for (const Series& series : stored.schema->series()) {
      if (stored.key.node != kReducedNode && IsExtreme(series)) continue;
      collector.Find(Shown(series, stored.key, *job));
    }
  }));
  std::vector<Series> all;
  for (SeriesData& data : collector.Take()) all.push_back(std::move(data.series));
  return all;
}

}  // namespace sonde
