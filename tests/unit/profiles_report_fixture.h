// A profile whose report is easy to work out.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "profiles/report/report.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

inline FootprintEntry Entry(Series series, double last, double min, double max) {
  FootprintEntry e;
  e.series = std::move(series);
  e.ticks = 100;
  e.last = e.mean = last;
  e.min = min;
  e.max = max;
  e.min_owner = {0, 0};
  e.max_owner = {1, 3};
  return e;
}

// 100 s on 2 nodes with 4 tasks and 8 CPUs, half busy.
inline Profile TestProfile() {
  Profile p;
  p.job = TestJob();
  p.job.end = p.job.start + 100 * kSecond;
  p.job.state = EndState::kCompleted;
  p.job.coverage = {200, 199};
  p.cost = {0.5, 5 * 1024 * 1024, 1e4, 2e4};
  const auto counter = [](std::string_view name, Tags tags) {
    return TestSeries(name, MetricType::kCounter, std::move(tags));
  };
  p.footprint = {
      Entry(counter("task_cpu_seconds_total", {{"mode", "user"}}), 190, 40, 60),
      Entry(counter("task_cpu_seconds_total", {{"mode", "system"}}), 10, 1, 4),
      Entry(counter("node_cpu_seconds_total", {{"mode", "idle"}}), 590, 290, 300),
      Entry(counter("node_cpu_seconds_total", {{"mode", "user"}}), 210, 100, 110),
      Entry(TestSeries("task_resident_memory_peak_bytes", MetricType::kGauge), 3 * kGiB, kGiB / 2,
            kGiB),
      Entry(TestSeries("node_memory_MemTotal_bytes", MetricType::kGauge), 8 * kGiB, 4 * kGiB,
            4 * kGiB),
      Entry(counter("node_network_receive_bytes_total", {{"device", "eth0"}}), 2 * kGiB, 0, 1),
      Entry(counter("node_network_receive_bytes_total", {{"device", "lo"}}), 50 * kGiB, 0, 1),
  };
  return p;
}

inline NodeRow Row(const std::string& host, double cpu, double memory) {
  NodeRow row;
  row.host = host;
  row.tasks = 2;
  row.cpu_seconds = cpu;
  row.memory_peak = memory;
  row.memory_total = 4 * kGiB;
  row.memory_limit = row.node_cpu_seconds = std::nan("");
  row.network_received = row.network_sent = row.disk_read = row.disk_written = std::nan("");
  return row;
}

inline std::string Render(const Profile& p, ReportOptions options = {}) {
  return RenderReport(p, options);
}

// Whether a line of the report has these parts in this order.
inline bool HasRow(const std::string& report, const std::vector<std::string>& parts) {
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    size_t at = 0;
    for (const std::string& part : parts) {
      at = at == std::string::npos ? at : line.find(part, at);
    }
    if (at != std::string::npos) return true;
  }
  return false;
}

}  // namespace sonde
