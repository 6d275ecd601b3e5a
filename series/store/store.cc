#include "series/store/store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/log.h"
#include "series/store/store_reading.h"

namespace sonde {
namespace {

// Columns start this far apart beyond their rows, so that those of a power-of-two block do not
// fall on the same lines of the processor's cache.
constexpr size_t kColumnPadding = 8;

// Where each of `series` is in `wider`, which has them in the same order with others among them.
// Ends before the first that it does not have so.
std::vector<uint32_t> ColumnsWithin(const std::vector<Series>& series,
                                    const std::vector<Series>& wider) {
  std::vector<uint32_t> columns;
  columns.reserve(series.size());
  for (uint32_t c = 0; c < wider.size() && columns.size() < series.size(); ++c) {
    if (series[columns.size()] == wider[c]) columns.push_back(c);
  }
  return columns;
}

}  // namespace

struct GroupStore::Rep {
  Options options;
  std::function<void(const SealedBlock&)> on_seal;
  mutable BlockEncoder encoder;

  Schema::Ptr schema = Schema::Make({});

  // The open block: column c lies at columns[c * stride].
  std::vector<Nanos> times;
  std::vector<double> columns;
  size_t stride = 0;
  size_t open_rows = 0;  // rows it may get
  size_t next_rows = 0;  // rows of the block after it

  std::vector<double> last_row;
  Nanos last_time = 0;

  std::deque<SealedBlock> sealed;
  // The blocks that are decompressed, by sequence.
  std::map<uint64_t, std::shared_ptr<const PlainBlock>> plain;
  size_t plain_bytes = 0;
  std::shared_ptr<ColumnCache> columns_read;  // of sealed blocks
  uint64_t sequence = 0;
  size_t sealed_bytes = 0;
  size_t schema_bytes = 0;  // what the schemas of sealed blocks take, once per run of blocks
  uint64_t rows = 0;
  uint64_t dropped = 0;

  void OpenBlock();
  bool Widen(const Schema& wider);
  void MoveColumns(std::span<const uint32_t> places, size_t count, size_t to);
  void Insert(size_t at, Nanos time);
  void Change(size_t at, const std::function<void(std::span<double> row)>& change);
  Status Encode(size_t first, size_t count, SealedBlock& block) const;
  void SealFirst(size_t count);
  void Keep(SealedBlock block);
  void Forget();
  void ForgetPlain(uint64_t block);  // its sequence
  void MakePlain(const SealedBlock& block);
};

GroupStore::GroupStore(Options options) : rep_(std::make_unique<Rep>()) {
  options.max_rows = std::clamp<size_t>(options.max_rows, 1, kMaxBlockRows);
  options.first_rows = std::clamp<size_t>(options.first_rows, 1, options.max_rows);
  rep_->options = options;
  rep_->next_rows = options.first_rows;
  if (options.column_limit != 0) {
    rep_->columns_read = std::make_shared<ColumnCache>(options.column_limit);
  }
}
GroupStore::~GroupStore() = default;

void GroupStore::OnSeal(std::function<void(const SealedBlock&)> f) { rep_->on_seal = std::move(f); }

const Schema::Ptr& GroupStore::schema() const { return rep_->schema; }

void GroupStore::SetSchema(Schema::Ptr schema) {
  if (schema == nullptr || schema->id() == rep_->schema->id()) return;
  if (!rep_->Widen(*schema)) {
    Seal();
    rep_->last_row.clear();
  }
  rep_->schema = std::move(schema);
}

// A block goes on when series come: its rows have nothing of them yet. So an application that
// registers its metrics one by one does not leave a schema with each of them. False if it does not:
// series went, or the wider rows do not fit.
bool GroupStore::Rep::Widen(const Schema& wider) {
  if (times.empty()) return false;
  const std::vector<uint32_t> places = ColumnsWithin(schema->series(), wider.series());
  if (places.size() < schema->size()) return false;
  const size_t fitting = std::min(open_rows, kMaxBlockSamples / wider.size());
  if (times.size() >= fitting + options.late_rows) return false;
  open_rows = fitting;
  MoveColumns(places, wider.size(), fitting + options.late_rows + kColumnPadding);
  std::vector<double> last(wider.size(), std::nan(""));
  for (size_t c = 0; c < places.size(); ++c) last[places[c]] = last_row[c];
  last_row = std::move(last);
  return true;
}

// The open rows stay, each column in its new place among `count` columns that lie `to` apart; what
// is new has no values.
void GroupStore::Rep::MoveColumns(std::span<const uint32_t> places, size_t count, size_t to) {
  std::vector<double> moved(count * to, std::nan(""));
  for (size_t c = 0; c < places.size(); ++c) {
    std::copy_n(&columns[c * stride], times.size(), &moved[places[c] * to]);
  }
  columns = std::move(moved);
  stride = to;
}

// Makes room for the next block, within what one block may hold, and takes over the rows that are
// still open.
void GroupStore::Rep::OpenBlock() {
  const size_t most = kMaxBlockSamples / std::max<size_t>(schema->size(), 1);
  open_rows = std::min(next_rows, most);
  const size_t to = open_rows + options.late_rows + kColumnPadding;
  times.reserve(open_rows + options.late_rows);
  if (times.empty()) {
    stride = to;
    columns.resize(schema->size() * stride);
  } else if (stride != to) {
    std::vector<uint32_t> same(schema->size());
    std::iota(same.begin(), same.end(), 0u);
    MoveColumns(same, same.size(), to);
  }
  last_row.resize(schema->size());
  next_rows = std::min(next_rows * 2, options.max_rows);
}

void GroupStore::Append(Nanos time, std::span<const double> row) {
  Rep& rep = *rep_;
  if (row.size() != rep.schema->size() || time < rep.last_time) {
    ++rep.dropped;
    return;
  }
  if (row.empty()) return;
  if (rep.times.empty()) rep.OpenBlock();
  const size_t at = rep.times.size();
  rep.times.push_back(time);
  for (size_t c = 0; c < row.size(); ++c) rep.columns[c * rep.stride + at] = row[c];
  std::copy(row.begin(), row.end(), rep.last_row.begin());
  rep.last_time = time;
  ++rep.rows;
  if (rep.times.size() < rep.open_rows + rep.options.late_rows) return;
  rep.SealFirst(rep.open_rows);
  if (!rep.times.empty()) rep.OpenBlock();
}

bool GroupStore::Amend(Nanos time, const std::function<void(std::span<double> row)>& change) {
  Rep& rep = *rep_;
  const auto found = std::lower_bound(rep.times.begin(), rep.times.end(), time);
  if (found == rep.times.end() || *found != time) return false;
  const auto at = static_cast<size_t>(found - rep.times.begin());
  rep.Change(at, change);
  for (size_t c = 0; c < rep.last_row.size() && time == rep.last_time; ++c) {
    rep.last_row[c] = rep.columns[c * rep.stride + at];
  }
  return true;
}

void GroupStore::Rep::Change(size_t at, const std::function<void(std::span<double> row)>& change) {
  std::vector<double> row(schema->size());
  for (size_t c = 0; c < row.size(); ++c) row[c] = columns[c * stride + at];
  change(row);
  for (size_t c = 0; c < row.size(); ++c) columns[c * stride + at] = row[c];
}

void GroupStore::Place(Nanos time, const std::function<void(std::span<double> row)>& change) {
  Rep& rep = *rep_;
  if (rep.schema->size() == 0) return;
  if (rep.times.empty()) rep.OpenBlock();
  const auto found = std::lower_bound(rep.times.begin(), rep.times.end(), time);
  const auto at = static_cast<size_t>(found - rep.times.begin());
  if (found == rep.times.end() || *found != time) rep.Insert(at, time);
  rep.Change(at, change);
  if (rep.times.size() < rep.open_rows + rep.options.late_rows) return;
  rep.SealFirst(rep.open_rows);
  if (!rep.times.empty()) rep.OpenBlock();
}

// A row without values.
void GroupStore::Rep::Insert(size_t at, Nanos time) {
  const size_t behind = times.size() - at;
  times.insert(times.begin() + static_cast<std::ptrdiff_t>(at), time);
  for (size_t c = 0; c < schema->size(); ++c) {
    double* const place = &columns[c * stride + at];
    std::copy_backward(place, place + behind, place + behind + 1);
    *place = std::nan("");
  }
  ++rows;
}

// The sequence is the caller's.
Status GroupStore::Rep::Encode(size_t first, size_t count, SealedBlock& block) const {
  block.info = {schema->id(), count, schema->size(), times[first], times[first + count - 1]};
  block.schema = schema;
  auto bytes = std::make_shared<std::string>();
  SONDE_RETURN_IF_ERROR(encoder.Encode(schema->id(), std::span(times).subspan(first, count),
                                       columns.data() + first, schema->size(), stride, *bytes));
  block.bytes = std::move(bytes);
  return {};
}

void GroupStore::Seal() {
  Rep& rep = *rep_;
  while (!rep.times.empty()) rep.SealFirst(std::min(rep.times.size(), rep.open_rows));
}

// The rows after them stay open.
void GroupStore::Rep::SealFirst(size_t count) {
  SealedBlock block;
  const Status status = Encode(0, count, block);
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count));
  for (size_t c = 0; c < schema->size() && !times.empty(); ++c) {
    std::copy_n(&columns[c * stride + count], times.size(), &columns[c * stride]);
  }
  if (!status.ok()) {
    log::Error("seal a block of {} rows: {}; its rows are lost", count, status.message());
    dropped += count;
    return;
  }
  block.sequence = ++sequence;
  Keep(block);
  MakePlain(block);
  if (on_seal) on_seal(block);
}

std::vector<SealedBlock> GroupStore::Open() const {
  const Rep& rep = *rep_;
  std::vector<SealedBlock> blocks;
  for (size_t first = 0; first < rep.times.size(); first += rep.open_rows) {
    SealedBlock block;
    const size_t count = std::min(rep.open_rows, rep.times.size() - first);
    if (!rep.Encode(first, count, block).ok()) break;
    block.sequence = rep.sequence + 1 + blocks.size();
    blocks.push_back(std::move(block));
  }
  return blocks;
}

void GroupStore::Rep::Keep(SealedBlock block) {
  if (sealed.empty() || sealed.back().schema != block.schema) {
    schema_bytes += block.schema->memory();
  }
  sealed_bytes += block.bytes->size();
  sealed.push_back(std::move(block));
  Forget();
}

// Schemas count, or large ones whose series come and go would fill the memory.
void GroupStore::Rep::Forget() {
  while (sealed_bytes + schema_bytes > options.memory_limit && !sealed.empty()) {
    const SealedBlock oldest = std::move(sealed.front());
    sealed.pop_front();
    ForgetPlain(oldest.sequence);
    sealed_bytes -= oldest.bytes->size();
    dropped += oldest.info.rows;
    if (sealed.empty() || sealed.front().schema != oldest.schema) {
      schema_bytes -= oldest.schema->memory();
    }
  }
}

void GroupStore::Rep::ForgetPlain(uint64_t block) {
  const auto at = plain.find(block);
  if (at == plain.end()) return;
  plain_bytes -= at->second->MemoryUse();
  plain.erase(at);
}

// Also keeps the newest block decompressed, and as many older ones as there is room for.
void GroupStore::Rep::MakePlain(const SealedBlock& block) {
  if (block.bytes->size() > options.plain_limit) return;
  const Result<std::shared_ptr<const PlainBlock>> unpacked = PlainBlock::Unpack(*block.bytes);
  if (!unpacked.ok() || (*unpacked)->MemoryUse() > options.plain_limit) return;
  plain[block.sequence] = *unpacked;
  plain_bytes += (*unpacked)->MemoryUse();
  while (plain_bytes > options.plain_limit) ForgetPlain(plain.begin()->first);
}

GroupStore::Shared GroupStore::Share(Nanos start, Nanos end) const {
  const Rep& rep = *rep_;
  Shared shared;
  shared.open = rep.schema;
  shared.sequence = rep.sequence;
  shared.oldest = rep.sealed.empty() ? rep.sequence + 1 : rep.sealed.front().sequence;
  shared.columns = rep.columns_read;
  for (const SealedBlock& block : rep.sealed) {
    if (block.info.last < start || block.info.first > end) continue;
    const auto plain = rep.plain.find(block.sequence);
    shared.blocks.push_back({block, plain == rep.plain.end() ? nullptr : plain->second});
  }
  return shared;
}

bool GroupStore::CopyOpen(const Shared& shared, const std::vector<bool>& wanted,
                          OpenRows& rows) const {
  const Rep& rep = *rep_;
  if (rep.sequence != shared.sequence || rep.schema != shared.open) return false;
  rows.times = rep.times;
  rows.columns.clear();
  for (size_t c = 0; c < wanted.size() && !rep.times.empty(); ++c) {
    if (!wanted[c]) continue;
    const double* column = rep.columns.data() + c * rep.stride;
    rows.columns.insert(rows.columns.end(), column, column + rep.times.size());
  }
  return true;
}

std::vector<SeriesData> GroupStore::Read(const std::function<bool(const Series&)>& wanted,
                                         Nanos start, Nanos end, Earlier earlier) const {
  GroupReading reading(wanted, start, end, earlier);
  reading.Share(*this);
  reading.Choose();
  reading.TakeOpen(*this);
  return reading.Finish();
}

Nanos GroupStore::last_time() const { return rep_->last_row.empty() ? 0 : rep_->last_time; }
std::span<const double> GroupStore::last_row() const { return rep_->last_row; }
uint64_t GroupStore::rows() const { return rep_->rows; }
uint64_t GroupStore::dropped_rows() const { return rep_->dropped; }
size_t GroupStore::sealed_bytes() const { return rep_->sealed_bytes; }

}  // namespace sonde
