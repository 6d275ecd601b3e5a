// Sketches of how values are spread, merged up a tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node/record/own_reducer.h"
#include "daemon/tree/frame_window.h"
#include "daemon/tree/tick_merger.h"

extern std::atomic<size_t> allocations;  // counted in collect_allocations.cc

namespace sonde::tree::tree_spreads_test {
namespace {

Schema::Ptr SpreadSchema(size_t from) {
  std::vector<Series> series;
  for (size_t i = 0; i < 4; ++i) {
    Series s;
    s.metric.name = "m" + std::to_string((from + i) % 4);
    s.metric.spread = (from + i) % 4 != 1;
    if ((from + i) % 4 == 2) s.metric.type = MetricType::kCounter;
    series.push_back(std::move(s));
  }
  return Schema::Make(std::move(series));
}

// By name.
using Sketches = std::map<std::string, QuantileSketch>;

// A node of the tree: what it sends is what it has merged of others, over links.
struct Part {
  Schema::Ptr schema;
  Frame frame;
};

Part OfNode(uint32_t node, std::mt19937_64& random, Sketches& all) {
  Part part{SpreadSchema(random() % 4), {}};
  part.frame.tick = 10;
  part.frame.nodes = NodeSet(node);
  for (size_t i = 0; i < part.schema->size(); ++i) {
    const Metric& metric = (*part.schema)[i].metric;
    Reduced value;
    QuantileSketch spread;
    for (uint32_t task = 0; task < random() % 6; ++task) {
      const double v = std::exp(static_cast<double>(random() % 2000) / 300) - 2;
      value.Add(v, {node, task});
      spread.Add(metric.type == MetricType::kGauge ? v : v / 3);
    }
    part.frame.values.push_back(value);
    if (!metric.spread) continue;
    all[metric.name].Merge(spread);
    part.frame.spreads.push_back(std::move(spread));
  }
  return part;
}

Part MergeParts(const std::vector<Part>& children) {
  Part merged;
  TickMerger* at = nullptr;
  TickMerger merger(4, [&](const TickMerger::Row& row, bool) {
    merged.schema = at->schema();
    merged.frame.tick = row.tick;
    merged.frame.stream = Stream::kChildren;
    merged.frame.nodes = row.nodes;
    merged.frame.values = row.values;
    merged.frame.spreads = row.spreads;
  });
  at = &merger;
  std::vector<TickMerger::Id> ids;
  for (const Part& child : children) {
    ids.push_back(merger.AddContributor(0));
    merger.SetSchema(ids.back(), child.schema);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    FrameEncoder encoder;
    FrameDecoder decoder;
    encoder.Reset(*children[i].schema);
    decoder.Reset(*children[i].schema);
    std::string bytes;
    encoder.Encode(children[i].frame, {children[i].frame.values, children[i].frame.spreads}, bytes);
    const auto frame = decoder.Decode(bytes);
    EXPECT_TRUE(frame.ok());
    EXPECT_EQ(merger.Add(ids[i], **frame, ids[i]), TickMerger::Fate::kMerged);
    // A second time, as over another link, is not counted.
    EXPECT_NE(merger.Add(ids[i], **frame, ids[i]), TickMerger::Fate::kMerged);
  }
  return merged;
}

TEST(Spreads, InAnyTreeTheyAreThoseOfAllValuesAtOnce) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 60; ++round) {
    Sketches all;
    std::vector<Part> parts;
    const auto nodes = static_cast<uint32_t>(1 + random() % 40);
    for (uint32_t node = 0; node < nodes; ++node) parts.push_back(OfNode(node, random, all));
    do {
      std::shuffle(parts.begin(), parts.end(), random);
      const size_t children = std::min<size_t>(parts.size(), 1 + random() % 5);
      const std::vector<Part> some(parts.end() - static_cast<ptrdiff_t>(children), parts.end());
      parts.resize(parts.size() - children);
      parts.push_back(MergeParts(some));
    } while (parts.size() > 1);
    const Part& whole = parts[0];
    size_t next = 0;
    for (const Series& series : whole.schema->series()) {
      if (!series.metric.spread) continue;
      ASSERT_LT(next, whole.frame.spreads.size());
      EXPECT_EQ(whole.frame.spreads[next++], all[series.metric.name]) << series.metric.name;
    }
    EXPECT_EQ(next, whole.frame.spreads.size());
  }
}

// What a node does at every tick: reduce its tasks, keep and send the frame; and its parent.
TEST(Spreads, AWarmTickAllocatesNextToNothing) {
  constexpr size_t kTasks = 12;
  std::vector<Series> series(2 * kTasks);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].metric.name = i < kTasks ? "rss" : "cpu_total";
    series[i].metric.type = i < kTasks ? MetricType::kGauge : MetricType::kCounter;
    series[i].metric.spread = true;
    series[i].tags.Set("task", std::to_string(i % kTasks));
  }
  const Schema::Ptr groups[] = {Schema::Make(series)};
  OwnReducer reducer;
  reducer.SetSchemas(groups);
  FrameEncoder encoder;
  FrameDecoder decoder;
  encoder.Reset(*reducer.schema());
  decoder.Reset(*reducer.schema());
  FrameWindow window;
  size_t rows = 0;
  TickMerger merger(60, [&](const TickMerger::Row& row, bool) { rows += row.spreads.size(); });
  const TickMerger::Id id = merger.AddContributor(0);
  merger.SetSchema(id, reducer.schema());
  std::vector<double> row(series.size());
  std::string bytes;
  FrameInfo info;
  info.nodes = NodeSet(1);
  const auto tick = [&] {
    ++info.number;
    info.tick += kSecond;
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] += static_cast<double>((info.number + i) % 8) * (i < kTasks ? 0.0 : 1.0) + 1;
    }
    reducer.Begin(info.tick);
    reducer.Add(0, row);
    bytes.clear();
    encoder.Encode(info, reducer.frame(), bytes);
    window.Add(info, reducer.schema(), reducer.frame(), info.number);
    window.Drop(info.number - 1);
    const auto frame = decoder.Decode(bytes);
    ASSERT_TRUE(frame.ok());
    ASSERT_EQ(merger.Add(id, **frame, id), TickMerger::Fate::kMerged);
  };
  for (int i = 0; i < 200; ++i) tick();
  const size_t before = allocations;
  for (int i = 0; i < 200; ++i) tick();
  EXPECT_LE(allocations - before, 50u) << "chunks of the queues that remember ticks and frames";
  EXPECT_EQ(rows, 2u * 400);
}

}  // namespace
}  // namespace sonde::tree::tree_spreads_test
