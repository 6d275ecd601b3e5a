// The columns of `sonde top`: what each shows of a node or a task, and which metrics it is made of.
//
// A column is the sum of its metrics, as far as the step has them. CPU is the processor time per
// second, of the CPUs allotted; memory is what the tasks have resident, of what they may use; MPI
// is the time per second that calls of MPI waited for other ranks, of each task.
//
// Thread safety: constants, and functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace sonde::cli::top {

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

enum class Column : uint8_t {
  kCpu,
  kMemory,
  kGpu,
  kMpi,
  kReceived,
  kSent,
  kRead,
  kWritten,
};
inline constexpr size_t kColumns = 8;
using Values = std::array<double, kColumns>;  // NaN: not known
inline constexpr Values kNoValues = {kNoValue, kNoValue, kNoValue, kNoValue,
                                     kNoValue, kNoValue, kNoValue, kNoValue};

constexpr size_t IndexOf(Column column) { return static_cast<size_t>(column); }

struct ColumnInfo {
  std::string_view title;
  std::string_view short_title;  // of at most 6 letters
  std::string_view help;
  bool ratio;             // a share; else bytes per second
  bool low_is_worst;      // where it is low something is wrong; else where it is high
  bool of_tasks;          // tasks have it, not only nodes
  bool mean;              // several series of a node give their mean; else their sum
  bool counter;           // a rate is taken
  bool without_loopback;  // what goes over the device lo does not count
  std::array<std::string_view, 4> metrics;  // "": no more
};
const ColumnInfo& InfoOf(Column column);
constexpr Column ColumnAt(size_t index) { return static_cast<Column>(index); }

// "97 %", "1.2M" (per second, of 1024), "-": at most 5 letters.
std::string ValueOf(Column column, double value);
// With the unit: "1.2 MiB/s".
std::string LongValueOf(Column column, double value);

// "1:02:03", "12:03".
std::string ClockText(Nanos duration);
// The local time of the day: "15:04:05".
std::string TimeOfDay(Nanos time);

}  // namespace sonde::cli::top
