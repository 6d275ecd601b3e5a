#include "cli/top/columns.h"

#include <fmt/core.h>

#include <cmath>
#include <ctime>

#include "profiles/model/text.h"

namespace sonde::cli::top {
namespace {

constexpr std::array<ColumnInfo, kColumns> kInfos = {{
    {"CPU",
     "CPU",
     "processor time of the tasks, of the CPUs allotted",
     true,
     true,
     true,
     false,
     true,
     false,
     {"task_cpu_seconds_total"}},
    {"memory",
     "mem",
     "resident memory of the tasks, of what the job may use",
     true,
     false,
     true,
     false,
     false,
     false,
     {"task_resident_memory_bytes"}},
    {"GPU",
     "GPU",
     "share of time in which anything ran on the GPUs, their mean",
     true,
     true,
     false,
     true,
     false,
     false,
     {"gpu_utilization_ratio"}},
    {"MPI wait",
     "MPI",
     "share of the tasks' time in MPI calls that wait for other ranks; a call "
     "counts when it ends, so that for a moment it may be more than all",
     true,
     false,
     true,
     false,
     true,
     false,
     {"mpi_wait_seconds_total"}},
    {"net in/s",
     "in/s",
     "bytes that the node receives, loopback not counted",
     false,
     false,
     false,
     false,
     true,
     true,
     {"node_network_receive_bytes_total", "node_infiniband_port_data_received_bytes_total",
      "node_slingshot_receive_bytes_total"}},
    {"net out/s",
     "out/s",
     "bytes that the node sends, loopback not counted",
     false,
     false,
     false,
     false,
     true,
     true,
     {"node_network_transmit_bytes_total", "node_infiniband_port_data_transmitted_bytes_total",
      "node_slingshot_transmit_bytes_total"}},
    {"read/s",
     "rd/s",
     "bytes that the tasks read from storage",
     false,
     false,
     true,
     false,
     true,
     false,
     {"task_read_bytes_total"}},
    {"write/s",
     "wr/s",
     "bytes that the tasks write to storage",
     false,
     false,
     true,
     false,
     true,
     false,
     {"task_written_bytes_total"}},
}};

}  // namespace

const ColumnInfo& InfoOf(Column column) { return kInfos[IndexOf(column)]; }

std::string ValueOf(Column column, double value) {
  if (std::isnan(value)) return "-";
  if (InfoOf(column).ratio) {
    const double percent = std::round(value * 100) + 0.0;  // no "-0"
    if (percent == 0 && value > 0) return "<1 %";          // a little is not nothing
    return percent > 999 ? ">999%" : fmt::format("{:.0f} %", percent);
  }
  constexpr std::string_view kUnits = "BKMGTPE";
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  if (value >= 999.5) return ">999E";
  if (unit == 0) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string LongValueOf(Column column, double value) {
  if (std::isnan(value)) return "-";
  return InfoOf(column).ratio ? ValueOf(column, value) : text::Bytes(value) + "/s";
}

std::string ClockText(Nanos duration) {
  const int64_t seconds = duration > 0 ? duration / kSecond : 0;
  const int64_t hours = seconds / 3600;
  const int64_t minutes = seconds / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string TimeOfDay(Nanos time) {
  const auto seconds = static_cast<std::time_t>(time / kSecond);
  std::tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "-";
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace sonde::cli::top
