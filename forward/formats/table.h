// A profile's rows as one table: its columns are all series that a destination wants, its rows are
// in the order of time, whichever node they come from. CSV, JSON lines and traces are written from
// it.
//
// A table comes in windows of bounded size. With Destination::step a row holds all samples of the
// step up to its time, a multiple of the step: a counter's value then, a gauge's mean. A missing
// value is NaN with the bits of kMissingValue; any other NaN was measured.
//
// Thread safety: functions without state; a TableSink by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "forward/formats/columns.h"
#include "forward/formats/destination.h"
#include "forward/formats/openmetrics.h"
#include "profiles/archive/archive.h"

namespace sonde::forward {

bool IsMissing(double value);

// Consecutive rows.
struct TableWindow {
  std::span<const Nanos> times;
  std::span<const double> values;  // row after row
  size_t columns = 0;
  double At(size_t row, size_t column) const { return values[row * columns + column]; }
};

// Writes tables in one format.
class TableSink {
 public:
  virtual ~TableSink() = default;
  // Starts a profile with its columns; its rows follow.
  virtual Status Begin(const Profile& profile, const std::vector<Column>& columns) = 0;
  virtual Status Add(const TableWindow& window) = 0;
  virtual Status End() = 0;  // ends this profile
};
std::unique_ptr<TableSink> MakeCsv(TextSink sink);
std::unique_ptr<TableSink> MakeJsonLines(TextSink sink);
// Chrome's trace event format, which Perfetto reads.
std::unique_ptr<TableSink> MakeTrace(TextSink sink);
// For a protocol for which IsTable.
std::unique_ptr<TableSink> MakeTableSink(Protocol protocol, TextSink sink);

// Called from time to time: how many samples so far, up to which time.
using OnSamples = std::function<void(uint64_t samples, Nanos reached)>;

// A window of so many columns has 16 rows, and the blocks of a long time are read again for each
// window.
inline constexpr size_t kMostColumns = 262'144;

// Writes one profile. `values`: the most that a window holds. kLimit if there are more columns than
// `columns`.
inline constexpr size_t kWindowValues = size_t{4} << 20;
Result<Written> WriteTable(const Archive& archive, const ProfileEntry& entry,
                           const Destination& destination, TableSink& sink,
                           const OnSamples& on_samples = nullptr, size_t values = kWindowValues,
                           size_t columns = kMostColumns);

// Whether the profile's table is not too wide, before anything is written.
Status CheckWidth(const Archive& archive, const ProfileEntry& entry, const Destination& destination,
                  size_t columns = kMostColumns);

// The shortest text that reads back as the same value; "nan", "inf", "-inf".
void AppendNumber(double value, std::string& out);

}  // namespace sonde::forward
