#include "cli/step_table.h"

#include <fmt/core.h>

#include "core/text/step_title.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/model/summary.h"
#include "profiles/model/text.h"
#include "profiles/report/local_time.h"
#include "profiles/report/moments.h"

namespace sonde::cli {
namespace {

constexpr size_t kReadableName = 16;

std::string FirstFigure(const Card& card) {
  if (card.figure.empty()) return "";
  Figure figure;
  figure.name = card.figure;
  figure.unit = card.figure_unit;
  figure.value = card.figure_value;
  return fmt::format("{} {}", text::Printable(figure.name), FigureValue(figure));
}

std::string TagsText(const Card& card) {
  std::string out;
  for (const auto& [name, value] : card.tags) {
    if (!out.empty()) out += ' ';
    out += value.empty() ? std::string(name) : fmt::format("{}={}", name, value);
  }
  return out;
}

// The column of the value by which the list is sorted, if no other column shows it.
struct SortColumn {
  std::string_view title;
  std::string_view unit;
};
SortColumn ColumnOf(SortBy sort) {
  switch (sort) {
    case SortBy::kEnergy:
      return {"energy", "joules"};
    case SortBy::kRead:
      return {"read", "bytes"};
    case SortBy::kWritten:
      return {"written", "bytes"};
    case SortBy::kReceived:
      return {"received", "bytes"};
    case SortBy::kSent:
      return {"sent", "bytes"};
    case SortBy::kSize:
      return {"stored", "bytes"};
    case SortBy::kCpu:
      return {"CPU time", "seconds"};
    case SortBy::kTasks:
      return {"tasks", "1"};
    default:
      return {};
  }
}

}  // namespace

std::string StepTable(const std::vector<ListedProfile>& profiles, SortBy sort,
                      const Environment& env, Nanos now) {
  using text::Printable;
  using enum text::Table::Align;
  const SortColumn sorted = ColumnOf(sort);
  // The last number: what a narrow terminal does without, the highest first.
  text::Table table({{"step", kLeft},
                     {"name", kLeft, true, 0, kReadableName},
                     {"user", kLeft, true, 4},
                     {"state", kLeft},
                     {"nodes", kRight, false, 2},
                     {"level", kRight, false, 6},
                     {fmt::format("start ({})", ZoneName(now)), kLeft},
                     {"duration", kRight},
                     {"CPU", kRight, false, 1},
                     {"memory", kRight, false, 1},
                     {std::string(sorted.title), kRight},
                     {"coverage", kRight, false, 5},
                     {"figure", kLeft, true, 3},
                     {"tags", kLeft, true, 3}});
  ForEachCard(profiles, [&](const ListedProfile& one, const JobStep& id, const Card& card) {
    const Summary s = SummaryOfCard(card, one.start, now);
    table.Row({Printable(id.ToString()), Printable(StepTitle(card.name, card.command)),
               Printable(card.user), std::string(ToString(card.state)), std::to_string(card.nodes),
               std::to_string(card.level), FormatLocalMinute(one.start),
               text::Value(s.duration, "seconds"), text::Percent(s.cpu_of_tasks),
               text::Bytes(s.memory_peak.value),
               sorted.title.empty()
                   ? ""
                   : text::Value(SortValue(card, one.start, sort, now), sorted.unit),
               card.coverage.expected == 0 ? "-" : text::Percent(card.coverage.Ratio()),
               FirstFigure(card), Printable(TagsText(card))});
  });
  return table.Render("", env.width);
}

}  // namespace sonde::cli
