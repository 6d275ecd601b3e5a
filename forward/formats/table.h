// A profile's rows side by side: one table whose columns are all series that a destination wants
// and whose rows are in the order of time, whichever node they are of. CSV, JSON lines and traces
// are written from it.
//
// A table comes in windows of bounded size. With Destination::step a row is of all samples of the
// step up to its time, a multiple of the step: of a counter what it had come to, of a gauge the
// mean. What is missing is NaN with the bits of kMissingValue; any other NaN was measured.
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

// Rows that follow each other.
struct TableWindow {
  std::span<const Nanos> times;
  std::span<const double> values;  // row after row
  size_t columns = 0;
  double At(size_t row, size_t column) const { return values[row * columns + column]; }
};

// What a format makes of tables.
class TableSink {
 public:
  virtual ~TableSink() = default;
  // A profile and its columns, then its rows.
  virtual Status Begin(const Profile& profile, const std::vector<Column>& columns) = 0;
  virtual Status Add(const TableWindow& window) = 0;
  virtual Status End() = 0;  // of this profile
};
std::unique_ptr<TableSink> MakeCsv(TextSink sink);
std::unique_ptr<TableSink> MakeJsonLines(TextSink sink);
// Chrome's trace event format, which Perfetto reads.
std::unique_ptr<TableSink> MakeTrace(TextSink sink);
// By the protocol, one for which IsTable.
std::unique_ptr<TableSink> MakeTableSink(Protocol protocol, TextSink sink);

// Told from time to time: how many samples so far, up to which time.
using OnSamples = std::function<void(uint64_t samples, Nanos reached)>;

// Writes one profile. `values`: how many a window may hold.
inline constexpr size_t kWindowValues = size_t{4} << 20;
Result<Written> WriteTable(const Archive& archive, const ProfileEntry& entry,
                           const Destination& destination, TableSink& sink,
                           const OnSamples& on_samples = nullptr, size_t values = kWindowValues);

// In the shortest form that reads back exactly; "nan", "inf", "-inf".
void AppendNumber(double value, std::string& out);

}  // namespace sonde::forward
