// The rows of a profile, one by one.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "series/store/past.h"

namespace sonde {

std::string ProfileReader::PlaceOf(const Stored& stored) const {
  return stored.joined != nullptr ? JoinedPlace(stored.joined->at(), stored.entry)
                                  : keys::Block(key_, stored.key);
}

Result<std::string> ProfileReader::ReadAt(const std::string& at) const {
  if (IsJoinedPlace(at)) return ReadJoinedPlace(db_, at);
  std::string bytes;
  const leveldb::Status read = db_.Get(CheckedRead(), at, &bytes);
  if (!read.ok()) return FromLevelDb(read, "read a block");
  return bytes;
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
        const bool within = stored.info.last >= start && stored.info.first <= end;
        if (within) blocks.push_back({stored.key, stored.info, stored.schema, PlaceOf(stored)});
        return true;
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

}  // namespace sonde
