// The rules that are built in: they are rules, they keep quiet where nothing is wrong, and each is
// raised by what it is about.
#include <gtest/gtest.h>

#include <functional>

#include "series/alarm/defaults.h"
#include "series/alarm/evaluator.h"

namespace sonde::alarms {
namespace {

// A step of four nodes with a task on each; values at a second, by metric.
class DefaultRulesTest : public testing::Test {
 protected:
  using Values = std::function<double(uint32_t node, double second)>;

  DefaultRulesTest() {
    for (Rule& rule : DefaultRules()) EXPECT_TRUE(evaluator_.Add(std::move(rule)).ok());
    const auto gauge = [this](const char* name, Values values, Tags tags = {}) {
      Series series;
      series.metric.name = name;
      series.tags = std::move(tags);
      series_.push_back(series);
      values_.push_back(std::move(values));
    };
    const auto counter = [&](const char* name, Values values, Tags tags = {}) {
      gauge(name, std::move(values), std::move(tags));
      series_.back().metric.type = MetricType::kCounter;
    };
    const auto flat = [](double value) { return [value](uint32_t, double) { return value; }; };
    const auto steady = [](double rate) {
      return [rate](uint32_t, double second) { return rate * second; };
    };
    gauge("alarm:node_memory_MemAvailable_bytes:per:node_memory_MemTotal_bytes", flat(0.6));
    gauge("alarm:cgroup_memory_anon_bytes:per:cgroup_memory_limit_bytes", flat(0.5));
    gauge("alarm:node_filesystem_avail_bytes:per:node_filesystem_size_bytes", flat(0.3),
          {{"mountpoint", "/tmp"}});
    gauge("node_filesystem_readonly", flat(0), {{"mountpoint", "/tmp"}});
    counter("task_cpu_seconds_total", steady(0.9), {{"mode", "user"}});
    counter("task_cpu_seconds_total", steady(0.05), {{"mode", "system"}});
    gauge("alarm:rate:task_cpu_seconds_total", flat(0.9), {{"mode", "user"}});
    gauge("alarm:node:rate:task_cpu_seconds_total", flat(0.9), {{"mode", "user"}});
    counter("task_read_call_bytes_total", steady(100));
    counter("task_write_call_bytes_total", steady(100));
    gauge("gpu_utilization_ratio", flat(0.8), {{"gpu", "0"}});
    gauge("gpu_throttled", flat(0), {{"gpu", "0"}, {"reason", "thermal"}});
    gauge("alarm:rate:node_cpu_core_throttles_total", flat(0));
    gauge("alarm:rate:cgroup_cpu_throttled_seconds_total", flat(0));
    gauge("sonde_node_missing", flat(0));
  }

  void Set(const std::string& name, Values values, const Tags& tags = {}) {
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].metric.name == name && (tags.empty() || series_[i].tags == tags)) {
        values_[i] = values;
      }
    }
  }
  // What is raised within ten minutes, in order, and on which node.
  std::string Raised() {
    std::string text;
    for (int second = 1; second <= 600; ++second) {
      std::vector<Reduced> row(series_.size());
      for (size_t i = 0; i < row.size(); ++i) {
        for (uint32_t node = 0; node < 4; ++node)
          row[i].Add(values_[i](node, second), {node, node});
      }
      events_.clear();
      evaluator_.Evaluate(series_, {(1000 + second) * kSecond, &row, true}, events_);
      for (const Event& event : events_) {
        if (!event.raised) continue;
        text += (text.empty() ? "" : " ") + event.rule;
        if (event.owner.node != Owner::kNobody) text += "@" + std::to_string(event.owner.node);
        last_ = event;
      }
    }
    return text;
  }
  static Values Node2(double value, double others) {
    return [=](uint32_t node, double) { return node == 2 ? value : others; };
  }

  Evaluator evaluator_{kSecond};
  std::vector<Series> series_;
  std::vector<Values> values_;
  std::vector<Event> events_;
  Event last_;
};

TEST_F(DefaultRulesTest, AreAsManyAsTheirLines) {
  const auto lines = ParseRules(DefaultRulesText(), "built in");
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_EQ(DefaultRules().size(), lines->size());
  EXPECT_GE(lines->size(), 16u);
}

TEST_F(DefaultRulesTest, AHealthyStepRaisesNone) { EXPECT_EQ(Raised(), ""); }

TEST_F(DefaultRulesTest, AnArrayThatIsFilledOnceRaisesNone) {
  Set("alarm:node_memory_MemAvailable_bytes:per:node_memory_MemTotal_bytes",
      [](uint32_t, double second) { return std::max(0.15, 0.9 - 0.2 * second); });
  EXPECT_EQ(Raised(), "");
}

TEST_F(DefaultRulesTest, MemoryThatRunsOutIsToldInTime) {
  Set("alarm:node_memory_MemAvailable_bytes:per:node_memory_MemTotal_bytes",
      [](uint32_t node, double second) { return node == 2 ? 0.9 - 0.004 * second : 0.9; });
  const std::string raised = Raised();
  EXPECT_EQ(raised.substr(0, raised.find(' ')), "memory_soon@2");
  EXPECT_NE(raised.find("memory@2"), std::string::npos);
}

TEST_F(DefaultRulesTest, MemoryLimits) {
  Set("alarm:cgroup_memory_anon_bytes:per:cgroup_memory_limit_bytes", Node2(0.97, 0.5));
  EXPECT_EQ(Raised(), "memory_limit@2");
}

TEST_F(DefaultRulesTest, FullFilesystems) {
  Set("alarm:node_filesystem_avail_bytes:per:node_filesystem_size_bytes", Node2(0.001, 0.5));
  EXPECT_EQ(Raised(), "filesystem@2");
  EXPECT_EQ(last_.text, "/tmp is full: 0.001 is left");
}

TEST_F(DefaultRulesTest, ImagesThatAreReadOnlyAreAlwaysFull) {
  Set("alarm:node_filesystem_avail_bytes:per:node_filesystem_size_bytes", Node2(0, 0));
  Set("node_filesystem_readonly", Node2(1, 1));
  EXPECT_EQ(Raised(), "");
}

TEST_F(DefaultRulesTest, AStepThatHangs) {
  for (const char* name :
       {"task_cpu_seconds_total", "task_read_call_bytes_total", "task_write_call_bytes_total"}) {
    Set(name, Node2(100, 100));
  }
  for (const char* name :
       {"alarm:rate:task_cpu_seconds_total", "alarm:node:rate:task_cpu_seconds_total"}) {
    Set(name, Node2(0, 0));
  }
  EXPECT_EQ(Raised(), "hung");
}

TEST_F(DefaultRulesTest, AStepThatOnlyReadsDoesNotHang) {
  Set("task_cpu_seconds_total", Node2(100, 100));
  Set("alarm:rate:task_cpu_seconds_total", Node2(0, 0));
  Set("alarm:node:rate:task_cpu_seconds_total", Node2(0, 0));
  EXPECT_EQ(Raised(), "");
}

TEST_F(DefaultRulesTest, ANodeThatIsIdleAndATaskThatLags) {
  Set("alarm:node:rate:task_cpu_seconds_total", Node2(0, 0.9));
  Set("alarm:rate:task_cpu_seconds_total", Node2(0.2, 0.9));
  EXPECT_EQ(Raised(), "straggler@2 idle_node@2");
}

TEST_F(DefaultRulesTest, UnevenTasksAreNoStragglers) {
  Set("alarm:rate:task_cpu_seconds_total", [](uint32_t node, double second) {
    return 0.5 + 0.1 * node + 0.1 * static_cast<double>(static_cast<int>(second * 7) % 5);
  });
  EXPECT_EQ(Raised(), "");
}

TEST_F(DefaultRulesTest, IdleAndHotGpus) {
  Set("gpu_utilization_ratio", Node2(0, 0.9));
  Set("gpu_throttled", Node2(1, 0), {{"gpu", "0"}, {"reason", "thermal"}});
  EXPECT_EQ(Raised(), "throttled_gpu@2 idle_gpu@2");
}

TEST_F(DefaultRulesTest, Throttling) {
  Set("alarm:rate:node_cpu_core_throttles_total", Node2(3, 0));
  Set("alarm:rate:cgroup_cpu_throttled_seconds_total", Node2(0.5, 0));
  EXPECT_EQ(Raised(), "throttled_core@2 throttled_quota@2");
}

TEST_F(DefaultRulesTest, MissingSamples) {
  Set("sonde_node_missing", [](uint32_t node, double second) {
    return node == 2 && second > 100 && second < 115 ? 1.0 : 0.0;
  });
  EXPECT_EQ(Raised(), "missing@2");
}

}  // namespace
}  // namespace sonde::alarms
