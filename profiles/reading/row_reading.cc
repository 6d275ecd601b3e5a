// The rows of a profile, one by one.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "series/query/pieces/host_numbers.h"
#include "series/store/past.h"
#include "series/store/reduced.h"

namespace sonde {
namespace {

// The number of nodes in a reduced row.
double NodesOf(const Schema& schema, const Block& block, size_t row) {
  double nodes = 0;
  for (size_t c = 0; c < block.columns(); c += ReducedColumns(schema[c].metric)) {
    nodes = std::fmax(nodes, block.Column(c)[row]);
  }
  return nodes;
}

// For each node, how many daemons its host had before this one.
std::vector<uint32_t> DaemonsOf(const JobDescription& job) {
  const HostNumbers hosts(job.nodes, HostNumbers::Same::kName);
  std::vector<uint32_t> of_host(hosts.size());
  std::vector<uint32_t> daemons;
  daemons.reserve(job.nodes.size());
  for (size_t node = 0; node < job.nodes.size(); ++node) {
    const bool is_known = !job.nodes[node].host.empty();
    daemons.push_back(is_known ? of_host[hosts[node]]++ : 0);
  }
  return daemons;
}

constexpr Nanos kFirst = std::numeric_limits<Nanos>::min();
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

bool OfOneStream(const BlockKey& a, const BlockKey& b) {
  return a.node == b.node && a.group == b.group;
}

}  // namespace

Result<ProfileReader::Places> ProfileReader::FindPlaces(SeriesScope scope, Nanos start, Nanos end,
                                                        ReadTally& tally) const {
  Places places;
  SONDE_RETURN_IF_ERROR(ForEach(
      scope, tally,
      [&](const Stored& stored) {
        if (stored.info.last < start || stored.info.first > end) return true;
        Place& place = places.blocks.emplace_back();
        place.key = stored.key;
        place.info = stored.info;
        place.next = stored.info.first;
        place.schema = stored.schema;
        if (stored.joined == nullptr) return true;
        std::vector<std::string>& records = places.records;
        if (records.empty() || records.back() != stored.joined->at()) {
          records.push_back(stored.joined->at());
        }
        place.record = static_cast<uint32_t>(records.size() - 1);
        place.entry = static_cast<uint32_t>(stored.entry);
        return true;
      },
      start, end));
  std::stable_sort(places.blocks.begin(), places.blocks.end(), [](const Place& a, const Place& b) {
    return std::tie(a.key.node, a.key.group, a.info.first, a.key) <
           std::tie(b.key.node, b.key.group, b.info.first, b.key);
  });
  return places;
}

// Rows of a series follow one another in time, for some receivers take them in no other order:
// those of a stream do, and those of a host whose daemon was started anew. Else what is read fast
// goes first: stream by stream where blocks are by themselves, and record by record where they are
// joined, for in a record are nodes from anywhere in the step, and to read it again for each of
// them would take twenty times as long.
std::vector<ProfileReader::Unit> ProfileReader::UnitsOf(const std::vector<Place*>& blocks,
                                                        const std::vector<uint32_t>& daemons) {
  struct Turn {
    uint32_t daemon;  // of the host
    uint32_t phase;   // rises from one unit of a stream to the next; odd: of joined blocks
    uint32_t record;
    uint32_t entry;
    size_t unit;
    auto operator<=>(const Turn&) const = default;
  };
  std::vector<Unit> units;
  std::vector<Turn> turns;
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    const BlockKey& key = blocks[begin]->key;
    // With one writer each block is alone.
    Nanos last = blocks[begin]->info.last;
    for (end = begin + 1; end < blocks.size() && OfOneStream(blocks[end]->key, key) &&
                          blocks[end]->info.first <= last;
         ++end) {
      last = std::max(last, blocks[end]->info.last);
    }
    const bool goes_on = begin > 0 && OfOneStream(key, blocks[begin - 1]->key);
    const uint32_t before = goes_on ? turns.back().phase : 0;
    const Unit& unit = units.emplace_back(blocks.begin() + static_cast<ptrdiff_t>(begin),
                                          blocks.begin() + static_cast<ptrdiff_t>(end));
    Turn turn{key.node < daemons.size() ? daemons[key.node] : 0, 0, 0, 0, units.size() - 1};
    const auto joined = std::ranges::find_if(
        unit, [](const Place* place) { return place->record != Place::kApart; });
    if (joined == unit.end()) {
      turn.phase = (before + 1) / 2 * 2;
    } else {
      turn.phase = (before + 1) / 2 * 2 + 1;
      turn.record = (*joined)->record;
      turn.entry = (*joined)->entry;
    }
    turns.push_back(turn);
  }
  std::sort(turns.begin(), turns.end());
  std::vector<Unit> in_turn;
  in_turn.reserve(units.size());
  for (const Turn& turn : turns) in_turn.push_back(std::move(units[turn.unit]));
  return in_turn;
}

// Decodes blocks at their places.
class ProfileReader::BlockReading {
 public:
  // `metric`: those whose columns are wanted; nullptr: all. The others outlive it.
  BlockReading(leveldb::DB& db, const std::string& profile, const Places& places,
               std::function<bool(const Metric&)> metric)
      : db_(db), profile_(profile), places_(places), metric_(std::move(metric)), joined_(db) {}

  // Whether the schema has any column that is wanted.
  bool Wants(const Schema& schema) { return !metric_ || !ColumnsOf(schema).empty(); }
  // As wide as the schema. kCorrupt if it is damaged.
  Result<Block> Read(const Place& place) {
    const Columns* const some = metric_ ? &ColumnsOf(*place.schema) : nullptr;
    const bool all = some == nullptr || some->size() == place.schema->size();
    Result<Block> block =
        place.record != Place::kApart
            ? joined_.Read(places_.records[place.record], place.entry, all ? nullptr : some)
            : ReadApart(place, all ? nullptr : some);
    if (!block.ok() || all) return block;
    return Widen(*block, *some, place.schema->size());
  }

 private:
  using Columns = JoinedRecord::ColumnList;

  const Columns& ColumnsOf(const Schema& schema) {
    const auto [found, is_new] = columns_.try_emplace(schema.id());
    for (size_t i = 0; is_new && i < schema.size(); ++i) {
      if (metric_(schema[i].metric)) found->second.emplace_back(i, i);
    }
    return found->second;
  }
  Result<Block> ReadApart(const Place& place, const Columns* some) const {
    std::string bytes;
    const leveldb::Status read = db_.Get(CheckedRead(), keys::Block(profile_, place.key), &bytes);
    if (!read.ok()) return FromLevelDb(read, "read a block");
    auto block = some == nullptr ? DecodeBlock(bytes)
                                 : DecodeColumns(bytes, WantedOf(*some, place.schema->size()));
    if (!block.ok()) return Status(Code::kCorrupt, std::string(block.status().message()));
    return block;
  }
  static Block Widen(const Block& narrow, const Columns& columns, size_t width) {
    Block wide;
    wide.schema_id = narrow.schema_id;
    wide.times = narrow.times;
    wide.values.assign(width * narrow.times.size(), std::nan(""));
    for (size_t i = 0; i < columns.size(); ++i) {
      std::ranges::copy(
          narrow.Column(i),
          wide.values.begin() + static_cast<ptrdiff_t>(columns[i].first * narrow.times.size()));
    }
    return wide;
  }

  leveldb::DB& db_;
  const std::string& profile_;
  const Places& places_;
  const std::function<bool(const Metric&)> metric_;
  JoinedCache joined_;
  std::map<uint64_t, Columns> columns_;  // by schema
};

Status ProfileReader::MergeRows(const Unit& unit, BlockReading& blocks, Nanos from, Nanos to,
                                const OnRow& f) const {
  struct Row {
    Nanos time;
    double nodes;
    size_t block;
    size_t row;
  };
  std::vector<Block> decoded;
  std::vector<Row> rows;
  for (Place* place : unit) {
    auto block = blocks.Read(*place);
    if (!block.ok() && block.status().code() != Code::kCorrupt) return block.status();
    const bool good = block.ok() && block->columns() == place->schema->size();
    if (!block.ok()) Found("some of the blocks", block.status());
    decoded.push_back(good ? *std::move(block) : Block());
    const bool compared = unit.size() > 1 && place->key.node == kReducedNode;
    place->next = kNever;
    for (size_t r = 0; r < decoded.back().times.size(); ++r) {
      const Nanos time = decoded.back().times[r];
      if (time > to) place->next = std::min(place->next, time);
      if (time < from || time > to) continue;
      const double nodes = compared ? NodesOf(*place->schema, decoded.back(), r) : 0;
      rows.push_back({time, nodes, decoded.size() - 1, r});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.time != b.time ? a.time < b.time : a.nodes > b.nodes;
  });
  // Rows of the past that are of one time have values of different series.
  const bool once = unit.size() > 1 && !IsPastGroup(unit.front()->key.group);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (once && i > 0 && rows[i].time == rows[i - 1].time) continue;
    SONDE_RETURN_IF_ERROR(f(*unit[rows[i].block], decoded[rows[i].block], rows[i].row));
  }
  return {};
}

Status ProfileReader::ForEachReducedRow(Nanos start, Nanos end, ReadTally& tally,
                                        const OnRow& f) const {
  auto places = FindPlaces(SeriesScope::kReduced, start, end, tally);
  if (!places.ok()) return places.status();
  std::vector<Place*> all;
  for (Place& place : places->blocks) all.push_back(&place);
  BlockReading blocks(db_, key_, *places, nullptr);
  for (const Unit& unit : UnitsOf(all, {})) {
    SONDE_RETURN_IF_ERROR(MergeRows(unit, blocks, kFirst, kNever, f));
  }
  return {};
}

Status ProfileReader::ReadRows(SeriesScope scope, const RowsWanted& wanted,
                               const OnStoredRow& f) const {
  ReadTally tally;
  auto places = FindPlaces(scope, wanted.start, wanted.end, tally);
  if (!places.ok()) return places.status();
  const bool reduced = scope == SeriesScope::kReduced;
  BlockReading blocks(db_, key_, *places, reduced ? nullptr : wanted.metric);
  std::vector<Place*> left;
  for (Place& place : places->blocks) {
    const BlockKey& key = place.key;
    if (wanted.stream && !wanted.stream(key.node, key.group, place.info)) continue;
    if (blocks.Wants(*place.schema)) left.push_back(&place);
  }
  // Without joined blocks the nodes are in the order of their indexes, and so are a host's daemons.
  std::vector<uint32_t> daemons;
  if (!places->records.empty()) {
    const auto job = Described();
    if (!job.ok()) return job.status();
    daemons = DaemonsOf(**job);
  }
  const Nanos window = std::max<Nanos>(wanted.window, 1);
  for (Nanos from = wanted.start; !left.empty();) {
    Nanos first = wanted.end;
    for (const Place* place : left) first = std::min(first, place->next);
    from = std::max(from, first);
    const Nanos to = wanted.end - from < window ? wanted.end : from + window - 1;
    std::vector<Place*> now;
    std::copy_if(left.begin(), left.end(), std::back_inserter(now),
                 [&](const Place* place) { return place->next <= to; });
    for (const Unit& unit : UnitsOf(now, daemons)) {
      SONDE_RETURN_IF_ERROR(MergeRows(
          unit, blocks, from, to, [&](const Place& place, const Block& block, size_t row) {
            return f({place.key.node, place.key.group, place.schema, block, row});
          }));
    }
    if (wanted.on_window) SONDE_RETURN_IF_ERROR(wanted.on_window(to));
    std::erase_if(
        left, [&](const Place* place) { return place->info.last <= to || place->next == kNever; });
    if (to >= wanted.end) break;
    from = to + 1;
  }
  return {};
}

}  // namespace sonde
