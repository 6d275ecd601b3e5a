#include <gtest/gtest.h>

#include "core/text/metric_title.h"

namespace sonde::core_metric_title_test {
namespace {

TEST(MetricTitle, IsTheFirstSentenceOfTheHelp) {
  EXPECT_EQ(MetricTitle("node_load1", "CPU time by mode. Tag mode."), "CPU time by mode");
  EXPECT_EQ(MetricTitle("node_memory_Active", "Memory in use; what was used lately."),
            "Memory in use");
  EXPECT_EQ(MetricTitle("cgroup_oom_events_total", "How often the limit was run into (version 2)."),
            "How often the limit was run into");
  EXPECT_EQ(MetricTitle("gpu_x",
                        "Share of time in which anything ran on the GPU, however few of its units "
                        "it used."),
            "Share of time in which anything ran on the GPU");
  EXPECT_EQ(MetricTitle("residual", "Residual, relative"), "Residual, relative");
  EXPECT_EQ(MetricTitle("x", "Packets of 1.5 kB."), "Packets of 1.5 kB");
}

TEST(MetricTitle, IsShortForWhatPeopleLookAtFirst) {
  EXPECT_EQ(MetricTitle("node_cpu_seconds_total", "Time all processors spent in a mode."),
            "CPU time by mode");
}

TEST(MetricTitle, IsTheNameInWordsWhereTheHelpIsNoHeading) {
  EXPECT_EQ(MetricTitle("solver_iterations_total", ""), "Solver iterations");
  EXPECT_EQ(MetricTitle("node_netstat_Tcp_InErrs_total", "Those of them that arrived damaged."),
            "Netstat Tcp InErrs");
  EXPECT_EQ(MetricTitle("sonde_source_seconds_total", "Part of it that reading one source took."),
            "Source seconds");
  EXPECT_EQ(MetricTitle("io_seconds_total", "Time spent in them."), "I/O seconds");
  EXPECT_EQ(MetricTitle("gpu_clock_hertz", ""), "GPU clock");
  EXPECT_EQ(MetricTitle("solver.residual", std::string(65, 'a')), "Solver residual");
  EXPECT_EQ(MetricTitle("x", std::string(64, 'a')), std::string(64, 'a'));
}

TEST(MetricTitle, LeavesSomethingOfEveryName) {
  for (const char* name : {"node_", "_total", "_bytes_total", "a", "task_seconds"}) {
    EXPECT_FALSE(MetricTitle(name, "").empty()) << name;
  }
  EXPECT_FALSE(MetricTitle("n", ". ").empty());
}

}  // namespace
}  // namespace sonde::core_metric_title_test
