// The frames of `sonde top`. kFrames has them as they are meant to be; SONDE_WRITE_FRAMES=1 in
// the environment writes them anew, for a change that is meant to show something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "cli/top/chooser.h"
#include "cli/top/standouts.h"
#include "tests/unit/cli_top_step.h"
#include "tests/unit/paths.h"

namespace sonde::cli::top::cli_top_layout_test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Nanos kThen = kTopStart + 125 * kSecond;

class TopLayout : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    // One node is slow, one is near its limit of memory, one gives nothing.
    step.value = [](std::string_view metric, const std::string& host,
                    int task) -> std::optional<double> {
      if (host == "n4" && metric != "sonde_samples_total") return std::nullopt;
      if (host == "n3" && metric == "task_cpu_seconds_total") return task == 5 ? 0.08 : 0.22;
      if (host == "n3" && metric == "mpi_wait_seconds_total") return 0.7;
      if (host == "n2" && metric == "task_resident_memory_bytes") return 970.0 * (1 << 20);
      return TopStep::Usual(metric, task);
    };
    step.over_time = [](Nanos time) {
      return 4.5 + 1.5 * std::sin(static_cast<double>(time - kTopStart) / (20.0 * kSecond));
    };
    step.alarms =
        R"({"main":[{"name":"hog","active":true,"severity":"warning","node":"n2","rank":2,)"
        R"("text":"task_resident_memory_bytes > 900M: 970 MiB","since":1800000061000000000}]})";
  }
  Model& Asked(size_t width = 0) {
    step.Run(model, view, kThen, width);
    return model;
  }
  Look Of(size_t width, size_t height = 20) const { return {width, height, unicode, kThen, true}; }

  static void Expect(const Screen& screen, const std::string& name) {
    const std::string path = std::string(kFrames) + "/" + name + ".txt";
    if (std::getenv("SONDE_WRITE_FRAMES") != nullptr) std::ofstream(path) << screen.ToText();
    std::ifstream file(path);
    const std::string meant((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(screen.ToText(), meant) << path;
  }

  TopStep step{4};
  Model model{"4711.0", 0};
  View view;
  bool unicode = true;
};

TEST_F(TopLayout, NodesAtSeveralWidths) {
  Asked();
  for (const size_t width : {60, 80, 120, 200}) {
    Expect(Frame(model, view, Of(width, 14)), fmt::format("nodes_{}", width));
  }
}

TEST_F(TopLayout, NodesWithoutUtf8) {
  unicode = false;
  Asked();
  const Screen screen = Frame(model, view, Of(80, 14));
  Expect(screen, "nodes_ascii_80");
  for (const char c : screen.ToText()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

TEST_F(TopLayout, RanksAndCores) {
  Asked();
  view.level = Level::kRanks;
  view.host = "n3";
  Asked();
  Expect(Frame(model, view, Of(80, 12)), "ranks_80");
  view.level = Level::kCores;
  view.rank = "5";
  Asked();
  Expect(Frame(model, view, Of(80, 12)), "cores_80");
}

TEST_F(TopLayout, APlotHasItsExtremesAndItsTime) {
  view.plot = true;
  Asked(200);
  for (const size_t width : {60, 80, 120}) {
    Expect(Frame(model, view, Of(width, 24)), fmt::format("plot_{}", width));
  }
  const std::string text = Frame(model, view, Of(80, 24)).ToText();
  EXPECT_THAT(text, HasSubstr("CPU of the whole step: min 50 %  max 100 %  last"));
  EXPECT_THAT(text, HasSubstr("2:04"));
}

TEST_F(TopLayout, HelpAndAlarms) {
  Asked();
  view.panel = Panel::kHelp;
  Expect(Frame(model, view, Of(80, 32)), "help_80");
  view.panel = Panel::kAlarms;
  Expect(Frame(model, view, Of(80, 12)), "alarms_80");
}

TEST_F(TopLayout, SaysThatTheStepHasEndedAndHowToSeeIt) {
  Asked();
  JobDescription job = step.profile.job;
  job.state = EndState::kCompleted;
  job.end = kThen;
  model.End(job, kThen);
  const std::string text = Frame(model, view, Of(100)).ToText();
  EXPECT_THAT(text, HasSubstr("The step has ended: completed, at 08:02:05. See it again: sonde "
                              "show 4711.0"));
  EXPECT_THAT(text, HasSubstr("lasted 2:05"));
  EXPECT_THAT(text, HasSubstr("97 %")) << "the last values stay";
}

TEST_F(TopLayout, SaysWhoIsMissingAndSinceWhen) {
  step.profile.job.nodes[1].lost = true;
  step.profile.job.nodes[1].note = "killed";
  step.profile.job.expected_nodes = 5;
  Asked();
  const std::string text = Frame(model, view, Of(100)).ToText();
  EXPECT_THAT(text, HasSubstr("2 nodes missing"));
  EXPECT_THAT(text, HasSubstr("lost: n2"));
  EXPECT_THAT(text, HasSubstr("1 node has not come yet"));
  EXPECT_THAT(text, HasSubstr("n2          -  lost, no values since 08:02:05 (0:00): killed"));
}

TEST_F(TopLayout, FitsEveryTerminal) {
  step.profile.job.nodes[0].host = "\x1b[31m\x07n1\nx\xc2\x9b\xff" + std::string(300, 'x');
  step.profile.job.command = "./a\x1b]0;owned\x07 \u202e\u4e2d";
  view.plot = true;
  Asked(100);
  for (const Panel panel : {Panel::kNone, Panel::kHelp, Panel::kAlarms}) {
    view.panel = panel;
    for (size_t width = 1; width < 130; width += 3) {
      for (size_t height = 1; height < 40; height += 2) {
        const Screen screen = Frame(model, view, Of(width, height));
        ASSERT_EQ(screen.width(), width);
        for (const std::string& line : LinesOf(screen)) ASSERT_LE(LettersOf(line), width);
      }
    }
  }
}

TEST_F(TopLayout, NothingThatSteersATerminalReachesIt) {
  const std::string evil = "n\x1b[2J\x07\r\nx\x7f\xc2\x9b\xe2\x80\xae\xff";
  step.profile.job.nodes[0].host = evil;
  step.profile.job.nodes[1].note = evil;
  step.profile.job.nodes[1].lost = true;
  step.profile.job.name = step.profile.job.command = step.profile.job.user = evil;
  step.alarms =
      "{\"main\":[{\"name\":\"\\u001b[2J\",\"active\":true,\"text\":\"\\u0007\\u009b\"}]}";
  Asked();
  step.failure = Status(Code::kUnavailable, evil);
  step.Run(model, view, kThen + kSecond);
  for (const Panel panel : {Panel::kNone, Panel::kHelp, Panel::kAlarms}) {
    view.panel = panel;
    const Screen screen = Frame(model, view, Of(120));
    for (size_t y = 0; y < screen.height(); ++y) {
      for (size_t x = 0; x < screen.width(); ++x) {
        const char32_t letter = screen.At(x, y).letter;
        ASSERT_EQ(Shown(letter, true), letter);
        ASSERT_TRUE(letter >= 0x20 && letter != 0x7f && (letter < 0x80 || letter >= 0xa0) &&
                    letter != 0x202e);
      }
    }
  }
}

TEST_F(TopLayout, TheColumnThatSortsIsNeverLeftOut) {
  Asked();
  for (const Column column : model.columns()) {
    view.sort = column;
    const std::vector<std::string> lines = LinesOf(Frame(model, view, Of(kLeastWidth)));
    const bool marked = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("\u25bc") != std::string::npos;
    });
    EXPECT_TRUE(marked) << InfoOf(column).title;
  }
}

TEST_F(TopLayout, TheCursorStaysInSightInALongList) {
  TopStep large(300);
  Model many("4711.0", 0);
  large.Run(many, view, kThen);
  view.by_name = true;
  Frame(many, view, Of(80));
  for (int i = 0; i < 5; ++i) {
    Press(Pressed(Key::Kind::kPageDown), many, view);
    EXPECT_THAT(Frame(many, view, Of(80)).ToText(), HasSubstr("\n" + view.cursor + " "));
  }
  Press(Pressed(Key::Kind::kEnd), many, view);
  EXPECT_EQ(view.cursor, "n99");
  EXPECT_THAT(Frame(many, view, Of(80)).ToText(), HasSubstr("\nn99 "));
  Press(Pressed(Key::Kind::kHome), many, view);
  EXPECT_THAT(Frame(many, view, Of(80)).ToText(), HasSubstr("\nall nodes "));
}

TEST_F(TopLayout, WhoStandsOutIsNamed) {
  EXPECT_FALSE(StandoutOf(Column::kCpu, std::vector<double>{0.9, 0.95, 0.97, 0.92}));
  const auto slow = StandoutOf(Column::kCpu, std::vector<double>{0.9, 0.2, kNoValue, 0.1, 0.92});
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->place, 3u);
  EXPECT_EQ(slow->others, 1u);
  EXPECT_EQ(slow->median, 0.9);
  EXPECT_FALSE(StandoutOf(Column::kCpu, std::vector<double>{0.02, 0.01}))
      << "all are idle: nobody differs";
  EXPECT_TRUE(StandoutOf(Column::kMemory, std::vector<double>{0.95, 0.95}));
  EXPECT_FALSE(StandoutOf(Column::kRead, std::vector<double>{1, 1e9, 1}))
      << "that one reads is no fault";
  EXPECT_FALSE(StandoutOf(Column::kCpu, std::vector<double>{kNoValue, kNoValue}));
  EXPECT_FALSE(StandoutOf(Column::kCpu, std::vector<double>{}));
}

TEST_F(TopLayout, ASeriesWithAGapIsNotDrawnAcrossIt) {
  view.plot = true;
  Asked(200);
  // A second's points, but for half of the time.
  std::string answer = "[{\"metric\":\"task_cpu_seconds_total\",\"tags\":{},\"dps\":[";
  for (int second = 0; second < 120; ++second) {
    if (second > 30 && second < 90) continue;
    answer += fmt::format("{}[{},{}]", second == 0 ? "" : ",",
                          kTopStart / kMillisecond + second * 1000, 8);
  }
  Ask ask;
  ask.kind = Ask::Kind::kSeries;
  model.Take(ask, answer + "]}]", kThen);
  const std::vector<std::string> lines = LinesOf(Frame(model, view, Of(80, 24)));
  size_t drawn = 0, blank = 0;
  for (const std::string& line : lines) {
    if (line.find("\u2809") == std::string::npos && line.find("\u28c0") == std::string::npos)
      continue;
    ++drawn;
    if (line.find("          ") != std::string::npos) ++blank;
  }
  EXPECT_GT(drawn, 0u);
  EXPECT_EQ(drawn, blank);
}

TEST_F(TopLayout, ValuesAreShort) {
  EXPECT_EQ(ValueOf(Column::kRead, 1023), "1.0K");
  EXPECT_EQ(ValueOf(Column::kRead, 999), "999");
  EXPECT_EQ(ValueOf(Column::kRead, 1.5e6), "1.4M");
  EXPECT_EQ(ValueOf(Column::kRead, 123.4e9), "115G");
  EXPECT_EQ(ValueOf(Column::kCpu, 0.994), "99 %");
  EXPECT_EQ(ValueOf(Column::kCpu, 0.004), "<1 %");
  EXPECT_EQ(ValueOf(Column::kCpu, 0), "0 %");
  EXPECT_EQ(ValueOf(Column::kCpu, 123), ">999%");
  for (double value = 1; value < 1e24; value *= 1.7) {
    EXPECT_LE(ValueOf(Column::kRead, value).size(), 5u) << value;
    EXPECT_LE(ValueOf(Column::kCpu, value).size(), 5u) << value;
  }
  EXPECT_EQ(ClockText(3723 * kSecond), "1:02:03");
  EXPECT_EQ(ClockText(-5), "0:00");
}

TEST_F(TopLayout, SeveralStepsAreAListToChooseFrom) {
  std::vector<Choice> choices(3);
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i].job = step.profile.job;
    choices[i].job.id.job = std::to_string(4711 + i);
  }
  TakeCpu(std::string("[{\"metric\":\"task_cpu_seconds_total\",\"tags\":{},"
                      "\"dps\":[[1800000000000,4.0]]}]"),
          choices[0]);
  TakeCpu(Status(Code::kUnavailable, "refused"), choices[1]);
  Chosen chosen;
  bool done = false;
  EXPECT_TRUE(Press(Pressed(Key::Kind::kDown), 3, chosen, done));
  EXPECT_TRUE(Press(Pressed(Key::Kind::kEnd), 3, chosen, done));
  EXPECT_TRUE(Press(Pressed(Key::Kind::kDown), 3, chosen, done));
  EXPECT_EQ(chosen.place, 2u);
  EXPECT_FALSE(done);
  Press(Pressed(Key::Kind::kEnter), 3, chosen, done);
  EXPECT_TRUE(done);
  EXPECT_FALSE(Press(Pressed('q'), 3, chosen, done));
  for (const size_t width : {60, 80}) {
    Expect(DrawChoices(choices, chosen, Of(width, 8)), fmt::format("steps_{}", width));
  }
}

}  // namespace
}  // namespace sonde::cli::top::cli_top_layout_test
