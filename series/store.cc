#include "series/store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/log.h"

namespace sonde {
namespace {

// Columns start this far apart beyond their rows, so that those of a power-of-two block do not
// fall on the same lines of the processor's cache.
constexpr size_t kColumnPadding = 8;

std::string KeyOf(const Series& series) { return SeriesName(series.metric.name, series.tags); }

// Roughly: the encoded form and the strings and vectors it stands for.
size_t MemoryOf(const Schema& schema) {
  return schema.encoded().size() * 2 + schema.size() * (sizeof(Series) + 64);
}

// Stitches the columns of blocks with different schemas to one piece per series.
class Stitcher {
 public:
  explicit Stitcher(const std::function<bool(const Series&)>& wanted) : wanted_(wanted) {}

  // For each column where its points go: an index into data, or kUnwanted.
  static constexpr size_t kUnwanted = SIZE_MAX;
  const std::vector<size_t>& Columns(const Schema& schema) {
    const auto [at, added] = by_schema_.try_emplace(schema.id());
    if (added) at->second = MapColumns(schema);
    return at->second;
  }

  void Add(size_t index, std::span<const Nanos> times, const double* values) {
    std::vector<Point>& points = data_[index].points;
    for (size_t row = 0; row < times.size(); ++row) {
      if (!std::isnan(values[row])) points.push_back({times[row], values[row]});
    }
  }

  std::vector<SeriesData> Take() {
    std::erase_if(data_, [](const SeriesData& d) { return d.points.empty(); });
    return std::move(data_);
  }

 private:
  std::vector<size_t> MapColumns(const Schema& schema) {
    std::vector<size_t> columns(schema.size(), kUnwanted);
    std::unordered_set<size_t> used;
    for (size_t i = 0; i < schema.size(); ++i) {
      if (!wanted_(schema[i])) continue;
      const auto [at, added] = by_name_.try_emplace(KeyOf(schema[i]), data_.size());
      if (added) data_.push_back({schema[i], {}});
      // Of a series that one schema lists twice, the first column counts.
      if (used.insert(at->second).second) columns[i] = at->second;
    }
    return columns;
  }

  const std::function<bool(const Series&)>& wanted_;
  std::vector<SeriesData> data_;
  std::unordered_map<std::string, size_t> by_name_;
  std::unordered_map<uint64_t, std::vector<size_t>> by_schema_;
};

// The part of non-decreasing times that lies within [start, end]: first row and number of rows.
std::pair<size_t, size_t> RowsWithin(std::span<const Nanos> times, Nanos start, Nanos end) {
  const auto first = std::lower_bound(times.begin(), times.end(), start);
  const auto last = std::upper_bound(first, times.end(), end);
  return {static_cast<size_t>(first - times.begin()), static_cast<size_t>(last - first)};
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
  // Those that are decompressed, by sequence.
  mutable std::map<uint64_t, std::shared_ptr<const PlainBlock>> plain;
  mutable size_t plain_bytes = 0;
  // Columns of sealed blocks, by sequence; all go when they are too many.
  struct Columns {
    std::vector<Nanos> times;
    std::map<size_t, std::vector<double>> values;
  };
  mutable std::map<uint64_t, Columns> columns_read;
  mutable size_t column_bytes = 0;
  uint64_t sequence = 0;
  size_t sealed_bytes = 0;
  size_t schema_bytes = 0;  // what the schemas of sealed blocks take, once per run of blocks
  uint64_t rows = 0;
  uint64_t dropped = 0;

  void OpenBlock();
  Status Encode(size_t first, size_t count, SealedBlock& block) const;
  void SealFirst(size_t count);
  void Keep(SealedBlock block);
  void Forget();
  void ForgetPlain(uint64_t block) const;  // its sequence
  void ForgetColumns(uint64_t block);
  std::shared_ptr<const PlainBlock> PlainOf(const SealedBlock& block) const;
  const Columns* ColumnsOf(const SealedBlock& block, const std::vector<bool>& wanted) const;
};

GroupStore::GroupStore(Options options) : rep_(std::make_unique<Rep>()) {
  options.max_rows = std::clamp<size_t>(options.max_rows, 1, kMaxBlockRows);
  options.first_rows = std::clamp<size_t>(options.first_rows, 1, options.max_rows);
  rep_->options = options;
  rep_->next_rows = options.first_rows;
}
GroupStore::~GroupStore() = default;

void GroupStore::OnSeal(std::function<void(const SealedBlock&)> f) { rep_->on_seal = std::move(f); }

const Schema::Ptr& GroupStore::schema() const { return rep_->schema; }

void GroupStore::SetSchema(Schema::Ptr schema) {
  if (schema == nullptr || schema->id() == rep_->schema->id()) return;
  Seal();
  rep_->schema = std::move(schema);
  rep_->last_row.clear();
}

// Makes room for the next block, within what one block may hold, and takes over the rows that are
// still open.
void GroupStore::Rep::OpenBlock() {
  const size_t most = kMaxBlockSamples / std::max<size_t>(schema->size(), 1);
  const size_t before = stride;
  open_rows = std::min(next_rows, most);
  stride = open_rows + options.late_rows + kColumnPadding;
  times.reserve(open_rows + options.late_rows);
  if (times.empty()) {
    columns.resize(schema->size() * stride);
  } else if (stride != before) {
    std::vector<double> wider(schema->size() * stride);
    for (size_t c = 0; c < schema->size(); ++c) {
      std::copy_n(&columns[c * before], times.size(), &wider[c * stride]);
    }
    columns = std::move(wider);
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
  std::vector<double> row(rep.schema->size());
  for (size_t c = 0; c < row.size(); ++c) row[c] = rep.columns[c * rep.stride + at];
  change(row);
  for (size_t c = 0; c < row.size(); ++c) rep.columns[c * rep.stride + at] = row[c];
  if (time == rep.last_time) rep.last_row = std::move(row);
  return true;
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

// Those after them stay open.
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
  (void)PlainOf(block);
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
    schema_bytes += MemoryOf(*block.schema);
  }
  sealed_bytes += block.bytes->size();
  sealed.push_back(std::move(block));
  Forget();
}

// Schemas count, or an application that registers its metrics one by one would fill the memory
// with them.
void GroupStore::Rep::Forget() {
  while (sealed_bytes + schema_bytes > options.memory_limit && !sealed.empty()) {
    const SealedBlock oldest = std::move(sealed.front());
    sealed.pop_front();
    ForgetPlain(oldest.sequence);
    ForgetColumns(oldest.sequence);
    sealed_bytes -= oldest.bytes->size();
    dropped += oldest.info.rows;
    if (sealed.empty() || sealed.front().schema != oldest.schema) {
      schema_bytes -= MemoryOf(*oldest.schema);
    }
  }
}

void GroupStore::Rep::ForgetColumns(uint64_t block) {
  const auto at = columns_read.find(block);
  if (at == columns_read.end()) return;
  for (const auto& column : at->second.values) {
    column_bytes -= column.second.size() * sizeof(double);
  }
  columns_read.erase(at);
}

void GroupStore::Rep::ForgetPlain(uint64_t block) const {
  const auto at = plain.find(block);
  if (at == plain.end()) return;
  plain_bytes -= at->second->MemoryUse();
  plain.erase(at);
}

// The block decompressed, kept unless newer ones take the room; nullptr if it cannot be read so.
std::shared_ptr<const PlainBlock> GroupStore::Rep::PlainOf(const SealedBlock& block) const {
  if (options.plain_limit == 0) return nullptr;
  if (const auto at = plain.find(block.sequence); at != plain.end()) return at->second;
  size_t newer = 0;
  for (auto at = plain.upper_bound(block.sequence); at != plain.end(); ++at) {
    newer += at->second->MemoryUse();
  }
  if (newer + block.bytes->size() > options.plain_limit) return nullptr;
  Result<std::shared_ptr<const PlainBlock>> unpacked = PlainBlock::Unpack(*block.bytes);
  if (!unpacked.ok()) return nullptr;
  if (newer + (*unpacked)->MemoryUse() <= options.plain_limit) {
    plain[block.sequence] = *unpacked;
    plain_bytes += (*unpacked)->MemoryUse();
    while (plain_bytes > options.plain_limit) ForgetPlain(plain.begin()->first);
  }
  return *std::move(unpacked);
}

// The columns wanted of a block, kept; nullptr if they are not to be kept or cannot be read.
const GroupStore::Rep::Columns* GroupStore::Rep::ColumnsOf(const SealedBlock& block,
                                                           const std::vector<bool>& wanted) const {
  if (options.column_limit == 0) return nullptr;
  Columns& known = columns_read[block.sequence];
  std::vector<bool> missing = wanted;
  for (const auto& column : known.values) missing[column.first] = false;
  const auto count = static_cast<size_t>(std::count(missing.begin(), missing.end(), true));
  if (count == 0) return &known;
  const size_t bytes = count * block.info.rows * sizeof(double);
  if (column_bytes + bytes > options.column_limit) {
    columns_read.clear();
    column_bytes = 0;
    if (bytes > options.column_limit) return nullptr;
    return ColumnsOf(block, wanted);
  }
  const Result<Block> decoded = DecodeColumns(*block.bytes, missing);
  if (!decoded.ok()) return nullptr;
  known.times = decoded->times;
  for (size_t c = 0, taken = 0; c < missing.size(); ++c) {
    if (!missing[c]) continue;
    const auto column = decoded->Column(taken++);
    known.values[c].assign(column.begin(), column.end());
  }
  column_bytes += bytes;
  return &known;
}

std::vector<SeriesData> GroupStore::Read(const std::function<bool(const Series&)>& wanted,
                                         Nanos start, Nanos end) const {
  const Rep& rep = *rep_;
  Stitcher stitcher(wanted);
  // The rows of the range of every wanted column; `column(c, n)`: where column c starts, the n-th
  // of those that are wanted.
  const auto add = [&](const std::vector<size_t>& target, std::span<const Nanos> times,
                       const auto& column) {
    const auto [first, count] = RowsWithin(times, start, end);
    for (size_t c = 0, taken = 0; c < target.size(); ++c) {
      if (target[c] == Stitcher::kUnwanted) continue;
      stitcher.Add(target[c], times.subspan(first, count), column(c, taken++) + first);
    }
  };
  std::vector<double> values;
  for (const SealedBlock& block : rep.sealed) {
    if (block.info.last < start || block.info.first > end) continue;
    const std::vector<size_t>& target = stitcher.Columns(*block.schema);
    std::vector<bool> columns(target.size());
    bool any = false;
    for (size_t c = 0; c < target.size(); ++c) {
      columns[c] = target[c] != Stitcher::kUnwanted;
      any = any || columns[c];
    }
    if (!any) continue;
    if (const auto plain = rep.PlainOf(block); plain != nullptr) {
      values.resize(plain->times().size());
      add(target, plain->times(), [&](size_t column, size_t) {
        if (!plain->Read(column, values).ok())
          std::fill(values.begin(), values.end(), std::nan(""));
        return values.data();
      });
      continue;
    }
    if (const Rep::Columns* kept = rep.ColumnsOf(block, columns); kept != nullptr) {
      add(target, kept->times,
          [&](size_t column, size_t) { return kept->values.at(column).data(); });
      continue;
    }
    const Result<Block> decoded = DecodeColumns(*block.bytes, columns);
    if (!decoded.ok()) {
      log::Error("read block {}: {}; its rows are missing in the answer", block.sequence,
                 decoded.status().message());
      continue;
    }
    add(target, decoded->times,
        [&](size_t, size_t taken) { return decoded->Column(taken).data(); });
  }
  if (!rep.times.empty()) {
    add(stitcher.Columns(*rep.schema), rep.times,
        [&](size_t column, size_t) { return rep.columns.data() + column * rep.stride; });
  }
  return stitcher.Take();
}

Nanos GroupStore::last_time() const { return rep_->last_row.empty() ? 0 : rep_->last_time; }
std::span<const double> GroupStore::last_row() const { return rep_->last_row; }
uint64_t GroupStore::rows() const { return rep_->rows; }
uint64_t GroupStore::dropped_rows() const { return rep_->dropped; }
size_t GroupStore::sealed_bytes() const { return rep_->sealed_bytes; }

}  // namespace sonde
