#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/histogram_buckets.h"
#include "profiles/model/text.h"
#include "tests/unit/profiles_report_fixture.h"

namespace sonde::profiles_report_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Report, SaysThatTheKernelKilledForWantOfMemory) {
  Profile p = TestProfile();
  EXPECT_THAT(Render(p), Not(HasSubstr("want of memory")));
  p.job.state = EndState::kOutOfMemory;
  p.footprint.push_back(Entry(TestSeries("cgroup_oom_kills_total", MetricType::kCounter), 2, 0, 2));
  EXPECT_THAT(Render(p), AllOf(HasSubstr("(heat) on frost: out_of_memory"),
                               HasSubstr("the kernel killed 2 processes for want of memory")));
}

TEST(Report, SaysHowWellTheProcessorsWereUsed) {
  EXPECT_THAT(
      Render(TestProfile()),
      AllOf(HasSubstr("Sonde: 123.0 (heat) on frost: completed"),
            HasSubstr("############............ 50 % of 4 tasks x 1 min 40 s"),
            HasSubstr("3 min 20 s of CPU time, 5.0 % of it in the system; 25 % of all 8 CPUs"),
            HasSubstr("most on task 3 on n2 (1 min 0 s)")));
}

TEST(Report, OfManyTasksItSaysWhereMostAre) {
  Profile p = TestProfile();
  p.footprint[0].spread = {{}, {0.841, 0.912, 0.99, 1}};
  p.footprint.push_back(
      Entry(TestSeries("task_resident_memory_bytes", MetricType::kGauge), 3 * kGiB, 0, kGiB));
  p.footprint.back().spread = {{}, {kGiB, 1.5 * kGiB, 2 * kGiB, 3 * kGiB}};
  EXPECT_THAT(Render(p), Not(HasSubstr("of the tasks below"))) << "the two ends say it all";
  p.job.expected_tasks = 64;
  ReportOptions options;
  options.width = 200;
  EXPECT_THAT(Render(p, options),
              AllOf(HasSubstr("5, 50 and 95 % of the tasks below 84 %, 91 % and 99 % (of a CPU in "
                              "user mode, mean over time)"),
                    HasSubstr("5, 50 and 95 % of the tasks below 1.0 GiB, 1.5 GiB and 2.0 GiB "
                              "(mean over time)")));
}

TEST(Report, NamesTheWorstNode) {
  ReportOptions options;
  options.nodes = {Row("n1", 150, kGiB), Row("n2", 50, 3 * kGiB)};
  const std::string report = Render(TestProfile(), options);
  EXPECT_THAT(report, HasSubstr("75 %: 3.0 GiB of 4.0 GiB on n2"));
  EXPECT_THAT(report, HasSubstr("*  n2        2  25 %"));
  EXPECT_THAT(report, HasSubstr("most on n1 (2 min 30 s), least on n2 (50 s)"));
  // Columns of what nobody measured are left out.
  EXPECT_THAT(report, Not(HasSubstr("written")));
}

TEST(Report, OfFewNodesAllAreShownInTheOrderOfTheirNames) {
  ReportOptions options;
  for (const char* host : {"n10", "n2", "n1"}) options.nodes.push_back(Row(host, 50, kGiB));
  const std::string report = Render(TestProfile(), options);
  EXPECT_LT(report.find("\nn1 "), report.find("\nn2 ")) << report;
  EXPECT_LT(report.find("\nn2 "), report.find("\nn10 ")) << report;
}

TEST(Report, SaysHowManySamplesWereNeverTaken) {
  Profile p = TestProfile();
  p.job.coverage.skipped = 1;
  EXPECT_THAT(Render(p), HasSubstr("1 never taken: a node was too busy at the time"));
}

TEST(Report, OfManyNodesTheWorstAreShown) {
  ReportOptions options;
  options.max_nodes = 3;
  for (int i = 0; i < 100; ++i) {
    options.nodes.push_back(Row("n" + std::to_string(i), 100 - i, kGiB));
  }
  const std::string report = Render(TestProfile(), options);
  EXPECT_THAT(report, AllOf(HasSubstr(" n99 "), HasSubstr(" n97 "), Not(HasSubstr(" n96 ")),
                            HasSubstr("3 of 100 nodes")));
}

TEST(Report, CountsTheNetworkWithoutTheLoopback) {
  EXPECT_THAT(Render(TestProfile()), HasSubstr("2.0 GiB received"));
}

TEST(Report, WhatWasNotMeasuredIsNoZero) {
  Profile p = TestProfile();
  p.footprint.clear();
  const std::string report = Render(p);
  EXPECT_THAT(report, AllOf(HasSubstr("nothing was measured"), Not(HasSubstr("Memory")),
                            Not(HasSubstr("Network"))));
  p.job.level = 1;
  EXPECT_THAT(Render(p), HasSubstr("not measured at this level"));
}

TEST(Report, TellsWhatIsMissingAndWhatItCost) {
  Profile p = TestProfile();
  p.job.expected_nodes = 3;
  p.job.nodes[1].lost = true;
  p.job.nodes[1].note = "link lost";
  p.job.notes = {"The head was killed"};
  EXPECT_THAT(Render(p), AllOf(HasSubstr("99.50 %: 199 of 200 node samples"),
                               HasSubstr("2 of 3 nodes reported"), HasSubstr("n2: link lost"),
                               HasSubstr("500 ms of CPU time, 5.0 MiB of memory on a node at most"),
                               HasSubstr("The head was killed")));
}

TEST(Report, ShowsTheApplicationsMetricsWithTheirUnits) {
  Profile p = TestProfile();
  Series steps = TestSeries("solver_steps_total", MetricType::kCounter, {{"phase", "a"}});
  steps.metric.unit = "steps";
  p.footprint.push_back(Entry(steps, 1234, 1, 2));
  ReportOptions wide;
  wide.width = 120;
  EXPECT_THAT(Render(p, wide),
              AllOf(HasSubstr("solver_steps_total{phase=\"a\"}"), HasSubstr("1234 steps"),
                    HasSubstr("1234 steps/s"), HasSubstr("task 3 on n2")));
}

// TestProfile with two phases, of which libsonde has counted one by task, and a histogram.
Profile ToldProfile() {
  Profile p = TestProfile();
  const Nanos start = p.job.start;
  p.job.figures = {{"speed", "Mcells/s", 245.0517, 4, start, 0, 0},
                   {"residual", "1", 1.25e-7, 1, 0}};
  p.moments.phases = {{"setup", start, start + 10 * kSecond, 0, 4, 4, {0, 0}},
                      {"solve", start + 10 * kSecond, start + 40 * kSecond, 0, 4, 4, {0, 0}},
                      {"solve", start + 60 * kSecond, start + 90 * kSecond, 0, 4, 4, {0, 0}}};
  p.footprint.push_back(Entry(
      TestSeries("phase_seconds_total", MetricType::kCounter, {{"phase", "solve"}}), 200, 40, 58));
  p.footprint.push_back(Entry(
      TestSeries("phase_seconds_total", MetricType::kCounter, {{"phase", "other"}}), 7, 1, 2));
  const Tags recv = {{"call", "recv"}};
  for (const char* name : {"wait_seconds_count", "wait_seconds_p99", "wait_seconds_more"}) {
    p.footprint.push_back(Entry(TestSeries(name, MetricType::kGauge, recv), 1, 1, 1));
  }
  NamedSketch wait;
  wait.series = TestSeries("wait_seconds", MetricType::kHistogram, {{"call", "recv"}});
  for (int i = 1; i <= 100; ++i) {
    const double value = i * 0.01;
    wait.sketch.Add(histogram::BucketOf(value), 1);
    wait.sketch.AddSum(value, value, value);
  }
  p.moments.distributions = {wait};
  return p;
}

TEST(Report, ShowsPhasesFiguresAndHistograms) {
  const std::string text = Render(ToldProfile());
  EXPECT_THAT(text, HasSubstr("\n\nFigures  speed 245.052 Mcells/s\n"
                              "         residual 1.25e-07\n\nCPU "));
  EXPECT_THAT(text, HasSubstr("phase  times  seconds  share  shortest  longest  longest on\n"
                              "solve      8    60.00   60 %      40 s     58 s  task 3 on n2\n"
                              "setup      4    10.00   10 %\n"));
  EXPECT_THAT(text,
              HasSubstr("histogram                  count    mean     p50     p90     p99  max\n"
                        "wait_seconds{call=\"recv\"}    100  505 ms  508 ms  898 ms  992 ms  "
                        "1 s\n"));
  EXPECT_THAT(text, HasSubstr("phase_seconds_total{phase=\"other\"}"))
      << "what no table of phases has stays a metric";
  EXPECT_THAT(text, Not(HasSubstr("phase_seconds_total{phase=\"solve\"}")));
  EXPECT_THAT(text, HasSubstr("wait_seconds_more"));
  EXPECT_THAT(text, Not(HasSubstr("wait_seconds_count")));
  EXPECT_THAT(text, Not(HasSubstr("wait_seconds_p99")));
  ReportOptions options;
  options.form = ReportOptions::Form::kShort;
  EXPECT_THAT(Render(ToldProfile(), options),
              HasSubstr("Figures  speed 245.052 Mcells/s, residual 1.25e-07\n"));
}

TEST(Report, AsJsonHasPhasesFiguresAndHistograms) {
  const std::string json = ReportToJson(ToldProfile(), {}, 0);
  EXPECT_THAT(json, HasSubstr(R"("figures":[{"name":"speed","value":245.0517,"unit":"Mcells/s"})"));
  EXPECT_THAT(json, HasSubstr(R"("phases":[{"name":"solve","seconds":60,"share":0.6,"began":8,)"
                              R"("ended":8,"least_seconds":40,"most_seconds":58,)"
                              R"("least_by":"task 0 on n1","most_by":"task 3 on n2"},)"
                              R"({"name":"setup","seconds":10,"share":0.1,"began":4,"ended":4}])"));
  EXPECT_THAT(json, HasSubstr(R"("metric":"wait_seconds","tags":{"call":"recv"},"unit":"seconds",)"
                              R"("count":100)"));
}

TEST(Report, APhaseThatNobodyEndedLastsToTheEnd) {
  Profile p = TestProfile();
  p.moments.phases = {{"solve", p.job.start + 60 * kSecond, 0, 0, 4, 0, {0, 0}}};
  EXPECT_THAT(Render(p), HasSubstr("solve      4    40.00   40 %\n"));
  p.moments.phases[0].end = p.job.start + 70 * kSecond;
  p.moments.phases[0].ended = 3;
  EXPECT_THAT(Render(p), HasSubstr("solve      4    10.00   10 %\n"));
  p.job.state = EndState::kRunning;  // the fourth is still in it
  EXPECT_THAT(Render(p), HasSubstr("solve      4    40.00   40 %\n"));
}

TEST(Report, TellsOnceWhatSeveralNodesTell) {
  Profile p = TestProfile();
  p.job.notes = {"n2: no cycles: not here", "late",     "n1: no cycles: not here",
                 "n3: no cycles: not here", "n1: late", "late"};
  ASSERT_EQ(p.job.nodes.size(), 2u);  // n3 is none of them
  const std::string report = Render(p);
  const std::string notes = report.substr(report.find("Note "));
  EXPECT_EQ(notes,
            "Note     n[1-2]: no cycles: not here\n"
            "Note     late\n"
            "Note     n3: no cycles: not here\n"
            "Note     n1: late\n");
}

TEST(Report, CannotSteerTheTerminal) {
  Profile p = TestProfile();
  p.job.name =
      "\x1b[2Jgone\xc2\x9b"
      "31m";
  p.job.command = "a\nb\rc";
  p.job.nodes[0].note = "\x07";
  p.job.notes = {"\x1b]0;title\x07"};
  ReportOptions options;
  options.nodes = {Row("\x1b[0m", 1, 2), Row("n2", 2, 3)};
  for (const char c : Render(p, options)) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
  }
  EXPECT_THAT(Render(p, options), Not(HasSubstr("\xc2\x9b")));
}

TEST(Report, FitsTheTerminal) {
  Profile p = TestProfile();
  p.job.name = std::string(45, 'j');
  p.job.account = std::string(40, 'a');
  p.job.partition = "standard-and-large";
  p.job.command = std::string(500, 'x');
  p.footprint.push_back(Entry(TestSeries(std::string(100, 'm'), MetricType::kGauge), 1, 2, 3));
  ReportOptions options;
  options.unicode = true;
  options.nodes = {Row(std::string(45, 'n'), 1, 2), Row("n2", 2, 3)};
  for (NodeRow& row : options.nodes) {
    row.network_received = row.network_sent = row.disk_read = row.disk_written = 123.4 * kGiB;
  }
  for (const size_t width : {60, 80, 120}) {
    options.width = width;
    const std::string report = Render(p, options);
    std::istringstream lines(report);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(text::Width(line), width) << line;
    }
    EXPECT_TRUE(HasRow(report, {"n2", "2", "1.0 %", "3 B"})) << report;
  }
}

// What libsonde-mpi.so and libsonde-io.so count at level 4, of 100 s on 4 tasks.
Profile CountedProfile() {
  Profile p = TestProfile();
  p.job.level = 4;
  const auto add = [&](const char* metric, double value, Tags tags) {
    p.footprint.push_back(
        Entry(TestSeries(metric, MetricType::kCounter, std::move(tags)), value, 0, value));
  };
  for (int i = 0; i < 40; ++i) {
    const std::string function = "MPI_Function" + std::to_string(i);
    for (const char* kind : {"p2p", "collective"}) {
      const Tags tags = {{"class", kind}, {"function", function}};
      add("mpi_calls_total", 10, tags);
      add("mpi_seconds_total", i == 0 ? 1 : 0.5, tags);
      add("mpi_sent_bytes_total", 1024, tags);
    }
  }
  add("mpi_wait_seconds_total", 4, {{"class", "collective"}, {"function", "MPI_Barrier"}});
  add("mpi_io_written_bytes_total", 2 * kGiB, {{"class", "io"}, {"function", "MPI_File_write"}});
  add("mpi_calls_total", 7, {{"class", "io"}, {"function", "MPI_File_write"}});
  add("mpi_seconds_total", 8, {{"class", "io"}, {"function", "MPI_File_write"}});
  p.footprint.push_back(Entry(TestSeries("mpi_time_ratio", MetricType::kGauge), 0.1, 0.05, 0.2));
  for (const char* api : {"posix", "stdio"}) {
    for (const char* kind : {"nfs4", "proc", "sysfs", "cgroup2", "tmpfs"}) {
      const std::string mount = std::string("/mnt/") + kind;
      for (const char* operation : {"open", "close", "read", "metadata"}) {
        const Tags tags = {
            {"api", api}, {"fstype", kind}, {"mountpoint", mount}, {"operation", operation}};
        add("io_calls_total", 50, tags);
        add("io_seconds_total", kind[0] == 'n' ? 10 : 1, tags);
      }
      add("io_read_bytes_total", 1024, {{"api", api}, {"fstype", kind}, {"mountpoint", mount}});
    }
  }
  return p;
}

NamedSketch Sizes(const char* metric, Tags tags, double bytes) {
  NamedSketch sizes;
  sizes.series = TestSeries(metric, MetricType::kHistogram, std::move(tags));
  sizes.series.metric.unit = "bytes";
  sizes.sketch.Add(histogram::BucketOf(bytes), 9);
  sizes.sketch.AddSum(9 * bytes, bytes, bytes);
  return sizes;
}

TEST(Report, TellsCallsOfMpiByClass) {
  EXPECT_THAT(Render(CountedProfile()),
              HasSubstr("MPI             calls    time  share  waiting      sent\n"
                        "point-to-point    400  20.5 s  5.1 %        -  40.0 KiB\n"
                        "collective        400  20.5 s  5.1 %      4 s  40.0 KiB\n"
                        "MPI-IO              7     8 s  2.0 %        -   2.0 GiB\n"
                        "all               807    49 s   12 %      4 s         -\n"));
}

// What the page shows: the rows of the tables, exactly.
TEST(Report, HasTheRowsOfCallsAsJson) {
  const std::string json = ReportToJson(CountedProfile(), {}, 0);
  EXPECT_THAT(json, AllOf(HasSubstr(R"("mpi":[{"name":"point-to-point","calls":400,"seconds":20.5,)"
                                    R"("wait_seconds":null,"sent_bytes":40960,)"
                                    R"("received_bytes":null},{"name":"collective",)"),
                          HasSubstr(R"("mpi_functions":[{"name":"MPI_File_write","calls":7,)"
                                    R"("seconds":8,)"),
                          HasSubstr(R"("files":[{"name":"nfs4 /mnt/nfs4","operation":"read",)"
                                    R"("calls":100,"seconds":20,"written_bytes":null,)"
                                    R"("read_bytes":2048,"median_bytes":null})"),
                          HasSubstr(R"("mpi_waiting":{"seconds":4,"slowest":""})"),
                          HasSubstr(R"("functions":[])"), Not(HasSubstr(R"("name":"proc )"))));
}

Profile WithFunctions(bool timed) {
  Profile p = TestProfile();
  const auto add = [&](const char* metric, double value, Tags tags) {
    p.footprint.push_back(
        Entry(TestSeries(metric, MetricType::kCounter, std::move(tags)), value, 0, value));
  };
  for (int i = 0; i < 30; ++i) {
    const Tags tags = {{"function", "f" + std::to_string(i)}};
    add("function_calls_total", 100 + i, tags);
    if (timed) add("function_seconds_total", i == 3 ? 40 : 0.5, tags);
  }
  const Tags of_library = {{"function", "f0"}, {"object", "libsolve.so"}};
  add("function_calls_total", 5000, of_library);
  if (timed) add("function_seconds_total", 20, of_library);
  return p;
}

TEST(Report, TellsTheFunctionsThatTookMostTime) {
  const std::string report = Render(WithFunctions(true));
  EXPECT_THAT(report, HasSubstr("function          calls    time  share\n"
                                "f3                  103    40 s   10 %\n"
                                "f0 (libsolve.so)   5000    20 s  5.0 %\n"
                                "f29                 129  500 ms  0.1 %\n"));
  EXPECT_THAT(report, HasSubstr("  and 15 functions more; all with --json\n"));
  EXPECT_THAT(report, HasSubstr("share: of 4 tasks x 1 min 40 s"));
  EXPECT_THAT(report, Not(HasSubstr("function_calls_total"))) << "no rows of the application's";
}

TEST(Report, TellsTheFunctionsThatWereCalledMostWhereNobodyTimedThem) {
  const std::string report = Render(WithFunctions(false));
  EXPECT_THAT(report, HasSubstr("function          calls\n"
                                "f0 (libsolve.so)   5000\n"
                                "f29                 129\n"));
  EXPECT_THAT(report, Not(HasSubstr("share: of")));
}

// As of mpirun, of which `sonde run` knows the one process that it has started.
TEST(Report, TellsNoShareOfTheTimeOfTasksOfUnknownNumber) {
  Profile p = CountedProfile();
  p.job.id.step = "run";
  const std::string report = Render(p);
  EXPECT_THAT(report, HasSubstr("MPI             calls    time  waiting      sent\n"
                                "point-to-point    400  20.5 s        -  40.0 KiB\n"));
  EXPECT_THAT(report, Not(HasSubstr("share")));
}

TEST(Report, TellsCallsForFilesByFilesystemAndOperation) {
  Profile p = CountedProfile();
  p.moments.distributions = {Sizes(
      "io_size_bytes",
      {{"api", "posix"}, {"fstype", "nfs4"}, {"mountpoint", "/mnt/nfs4"}, {"operation", "read"}},
      4096)};
  const std::string report = Render(p);
  EXPECT_THAT(report,
              HasSubstr("files on                       calls    bytes   median  time  share\n"
                        "nfs4 /mnt/nfs4    read           100  2.0 KiB  4.0 KiB  20 s  5.0 %\n"
                        "                  open, close    200        -        -  40 s   10 %\n"
                        "                  metadata       100        -        -  20 s  5.0 %\n"
                        "tmpfs /mnt/tmpfs  read           100  2.0 KiB        -   2 s  0.5 %\n"));
  EXPECT_THAT(report, HasSubstr("share: of 4 tasks x 1 min 40 s"));
  EXPECT_THAT(report, Not(HasSubstr("histogram"))) << "the median stands with the calls";
}

TEST(Report, HasNoRowsForPseudoFilesystemsButItsDataHas) {
  Profile p = CountedProfile();
  const Tags proc = {
      {"api", "posix"}, {"fstype", "proc"}, {"mountpoint", "/proc"}, {"operation", "read"}};
  p.moments.distributions = {Sizes("io_size_bytes", proc, 100)};
  ReportOptions wide;
  wide.width = 200;
  for (const char* kind : {"proc", "sysfs", "cgroup2"}) {
    EXPECT_THAT(Render(p, wide), Not(HasSubstr(kind)));
    EXPECT_THAT(ReportToJson(p, {}, 0), HasSubstr(kind));
  }
}

TEST(Report, SeriesOfCallsAreNoMetricsOfTheApplication) {
  Profile p = CountedProfile();
  EXPECT_THAT(Render(p), AllOf(Not(HasSubstr("application metric")), Not(HasSubstr("mpi_")),
                               Not(HasSubstr("io_"))));
  // Its own may have the same names: it cannot know ours.
  p.footprint.push_back(Entry(TestSeries("io_seconds_total", MetricType::kCounter), 3, 1, 2));
  p.footprint.push_back(
      Entry(TestSeries("mpi_calls_total", MetricType::kCounter, {{"solver", "cg"}}), 4, 1, 2));
  p.moments.distributions = {Sizes("mpi_message_bytes", {{"class", "p2p"}}, 4096)};
  const std::string report = Render(p);
  EXPECT_THAT(report,
              AllOf(HasSubstr("\nio_seconds_total "), HasSubstr("\nmpi_calls_total{solver=")));
  const size_t table = report.find("\nMPI  ", report.find("application metric"));
  ASSERT_NE(table, std::string::npos) << "its own come first";
  EXPECT_LT(table, report.find("mpi_message_bytes{class"));
  EXPECT_LT(report.find("mpi_message_bytes{class"), report.find("files on"));
}

TEST(Report, OfManySeriesOfTheApplicationItShowsSome) {
  Profile p = TestProfile();
  for (int i = 0; i < 1000; ++i) {
    p.footprint.push_back(Entry(
        TestSeries("served", MetricType::kGauge, {{"instance", std::to_string(i)}}), 1, 1, 1));
  }
  const std::string report = Render(p);
  EXPECT_LT(std::count(report.begin(), report.end(), '\n'), 100);
  EXPECT_THAT(report, HasSubstr("and 960 metrics more; all with --json\n"));
}

TEST(Report, NamesAreShortenedInTheMiddleAndKeepTheirTags) {
  Profile p = TestProfile();
  for (const char* name : {"solver_pressure_correction_inner_iterations_total",
                           "solver_pressure_correction_inner_residual_last"}) {
    for (const char* tag : {"coarse", "fine"}) {
      p.footprint.push_back(
          Entry(TestSeries(name, MetricType::kGauge,
                           {{"level", tag}, {"W\xc3\xa4rme", "\xc3\xa4\xc3\xb6"}}),
                0.123456, 0.01234, 1234567));
    }
  }
  for (const size_t width : {60, 80, 100, 120, 200}) {
    ReportOptions options;
    options.width = width;
    const std::string report = Render(p, options);
    for (const char* last : {"total", "last"}) {
      EXPECT_TRUE(HasRow(report, {"solver", last, "{", "coarse"})) << width << "\n" << report;
      EXPECT_TRUE(HasRow(report, {"solver", last, "{", "fine"})) << width << "\n" << report;
    }
    std::istringstream lines(report);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(text::Width(line), std::max<size_t>(width, 80)) << line;
      EXPECT_EQ(text::Printable(line), line) << "no character is cut";
    }
  }
}

TEST(Report, ColoursOnlyWhenAsked) {
  ReportOptions options;
  EXPECT_THAT(Render(TestProfile(), options), Not(HasSubstr("\x1b")));
  options.colour = true;
  EXPECT_THAT(Render(TestProfile(), options), HasSubstr("\x1b[32mcompleted\x1b[0m"));
}

TEST(Text, NumbersAreReadable) {
  EXPECT_EQ(text::Bytes(0), "0 B");
  EXPECT_EQ(text::Bytes(1536), "1.5 KiB");
  EXPECT_EQ(text::Percent(0.9999), "99.99 %");
  EXPECT_EQ(text::Percent(1), "100 %");
  EXPECT_EQ(text::Percent(0.004), "0.4 %");
  EXPECT_EQ(text::Percent(0), "0 %");
  EXPECT_EQ(text::Value(std::nan(""), "bytes"), "-");
  EXPECT_EQ(text::Value(0.25, "1"), "0.25");
  EXPECT_EQ(text::Value(0.25, "seconds", true), "0.25 s/s");
  EXPECT_EQ(text::Cut("W\xc3\xa4rme", 3), "W\xc3\xa4~");
}

TEST(Text, ANameThatIsTooLongLosesItsMiddle) {
  EXPECT_EQ(text::Shorten("solver_iterations_total", 23), "solver_iterations_total");
  EXPECT_EQ(text::Shorten("solver_iterations_total", 12), "solve~_total");
  EXPECT_EQ(text::Shorten("solver_iterations_total{grid=\"fine\"}", 26),
            "solver~_total{grid=\"fine\"}");
  EXPECT_EQ(text::Shorten("a{key=\"a long value\"}", 12), "a{key=~lue\"}");
  EXPECT_EQ(text::Shorten("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5),
            "\xc3\xa4\xc3\xb6~\xc3\xb6\xc3\xbc");
  for (size_t width = 0; width < 40; ++width) {
    const std::string shorter =
        text::Shorten("\xc3\xa4_total{k=\"\xc3\xa4\xc3\xb6\xc3\xbc\"}", width);
    EXPECT_EQ(text::Width(shorter), std::min<size_t>(width, 16)) << shorter;
    EXPECT_EQ(text::Printable(shorter), shorter);
  }
}

}  // namespace
}  // namespace sonde::profiles_report_test
