// A temporary archive and a small step to put into it, for tests of the archive and the commands.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/live/live_archive.h"
#include "series/block/block.h"
#include "series/store/reduced.h"
#include "tests/unit/temp_dir.h"

namespace sonde {

inline constexpr Nanos kTestStart = 1'790'000'000 * kSecond;

inline JobDescription TestJob(const std::string& job = "123", Nanos start = kTestStart) {
  JobDescription d;
  d.cluster = "frost";
  d.id = {job, "0"};
  d.name = "heat";
  d.user = "ada";
  d.expected_nodes = 2;
  d.expected_tasks = 4;
  d.level = 2;
  d.start = start;
  for (const char* host : {"n1", "n2"}) {
    NodeInfo node;
    node.host = host;
    node.tasks = 2;
    node.joined = start;
    d.nodes.push_back(node);
  }
  return d;
}

inline Series TestSeries(std::string_view name, MetricType type, Tags tags = {},
                         Reduction reduction = Reduction::kSum) {
  Series s;
  s.metric.name = name;
  s.metric.type = type;
  s.metric.reduction = reduction;
  s.metric.unit = name.find("seconds") != std::string_view::npos ? "seconds" : "bytes";
  s.tags = std::move(tags);
  return s;
}

// What a node's task group holds in these tests.
inline std::vector<Series> TaskSeries() {
  return {TestSeries("task_cpu_seconds_total", MetricType::kCounter, {{"mode", "user"}}),
          TestSeries("task_resident_memory_bytes", MetricType::kGauge)};
}

inline std::string MakeBlock(const Schema& schema, const std::vector<Nanos>& times,
                             const std::vector<double>& columns) {
  std::string bytes;
  BlockEncoder encoder;
  const Status status =
      encoder.Encode(schema.id(), times, columns.data(), schema.size(), times.size(), bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

// Ticks first+1 to first+rows, seconds after the start: node n's CPU counter is tick * (n + 1), its
// memory 1000 * (n + 1) bytes.
inline std::vector<Nanos> TestTimes(int first, int rows) {
  std::vector<Nanos> times;
  for (int i = 1; i <= rows; ++i) times.push_back(kTestStart + (first + i) * kSecond);
  return times;
}
inline double TestCpu(int tick, uint32_t node) { return tick * (node + 1.0); }
inline double TestMemory(uint32_t node) { return 1000 * (node + 1.0); }

inline Status PutNodeBlock(LiveArchive& live, uint32_t node, uint64_t sequence, int first,
                           int rows) {
  const auto schema = Schema::Make(TaskSeries());
  std::vector<double> columns;
  for (int i = 1; i <= rows; ++i) columns.push_back(TestCpu(first + i, node));
  for (int i = 1; i <= rows; ++i) columns.push_back(TestMemory(node));
  return live.PutBlock({node, "task", sequence}, *schema,
                       MakeBlock(*schema, TestTimes(first, rows), columns));
}

// Both nodes reduced, over the same ticks.
inline Status PutReducedBlock(LiveArchive& live, uint64_t sequence, int first, int rows) {
  const auto schema = ReducedSchema(TaskSeries());
  const size_t n = static_cast<size_t>(rows);
  std::vector<double> columns(schema->size() * n);
  for (int i = 1; i <= rows; ++i) {
    Reduced values[2];
    for (uint32_t node = 0; node < 2; ++node) {
      values[0].Add(TestCpu(first + i, node), {node, Owner::kNobody});
      values[1].Add(TestMemory(node), {node, Owner::kNobody});
    }
    for (size_t s = 0; s < 2; ++s) {
      double row[kStatColumns];
      ToColumns(values[s], row);
      for (size_t k = 0; k < kStatColumns; ++k) {
        columns[(s * kStatColumns + k) * n + static_cast<size_t>(i - 1)] = row[k];
      }
    }
  }
  return live.PutBlock({kReducedNode, "task", sequence}, *schema,
                       MakeBlock(*schema, TestTimes(first, rows), columns));
}

}  // namespace sonde
