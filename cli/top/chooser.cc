#include "cli/top/chooser.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "profiles/report/used.h"

namespace sonde::cli::top {
namespace {

constexpr size_t kAbove = 3;  // lines above the first step
constexpr std::string_view kCpuTime = "task_cpu_seconds_total";

double CpusOf(const JobDescription& job) {
  const double asked = AskedCpus(job);
  return asked > 0 ? asked : job.expected_tasks;
}

}  // namespace

Ask CpuAsk(const JobDescription& job) {
  Span span;
  const Nanos period = std::max(job.period, kMinPeriod);
  span.interval = period < kSecond ? kSecond : 0;
  span.ago = period < kSecond ? 3 * kSecond : 2 * period + kSecond;
  Ask ask{Ask::Kind::kTotals, std::string(kQueryTarget), "", {}, Column::kCpu};
  ask.body = QueryBody({{std::string(kCpuTime), false, true, false, {}}}, span, {}, false);
  return ask;
}

void TakeCpu(const Result<std::string>& answer, Choice& choice) {
  choice.cpu = kNoValue;
  choice.silent = !answer.ok();
  if (!answer.ok()) return;
  const Result<std::vector<Line>> lines = ParseLines(*answer);
  if (!lines.ok() || lines->empty() || lines->front().points.empty()) return;
  const auto& points = lines->front().points;
  const size_t behind = choice.job.period < kSecond && points.size() > 1 ? 2 : 1;
  choice.cpu = points[points.size() - behind].second / CpusOf(choice.job);
}

bool Press(const Key& key, size_t count, Chosen& chosen, bool& done) {
  using enum Key::Kind;
  const size_t last = count - std::min<size_t>(count, 1);
  switch (key.kind) {
    case kUp:
      chosen.place -= std::min<size_t>(chosen.place, 1);
      break;
    case kDown:
      ++chosen.place;
      break;
    case kHome:
      chosen.place = 0;
      break;
    case kEnd:
      chosen.place = last;
      break;
    case kEnter:
      done = count > 0;
      break;
    case kLetter:
      return key.letter != 'q';
    default:
      break;
  }
  chosen.place = std::min(chosen.place, last);
  return true;
}

Screen DrawChoices(const std::vector<Choice>& choices, const Chosen& chosen, const Look& look) {
  Screen screen(look.width, look.height, look.unicode);
  screen.Put(0, 0, fmt::format(" {} steps are running ", choices.size()), Style::kTitle);
  const std::array<std::string, 6> titles = {"step", "name", "nodes", "tasks", "elapsed", "CPU"};
  const size_t room = look.width - std::min<size_t>(look.width, 36);
  const size_t step = std::clamp<size_t>(room / 2, 8, 24);
  const size_t name = room > step + 2 ? room - step - 1 : 1;
  const std::array<size_t, 6> widths = {step, name, 7, 8, 10, 8};
  const auto row = [&](size_t y, const std::array<std::string, 6>& cells, Style style) {
    size_t x = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i < 2) {
        screen.Put(x, y, cells[i], style, widths[i]);
        x += widths[i] + 1;
      } else {
        x += widths[i];
        screen.PutRight(x, y, cells[i], style);
      }
    }
  };
  screen.Paint(2, Style::kTitle);
  row(2, titles, Style::kTitle);
  const size_t rows = look.height - std::min(look.height, kAbove + (look.keys ? 1 : 0));
  const size_t top = chosen.place >= rows && rows > 0 ? chosen.place - rows + 1 : 0;
  for (size_t i = 0; i < rows && top + i < choices.size(); ++i) {
    const Choice& one = choices[top + i];
    const JobDescription& job = one.job;
    row(kAbove + i,
        {job.id.ToString(), job.name, std::to_string(job.expected_nodes),
         std::to_string(job.expected_tasks), ClockText(look.now - job.start),
         one.silent ? "silent" : ValueOf(Column::kCpu, one.cpu)},
        one.silent ? Style::kBad : Style::kPlain);
    if (look.keys && top + i == chosen.place) screen.Select(kAbove + i);
  }
  if (look.keys) {
    PutParts(screen, 0, look.height - 1,
             {{"arrows", Style::kBold},
              {" choose  "},
              {"Enter", Style::kBold},
              {" look at it  "},
              {"q", Style::kBold},
              {" quit"}});
  }
  return screen;
}

}  // namespace sonde::cli::top
